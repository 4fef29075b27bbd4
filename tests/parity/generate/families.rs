//! Keys that consist of a prefix and a name: volumes, labels, secrets, resources; and keys that name a file.

use super::Random;
use crate::case::Submitter;

type Properties = Vec<(String, String)>;

pub(super) fn draw(random: &mut Random, submitter: &mut Submitter) -> Properties {
    match random.below(16) {
        0..=3 => volume(random),
        4..=6 => named(random),
        7 => secrets(random),
        8 => resource(random),
        9..=10 => template(random, submitter),
        11 => executor_template(random, submitter),
        12 => credentials(random, submitter),
        13 => kerberos(random, submitter),
        14 => volcano(random, submitter),
        _ => one("spark.kubernetes.hadoop.configMapName", random.pick(&["hadoop-conf", "site"])),
    }
}

fn one(key: &str, value: &str) -> Properties {
    vec![(key.to_owned(), value.to_owned())]
}

fn volume(random: &mut Random) -> Properties {
    let side = random.pick(&["driver", "driver", "driver", "executor"]);
    let kind = random.pick(&["hostPath", "emptyDir", "nfs", "persistentVolumeClaim"]);
    let name = random.pick(&["data", "scratch", "spark-local-dir-1", "cache-2"]);
    let mut fields: Vec<(&str, &str)> = Vec::new();
    if !random.percent(3) {
        fields
            .push(("mount.path", random.pick(&["/data", "/mnt/scratch", "/tmp/a", "/var/cache/x", "/opt/spark/work"])));
    }
    for (chance, key, values) in [
        (35, "mount.readOnly", &["true", "false", "TRUE"][..]),
        (20, "mount.subPath", &["sub", "a/b", ""]),
        (10, "mount.subPathExpr", &["$(POD_NAME)", "x"]),
        (15, "label.team", &["data"]),
        (15, "annotation.note", &["a b", "x=y"]),
    ] {
        if random.percent(chance) {
            fields.push((key, random.pick(values)));
        }
    }
    let sizes = ["1Gi", "500Mi", "2000000", "10", "0.5Gi"];
    match kind {
        "hostPath" => {
            fields.push(("options.path", random.pick(&["/srv/data", "/tmp"])));
            if random.percent(30) {
                fields.push(("options.type", random.pick(&["Directory", "DirectoryOrCreate", ""])));
            }
        }
        "emptyDir" => {
            if random.percent(40) {
                fields.push(("options.medium", random.pick(&["Memory", "", "HugePages"])));
            }
            if random.percent(40) {
                fields.push(("options.sizeLimit", random.pick(&sizes)));
            }
        }
        "nfs" => {
            fields.push(("options.server", "nfs.example"));
            if !random.percent(5) {
                fields.push(("options.path", "/export"));
            }
        }
        _ => {
            fields.push(("options.claimName", random.pick(&["OnDemand", "OnDemand", "claim-1", "my-OnDemand-x"])));
            if random.percent(50) {
                fields.push(("options.storageClass", random.pick(&["fast", "standard"])));
            }
            if random.percent(60) {
                fields.push(("options.sizeLimit", random.pick(&sizes)));
            }
        }
    }
    let prefix = format!("spark.kubernetes.{side}.volumes.{kind}.{name}.");
    fields.into_iter().map(|(key, value)| (format!("{prefix}{key}"), value.to_owned())).collect()
}

fn named(random: &mut Random) -> Properties {
    let family = random.pick(&[
        "spark.kubernetes.driver.label.",
        "spark.kubernetes.driver.annotation.",
        "spark.kubernetes.driver.service.label.",
        "spark.kubernetes.driver.service.annotation.",
        "spark.kubernetes.driverEnv.",
        "spark.kubernetes.node.selector.",
        "spark.kubernetes.driver.node.selector.",
        "spark.kubernetes.executor.label.",
        "spark.kubernetes.executor.annotation.",
        "spark.kubernetes.executor.node.selector.",
        "spark.executorEnv.",
    ]);
    let name = random.pick(&["team", "example.com/zone", "A_B", "x.y", "SPARK_USER", "disk"]);
    let value = random.pick(&["blue", "", "a b", "{{APP_ID}}", "x-{{EXECUTOR_ID}}-{{APP_ID}}", "1", "ü", "k=v:w"]);
    vec![(format!("{family}{name}"), value.to_owned())]
}

fn secrets(random: &mut Random) -> Properties {
    let side = random.pick(&["driver", "driver", "executor"]);
    if random.percent(50) {
        let name = random.pick(&["db-password", "tls"]);
        vec![(format!("spark.kubernetes.{side}.secrets.{name}"), random.pick(&["/etc/secrets", "/etc/tls"]).to_owned())]
    } else {
        let name = random.pick(&["DB_PASSWORD", "TOKEN"]);
        let value = random.pick(&["db:password", "tls:key", "db:password", "no-key", "a:b:c", "a: b"]);
        vec![(format!("spark.kubernetes.{side}.secretKeyRef.{name}"), value.to_owned())]
    }
}

fn resource(random: &mut Random) -> Properties {
    let prefix = format!("spark.driver.resource.{}.", random.pick(&["gpu", "fpga"]));
    let mut fields = Vec::new();
    for (chance, key, values) in [
        (92, "amount", &["1", "2", "0", "1.5"][..]),
        (92, "vendor", &["nvidia.com", "example.com"]),
        (40, "discoveryScript", &["/opt/gpus.sh"]),
    ] {
        if random.percent(chance) {
            fields.push((format!("{prefix}{key}"), random.pick(values).to_owned()));
        }
    }
    fields
}

