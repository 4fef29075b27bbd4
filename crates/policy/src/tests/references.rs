//! Images, accounts, volumes, Secrets and `ConfigMap`s in all the places that can name them.

use serde_json::{Value, json};

use super::{Driver, policy_for};

fn container(extra: Value) -> Value {
    let mut container = json!({ "name": "main", "image": "registry.example.org/team/a" });
    container.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    container
}

/// Asserts that a spec breaks a rule as a driver's and as an executors' template, and passes without that rule.
#[track_caller]
fn both_break(spec: Value, document: Value, rule: &str) {
    Driver::with_spec(spec.clone()).breaks(document.clone(), rule);
    Driver::with_executor_spec(spec).breaks(document, rule);
}

#[test]
fn images_of_all_containers_and_volumes_are_judged() {
    let document = json!({ "images": ["registry.example.org/team/*"], "volumes": ["image", "configMap", "emptyDir"] });
    let evil = json!({ "name": "side", "image": "evil" });
    for spec in [
        json!({ "containers": [container(json!({})), evil] }),
        json!({ "initContainers": [evil] }),
        json!({ "volumes": [{ "name": "v", "image": { "reference": "evil" } }] }),
        json!({ "initContainers": [{ "name": "side", "image": "not an image" }] }),
    ] {
        both_break(spec, document.clone(), "images");
    }
    let ephemeral = Driver::new(&[]).set("/spec/ephemeralContainers", json!([evil]));
    ephemeral.breaks(document.clone(), "images");
    for (key, expected) in [
        ("spark.kubernetes.driver.container.image", "images Pod/spec/containers/0/image"),
        ("spark.kubernetes.executor.container.image", "images Executor/spec/containers/0/image"),
    ] {
        assert_eq!(Driver::new(&[(key, "evil")]).violations(document.clone()), [expected]);
        Driver::new(&[(key, "registry.example.org/team/other@sha256:00")]).passes(document.clone());
    }
    let placeholder = ("spark.kubernetes.container.image", "registry.example.org/team/spark:{{SPARK_VERSION}}");
    Driver::new(&[placeholder]).passes(json!({ "images": ["registry.example.org/team/spark:4.3.*"] }));
}

#[test]
fn an_image_of_the_executors_template_is_replaced_by_spark() {
    let spec = json!({ "containers": [{ "name": "main", "image": "evil" }] });
    Driver::with_executor_spec(spec).passes(json!({ "images": ["registry.example.org/team/*"] }));
}

#[test]
fn pods_run_as_accounts_of_the_tenant() {
    let policy = policy_for(json!({}), &["team-a", "team-b"]);
    let account = "spark.kubernetes.authenticate.driver.serviceAccountName";
    let executors = "spark.kubernetes.authenticate.executor.serviceAccountName";
    let rules = |driver: &Driver| -> Vec<String> {
        driver.judge(&policy).into_iter().map(|violation| format!("{} {}", violation.rule, violation.path)).collect()
    };
    assert!(rules(&Driver::new(&[(account, "team-a")])).is_empty());
    assert!(rules(&Driver::new(&[(account, "team-a"), (executors, "team-b")])).is_empty());
    assert_eq!(
        rules(&Driver::new(&[])),
        ["serviceAccounts Pod/spec/serviceAccountName", "serviceAccounts Executor/spec/serviceAccountName"],
        "without an account it is `default`"
    );
    assert_eq!(rules(&Driver::new(&[(account, "team-a"), (executors, "admin")])).len(), 3);
    let deprecated = Driver::new(&[(account, "team-a")]).set("/spec/serviceAccount", json!("admin"));
    assert_eq!(rules(&deprecated), ["serviceAccounts Pod/spec/serviceAccount"]);
    let spec = json!({ "containers": [{ "name": "main" }], "serviceAccountName": "admin", "serviceAccount": "admin" });
    let driver = Driver::build(&[(account, "team-a")], None, Some(super::template(spec)));
    assert_eq!(
        rules(&driver),
        ["serviceAccounts Executor/spec/serviceAccountName", "serviceAccounts Executor/spec/serviceAccount"]
    );
}

