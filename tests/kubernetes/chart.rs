//! The Helm chart: that it has the objects of the manifests and the settings of the program, and that Kubernetes accepts what it
//! renders.

mod apiserver;
mod compare;
mod helm;
mod metrics;
mod settings;

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sparkgate::{
    service::{SparkSettings, Submitter},
    spark::parse_properties,
};
use sparkgate_access::{Access, Namespaces};

use helm::{MANIFESTS, TENANTS, find, helm, refusal, template};

#[test]
fn the_chart_passes_lint() {
    for values in [&["--set", "acceptAnonymous=true"][..], &["--values", MANIFESTS], &["--values", TENANTS]] {
        let output = helm(&[&["lint", "--strict", "--quiet", helm::CHART], values].concat());
        assert!(output.status.success(), "{values:?}: {}", String::from_utf8_lossy(&output.stdout));
    }
}

#[test]
fn wrong_values_are_refused() {
    let cases = [
        ("replica=3", "replica"),
        ("replicas=-1", "replicas"),
        ("settings.max-retry=3", "max-retry"),
        ("settings.retention=90", "retention"),
        ("settings.kept-log=1GiB", "kept-log"),
        ("drivers.namespaces={kube-system}", "drivers/namespaces"),
        ("drivers.namespaces={Spark}", "drivers/namespaces"),
        ("drivers.namespaces={sparkgate}", "sparkgate is the namespace of the gateway"),
        ("drivers.namespaces=null", "list the namespaces of drivers"),
        ("drivers.podSecurity=strict", "podSecurity"),
        ("spark.version=2.4.8", "spark/version"),
        ("image.digest=latest", "image/digest"),
        ("database.existingSecret=", "existingSecret"),
        ("acceptAnonymous=false", "set access.content or access.existingConfigMap, or acceptAnonymous: true"),
        ("settings.files-listen=6069", "files-listen"),
        ("settings.listen=0.0.0.0:1", "listen"),
        (
            "settings.files-url=s3://b/p,settings.files-base-url=http://sparkgate.sparkgate.svc:6066",
            "drivers don't reach the port of the APIs",
        ),
        ("settings.files-url=s3://b/p,settings.files-base-url=http://sparkgate.sparkgate:6066/x", "name the port 6069"),
        ("trustedNetwork=false", "set tls.existingSecret, or trustedNetwork"),
        ("sparkLines.existingConfigMap=a,sparkLines.content.lines[0].version=4.1.4", "exclude each other"),
        ("access.existingConfigMap=a,access.content.tenants.a.namespaces={a}", "exclude each other"),
    ];
    for (set, expected) in cases {
        let refusal = refusal(&["--set", set]);
        assert!(refusal.contains(expected), "{set}: {refusal}");
    }
}