const TEMPLATES: [&str; 7] = [
    "apiVersion: v1\nkind: Pod\nmetadata:\n  name: ignored\n  labels: {team: template, spark-role: x}\n  annotations: {note: t}\nspec:\n  priorityClassName: high\n  tolerations:\n  - {key: dedicated, operator: Equal, value: spark, effect: NoSchedule}\n  containers:\n  - name: main\n",
    "spec:\n  nodeSelector: {disk: ssd}\n  restartPolicy: Always\n  serviceAccountName: from-template\n  schedulerName: from-template\n  containers:\n  - name: main\n    image: ignored\n    env:\n    - {name: TEAM, value: template}\n    resources:\n      requests: {cpu: 100m, memory: 1Mi, ephemeral-storage: 1Gi}\n      limits: {cpu: \"3\", memory: 2Mi}\n  - name: side-car\n    image: busybox\n",
    "spec:\n  containers:\n  - name: side-car\n    image: busybox\n    command: [sleep, inf]\n  - name: main\n    args: [first]\n    ports:\n    - {name: extra, containerPort: 9000}\n    volumeMounts:\n    - {name: spark-local-dir-7, mountPath: /fast}\n  volumes:\n  - name: spark-local-dir-7\n    emptyDir: {sizeLimit: 5Gi}\n",
    "spec:\n  imagePullSecrets:\n  - name: template-registry\n  initContainers:\n  - name: fetch\n    image: curl\n  securityContext: {runAsUser: 185, fsGroup: 185}\n  containers:\n  - name: main\n    securityContext:\n      allowPrivilegeEscalation: true\n      capabilities: {drop: [ALL]}\n    livenessProbe:\n      httpGet: {path: /, port: 4040}\n",
    "{\"kind\": \"Pod\", \"apiVersion\": \"v1\", \"spec\": {\"containers\": [{\"name\": \"json\", \"imagePullPolicy\": \"Never\"}]}}\n",
    "kind: Pod\nspec:\n  affinity:\n    nodeAffinity:\n      requiredDuringSchedulingIgnoredDuringExecution:\n        nodeSelectorTerms:\n        - matchExpressions:\n          - {key: zone, operator: In, values: [a, b]}\n  hostAliases:\n  - {ip: 10.0.0.1, hostnames: [db]}\n  terminationGracePeriodSeconds: 60\n  containers:\n  - {}\n",
    "{}\n",
];

fn template(random: &mut Random, submitter: &mut Submitter) -> Properties {
    submitter.files.insert("driver.yaml".into(), random.pick(&TEMPLATES).to_owned());
    let mut properties = one("spark.kubernetes.driver.podTemplateFile", "driver.yaml");
    if random.percent(40) {
        properties.extend(one(
            "spark.kubernetes.driver.podTemplateContainerName",
            random.pick(&["main", "absent", "side-car"]),
        ));
    }
    properties
}

fn executor_template(random: &mut Random, submitter: &mut Submitter) -> Properties {
    submitter.files.insert("executor.yaml".into(), random.pick(&TEMPLATES).to_owned());
    one("spark.kubernetes.executor.podTemplateFile", "executor.yaml")
}

fn credentials(random: &mut Random, submitter: &mut Submitter) -> Properties {
    let prefix = "spark.kubernetes.authenticate.driver.";
    match random.below(4) {
        0 => vec![(format!("{prefix}oauthToken"), "secret-token".to_owned())],
        1 => vec![(format!("{prefix}serviceAccountName"), "spark".to_owned())],
        2 => {
            let mounted = random.pick(&["caCertFile", "oauthTokenFile", "clientKeyFile"]);
            vec![(format!("{prefix}mounted.{mounted}"), "/mnt/own/file".to_owned())]
        }
        _ => {
            let key = random.pick(&["caCertFile", "clientKeyFile", "clientCertFile"]);
            if !random.percent(10) {
                submitter.files.insert("credential.pem".into(), "-----BEGIN-----\n".to_owned());
            }
            vec![(format!("{prefix}{key}"), "credential.pem".to_owned())]
        }
    }
}

fn kerberos(random: &mut Random, submitter: &mut Submitter) -> Properties {
    match random.below(4) {
        0 => one("spark.kubernetes.kerberos.krb5.configMapName", "krb5"),
        1 => {
            submitter.files.insert("krb5.conf".into(), "[libdefaults]\n  default_realm = EXAMPLE.COM\n".to_owned());
            one("spark.kubernetes.kerberos.krb5.path", "krb5.conf")
        }
        2 => {
            submitter.files.insert("spark.keytab".into(), "base64:BQIAAAA/".to_owned());
            let mut properties =
                one("spark.kerberos.keytab", random.pick(&["spark.keytab", "local:///etc/spark.keytab"]));
            properties.extend(one("spark.kerberos.principal", "spark@EXAMPLE.COM"));
            properties
        }
        _ => {
            let mut properties = one("spark.kubernetes.kerberos.tokenSecret.name", "tokens");
            if !random.percent(10) {
                properties.extend(one("spark.kubernetes.kerberos.tokenSecret.itemKey", "hadoop-token"));
            }
            properties
        }
    }
}

fn volcano(random: &mut Random, submitter: &mut Submitter) -> Properties {
    let step = "org.apache.spark.deploy.k8s.features.VolcanoFeatureStep";
    let mut properties = one("spark.kubernetes.driver.pod.featureSteps", step);
    if random.percent(50) {
        submitter.files.insert("group.yaml".into(), "spec:\n  minMember: 1\n  queue: batch\n".to_owned());
        properties.extend(one("spark.kubernetes.scheduler.volcano.podGroupTemplateFile", "group.yaml"));
    } else if random.percent(50) {
        let json = r#"{"spec": {"queue": "batch", "minResources": {"cpu": "2"}}}"#;
        properties.extend(one("spark.kubernetes.scheduler.volcano.podGroupTemplateJson", json));
    }
    properties
}