#[test]
fn tokens_for_other_audiences_are_refused() {
    let token = |audience: &str| {
        json!({ "volumes": [{ "name": "t", "projected": { "sources": [
            { "serviceAccountToken": { "path": "t", "audience": audience } }
        ] } }] })
    };
    both_break(token("vault"), json!({}), "serviceAccountTokens");
    Driver::with_spec(token("vault")).passes(json!({ "serviceAccountTokens": { "audiences": ["vault"] } }));
    Driver::with_spec(token("")).passes(json!({}));
    let none = json!({ "serviceAccountTokens": { "automount": false } });
    both_break(token(""), none.clone(), "serviceAccountTokens");
    Driver::new(&[]).breaks(none.clone(), "serviceAccountTokens");
    let off = super::template(json!({ "automountServiceAccountToken": false }));
    Driver::build(&[], Some(off.clone()), Some(off)).passes(none);
}

#[test]
fn volumes_are_permitted_by_their_types() {
    for (kind, source) in [
        ("hostPath", json!({ "path": "/" })),
        ("nfs", json!({ "server": "a", "path": "/" })),
        ("csi", json!({ "driver": "a" })),
        ("image", json!({ "reference": "a" })),
        ("gitRepo", json!({ "repository": "a" })),
        ("iscsi", json!({ "iqn": "a", "lun": 1, "targetPortal": "a" })),
        ("flexVolume", json!({ "driver": "a" })),
        ("rbd", json!({ "image": "a", "monitors": ["a"] })),
    ] {
        let mut volume = json!({ "name": "v" });
        volume[kind] = source;
        let spec = json!({ "volumes": [volume] });
        both_break(spec.clone(), json!({}), "volumes");
        let document =
            json!({ "podSecurity": "privileged", "volumes": [kind, "configMap", "emptyDir"], "hostPaths": ["/"] });
        Driver::with_spec(spec).passes(document);
    }
    both_break(
        json!({ "volumes": [{ "name": "v", "projected": { "sources": [{ "podCertificate": { "signerName": "a" } }] } }] }),
        json!({}),
        "projectedSources",
    );
}

#[test]
fn volumes_of_properties_are_judged_as_those_of_templates() {
    for role in ["driver", "executor"] {
        let of = |kind: &str, options: &[(&str, &str)]| {
            let prefix = format!("spark.kubernetes.{role}.volumes.{kind}.v.");
            let mut properties = vec![(format!("{prefix}mount.path"), "/v".to_owned())];
            properties
                .extend(options.iter().map(|(key, value)| (format!("{prefix}options.{key}"), (*value).to_owned())));
            let properties: Vec<(&str, &str)> =
                properties.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
            Driver::new(&properties)
        };
        let host = json!({
            "podSecurity": "privileged", "volumes": ["hostPath", "configMap", "emptyDir"], "hostPaths": ["/data"]
        });
        of("hostPath", &[("path", "/data/x")]).passes(host.clone());
        of("hostPath", &[("path", "/data/x")]).breaks(json!({}), "podSecurity");
        for path in ["/", "/etc", "/data/../etc", "/database", "data", "${env:X}"] {
            of("hostPath", &[("path", path)]).breaks(host.clone(), "hostPaths");
        }
        let nfs = json!({ "volumes": ["nfs", "configMap", "emptyDir"], "nfsServers": ["files.*"] });
        of("nfs", &[("server", "files.a"), ("path", "/")]).passes(nfs.clone());
        of("nfs", &[("server", "evil"), ("path", "/")]).breaks(nfs, "nfsServers");
        let claims = json!({ "claims": ["team-*"], "storageClasses": ["fast"], "limits": { "storage": "30Gi" } });
        of("persistentVolumeClaim", &[("claimName", "team-a")]).passes(claims.clone());
        of("persistentVolumeClaim", &[("claimName", "other")]).breaks(claims.clone(), "claims");
        let on_demand = |class: &str, size: &str| {
            of("persistentVolumeClaim", &[("claimName", "OnDemand"), ("storageClass", class), ("sizeLimit", size)])
        };
        on_demand("fast", "10Gi").passes(claims.clone());
        on_demand("slow", "10Gi").breaks(claims.clone(), "storageClasses");
        on_demand("fast", "40Gi").breaks(claims.clone(), "limits");
        on_demand("fast", "much").judge(&super::policy(json!({ "storageClasses": ["slow"] })));
        let existing = [("claimName", "other"), ("storageClass", "fast"), ("sizeLimit", "1Gi")];
        of("persistentVolumeClaim", &existing).breaks(claims, "claims");
    }
}