#[test]
fn drivers_reach_signed_files_and_nothing_else() {
    let rendered = |set: &str| {
        let objects = template(&["--set", set]);
        let rules = find(&objects, "NetworkPolicy", "sparkgate")["spec"]["ingress"].clone();
        let of_drivers = |rule: &&Value| rule["from"][0]["podSelector"]["matchExpressions"][0]["key"] == "spark-role";
        let rules: Vec<Value> = rules.as_array().unwrap().iter().filter(of_drivers).cloned().collect();
        let deployment = find(&objects, "Deployment", "sparkgate");
        let settings = helm::settings(&objects);
        let set = |name: &str| settings.get(name)?.as_str().map(str::to_owned);
        let ports = deployment["spec"]["template"]["spec"]["containers"][0]["ports"].clone();
        let port = ports.as_array().unwrap().iter().find(|port| port["name"] == "files").cloned();
        let served = find(&objects, "Service", "sparkgate")["spec"]["ports"].clone();
        let served = served.as_array().unwrap().iter().find(|port| port["name"] == "files").cloned();
        let ports = rules.iter().map(|rule| rule["ports"].clone()).collect::<Vec<_>>();
        (ports, port, served, set("files-listen"), set("files-base-url"))
    };
    assert_eq!(rendered("replicas=1"), (vec![], None, None, None, None));
    for (set, port, listen, url) in [
        ("settings.files-url=s3://b/p", 6069, Some("0.0.0.0:6069"), Some("http://sparkgate.sparkgate.svc:6069")),
        (
            "settings.files-url=s3://b/p,tls.existingSecret=t",
            6069,
            Some("0.0.0.0:6069"),
            Some("https://sparkgate.sparkgate.svc:6069"),
        ),
        (
            "settings.files-url=s3://b/p,settings.files-listen=0.0.0.0:7000",
            7000,
            Some("0.0.0.0:7000"),
            Some("http://sparkgate.sparkgate.svc:7000"),
        ),
        (
            "settings.files-url=s3://b/p,settings.files-base-url=https://files.example.org",
            6069,
            Some("0.0.0.0:6069"),
            Some("https://files.example.org"),
        ),
        (
            "settings.files-url=s3://b/p,settings.files-driver-url=s3a://b/p",
            6069,
            Some("0.0.0.0:6069"),
            Some("http://sparkgate.sparkgate.svc:6069"),
        ),
    ] {
        let (rules, container, served, listens, leads) = rendered(set);
        assert_eq!(rules, [json!([{"port": "files"}])], "{set}");
        assert_eq!(container, Some(json!({"name": "files", "containerPort": port})), "{set}");
        assert_eq!(served, Some(json!({"name": "files", "port": port, "targetPort": "files"})), "{set}");
        assert_eq!((listens.as_deref(), leads.as_deref()), (listen, url), "{set}");
    }
}

#[test]
fn selectors_match_the_gateway_and_no_job() {
    let objects = template(&["--values", TENANTS]);
    let labels = |kind: &str, name: &str| find(&objects, kind, name)["spec"]["template"]["metadata"]["labels"].clone();
    let gateway = labels("Deployment", "sparkgate");
    let jobs = ["sparkgate-migrations", "sparkgate-uninstall"].map(|name| labels("Job", name));
    let spread = &find(&objects, "Deployment", "sparkgate")["spec"]["template"]["spec"]["topologySpreadConstraints"];
    let selectors = [
        &find(&objects, "Deployment", "sparkgate")["spec"]["selector"]["matchLabels"],
        &find(&objects, "Service", "sparkgate")["spec"]["selector"],
        &find(&objects, "PodDisruptionBudget", "sparkgate")["spec"]["selector"]["matchLabels"],
        &find(&objects, "NetworkPolicy", "sparkgate")["spec"]["podSelector"]["matchLabels"],
        &spread[0]["labelSelector"]["matchLabels"],
        &spread[1]["labelSelector"]["matchLabels"],
    ];
    for selector in selectors {
        let selects =
            |labels: &Value| selector.as_object().unwrap().iter().all(|(key, value)| labels[key.as_str()] == *value);
        assert!(selects(&gateway), "{selector} of {gateway}");
        assert!(!jobs.iter().any(selects), "{selector}");
    }
}

#[test]
fn the_access_file_is_read_as_it_was_written() {
    let example: Value = serde_saphyr::from_str(include_str!("../../deploy/access.example.yaml")).unwrap();
    let values = tempfile::NamedTempFile::with_suffix(".json").unwrap();
    std::fs::write(values.path(), json!({"access": {"content": example}}).to_string()).unwrap();
    for (values, tenants) in [(values.path().to_str().unwrap(), 2), (TENANTS, 2)] {
        let objects = template(&["--values", values]);
        let text = find(&objects, "ConfigMap", "sparkgate-access")["data"]["access.yaml"].as_str().unwrap();
        let access = Access::parse(text).unwrap();
        assert_eq!(access.tenants().count(), tenants);
        let listed = access.tenants().flat_map(|tenant| match &tenant.namespaces {
            Namespaces::All => panic!("{} has all namespaces", tenant.name),
            Namespaces::Listed(names) => names.iter(),
        });
        let namespaces: Vec<&String> = listed.collect();
        let served = helm::variables(find(&objects, "Deployment", "sparkgate"));
        let served = &served["SPARKGATE_NAMESPACES"];
        assert!(namespaces.iter().all(|name| served.split(',').any(|served| served == *name)), "{served}");
        for namespace in namespaces {
            assert!(
                objects.iter().any(|object| {
                    object["kind"] == "Role" && object["metadata"]["namespace"] == namespace.as_str()
                })
            );
        }
        let port = &find(&objects, "Service", "sparkgate")["spec"]["ports"][1];
        assert_eq!((&port["name"], &port["port"]), (&json!("spark"), &json!(6068)));
    }
}