#[test]
fn only_permitted_secrets_and_config_maps_may_be_named() {
    let document = json!({ "secrets": ["team-*"], "configMaps": ["team-*"],
        "volumes": ["secret", "configMap", "emptyDir", "projected", "csi", "cephfs", "azureFile"] });
    let volume = |source: Value| json!({ "volumes": [source] });
    let env =
        |source: Value| json!({ "containers": [container(json!({ "env": [{ "name": "A", "valueFrom": source }] }))] });
    let from = |source: Value| json!({ "containers": [container(json!({ "envFrom": [source] }))] });
    for name in ["team-a", "other"] {
        for (rule, spec) in [
            ("secrets", volume(json!({ "name": "v", "secret": { "secretName": name } }))),
            ("secrets", volume(json!({ "name": "v", "projected": { "sources": [{ "secret": { "name": name } }] } }))),
            (
                "secrets",
                volume(json!({ "name": "v", "csi": { "driver": "a", "nodePublishSecretRef": { "name": name } } })),
            ),
            ("secrets", volume(json!({ "name": "v", "cephfs": { "monitors": [], "secretRef": { "name": name } } }))),
            ("secrets", volume(json!({ "name": "v", "azureFile": { "shareName": "a", "secretName": name } }))),
            ("secrets", env(json!({ "secretKeyRef": { "name": name, "key": "k" } }))),
            ("secrets", from(json!({ "secretRef": { "name": name } }))),
            ("secrets", json!({ "imagePullSecrets": [{ "name": name }] })),
            ("configMaps", volume(json!({ "name": "v", "configMap": { "name": name } }))),
            (
                "configMaps",
                volume(json!({ "name": "v", "projected": { "sources": [{ "configMap": { "name": name } }] } })),
            ),
            ("configMaps", env(json!({ "configMapKeyRef": { "name": name, "key": "k" } }))),
            ("configMaps", from(json!({ "configMapRef": { "name": name } }))),
        ] {
            match name {
                "other" => both_break(spec, document.clone(), rule),
                _ => Driver::with_spec(spec).passes(document.clone()),
            }
        }
        for (rule, key, value) in [
            ("secrets", format!("spark.kubernetes.driver.secrets.{name}"), "/mnt".to_owned()),
            ("secrets", format!("spark.kubernetes.executor.secrets.{name}"), "/mnt".to_owned()),
            ("secrets", "spark.kubernetes.driver.secretKeyRef.A".to_owned(), format!("{name}:key")),
            ("secrets", "spark.kubernetes.executor.secretKeyRef.A".to_owned(), format!("{name}:key")),
            ("secrets", "spark.kubernetes.container.image.pullSecrets".to_owned(), format!("team-b, {name}")),
            ("configMaps", "spark.kubernetes.hadoop.configMapName".to_owned(), name.to_owned()),
            ("configMaps", "spark.kubernetes.kerberos.krb5.configMapName".to_owned(), name.to_owned()),
        ] {
            let driver = Driver::new(&[(&key, &value)]);
            match name {
                "other" => driver.breaks(document.clone(), rule),
                _ => driver.passes(document.clone()),
            }
        }
    }
}

#[test]
fn what_is_created_along_with_the_driver_may_be_named() {
    let token = "spark.kubernetes.authenticate.driver.oauthToken";
    let document = json!({ "secrets": [], "configMaps": [], "credentials": true });
    Driver::new(&[(token, "abc")]).passes(document);
    Driver::new(&[(token, "abc")]).breaks(json!({}), "credentials");
}