#[test]
fn the_spark_lines_are_read_as_they_were_written() {
    let objects = template(&["--values", TENANTS]);
    let map = |name: &str| find(&objects, "ConfigMap", name)["data"].clone();
    let text = |map: Value, key: &str| map[key].as_str().unwrap().to_owned();
    let defaults = parse_properties(&text(map("sparkgate-defaults"), "spark-defaults.conf"));
    let directory = tempfile::tempdir().unwrap();
    for folder in ["defaults", "files"] {
        std::fs::create_dir(directory.path().join(folder)).unwrap();
        for (name, text) in map(&format!("sparkgate-submitter-{folder}")).as_object().unwrap() {
            std::fs::write(directory.path().join(folder).join(name), text.as_str().unwrap()).unwrap();
        }
    }
    let submitter = Submitter::read(directory.path()).unwrap();
    let own = helm::variables(find(&objects, "Deployment", "sparkgate"))["SPARKGATE_SPARK_VERSION"].parse().unwrap();
    let settings = SparkSettings::new(own, defaults, submitter, "spark".to_owned());
    let settings = settings.with_lines(Some(&text(map("sparkgate-spark-lines"), "lines.yaml"))).unwrap();
    let versions: Vec<_> = settings.lines.versions().map(|version| version.to_string()).collect();
    assert_eq!(versions, ["3.5.9", "4.1.2", "4.3.0"]);
}

#[test]
fn changed_files_replace_the_replicas_unless_they_are_read_again() {
    let annotations = |set: &str| {
        let objects = template(&["--values", TENANTS, "--set", set]);
        find(&objects, "Deployment", "sparkgate")["spec"]["template"]["metadata"]["annotations"].clone()
    };
    let before = annotations("nameOverride=");
    assert_ne!(annotations("settings.max-connections=17"), before);
    for set in [
        "settings.max-run-timeout=1h",
        "spark.defaults.a=b",
        "submitter.defaults.content.small=a b",
        "submitter.files.content.x=y",
        "sparkLines.content.lines[1].image=x",
        "access.content.limits.writes=5/s",
    ] {
        assert_eq!(annotations(set), before, "{set}");
    }
}

#[test]
fn the_submitter_directory_has_the_files_of_the_values() {
    let objects = template(&["--values", TENANTS]);
    let pod = &find(&objects, "Deployment", "sparkgate")["spec"]["template"]["spec"];
    let mounts = pod["containers"][0]["volumeMounts"].as_array().unwrap();
    let mounts: BTreeMap<&str, &str> = mounts
        .iter()
        .map(|mount| (mount["mountPath"].as_str().unwrap(), mount["name"].as_str().unwrap()))
        .filter(|(path, _)| path.starts_with("/etc/sparkgate/submitter/"))
        .collect();
    let folders: Vec<_> = mounts.keys().map(|path| path.rsplit('/').next().unwrap()).collect();
    assert_eq!(folders, ["defaults", "files", "hadoop-conf", "spark-conf"]);
    let volume = |name: &str| pod["volumes"].as_array().unwrap().iter().find(|volume| volume["name"] == name).unwrap();
    let files = &volume(mounts["/etc/sparkgate/submitter/files"])["projected"]["sources"];
    assert_eq!(files[0]["configMap"]["name"], "sparkgate-submitter-files");
    assert_eq!(files[1]["secret"]["name"], "keytabs");
    let defaults = &find(&objects, "ConfigMap", "sparkgate-submitter-defaults")["data"];
    assert_eq!(defaults["small.conf"], "spark.executor.memory 1g\n");
}
