//! What a value of an object comes from: the property that Spark's feature steps read it from, or the field of a pod template.

use serde_json::Value;

use crate::{
    judged::Judged,
    node::{Node, Root, Step, shortened},
};

/// Returns a property as the cause, and whether its value is an operator's default.
pub(crate) fn property_cause(key: &str, judged: &Judged<'_>) -> String {
    match judged.origins.get(key) {
        Some(origin) => format!("sparkProperties[\"{}\"] (the operator's default: {origin})", shortened(key)),
        None => format!("sparkProperties[\"{}\"]", shortened(key)),
    }
}

/// Returns the cause of a value, if it is known. A property takes precedence over a template, as it does in Spark.
pub(crate) fn of(node: &Node<'_>, judged: &Judged<'_>) -> Option<String> {
    let steps = node.steps();
    let keys = match node.root() {
        Root::Driver => pod_causes("driver", &steps, judged),
        Root::Executor => pod_causes("executor", &steps, judged),
        Root::Object(kind, _) => object_causes(kind, &steps, judged),
        Root::ExecutorClaim(volume) => {
            volume_keys(&format!("spark.kubernetes.executor.volumes.persistentVolumeClaim.{volume}."), judged)
        }
    };
    if let Some(key) = keys.iter().find(|key| judged.properties.contains_key(*key)) {
        return Some(property_cause(key, judged));
    }
    match node.root() {
        Root::Driver => in_template("driverPodTemplate", judged.driver_template?, &steps),
        Root::Executor => in_template("executorPodTemplate", judged.executor_template?, &steps),
        _ => None,
    }
}

/// Returns the properties that a value of a pod may come from, in the order of their precedence.
fn pod_causes(role: &str, steps: &[Step<'_>], judged: &Judged<'_>) -> Vec<String> {
    let names: Vec<&str> = steps.iter().map(|step| step.name.as_str()).collect();
    if names.starts_with(&["spec", "containers"]) && !is_sparks_container(steps) {
        return Vec::new();
    }
    let own = |rest: &str| format!("spark.kubernetes.{role}.{rest}");
    let common = |rest: &str| format!("spark.kubernetes.{rest}");
    match names[..] {
        ["metadata", "labels", key, ..] => vec![own(&format!("label.{key}"))],
        ["metadata", "annotations", key, ..] => vec![own(&format!("annotation.{key}"))],
        ["spec", "nodeSelector", key, ..] => {
            vec![own(&format!("node.selector.{key}")), common(&format!("node.selector.{key}"))]
        }
        ["spec", "serviceAccountName" | "serviceAccount", ..] => {
            let account = |role: &str| format!("spark.kubernetes.authenticate.{role}.serviceAccountName");
            vec![account(role), account("driver")]
        }
        ["spec", "schedulerName", ..] => vec![own("scheduler.name"), common("scheduler.name")],
        ["spec", "imagePullSecrets", ..] => vec![common("container.image.pullSecrets")],
        ["spec", "terminationGracePeriodSeconds"] => vec![own("terminationGracePeriodSeconds")],
        ["spec", "volumes", _, ..] => volume_causes(role, steps[2].value["name"].as_str().unwrap_or_default(), judged),
        ["spec", "containers", _, "image", ..] => vec![own("container.image"), common("container.image")],
        ["spec", "containers", _, "securityContext", "allowPrivilegeEscalation"] => {
            vec![own("securityContext.allowPrivilegeEscalation"), common("securityContext.allowPrivilegeEscalation")]
        }
        ["spec", "containers", _, "env", _, ..] => {
            let name = steps[4].value["name"].as_str().unwrap_or_default();
            let variable = match role {
                "driver" => format!("spark.kubernetes.driverEnv.{name}"),
                _ => format!("spark.executorEnv.{name}"),
            };
            vec![own(&format!("secretKeyRef.{name}")), variable]
        }
        ["spec", "containers", _, "resources", kind, resource, ..] => resource_causes(role, kind, resource),
        _ => Vec::new(),
    }
}

/// Returns whether the path leads into Spark's own container, which Spark appends to those of the template.
fn is_sparks_container(steps: &[Step<'_>]) -> bool {
    let last = steps[1].value.as_array().and_then(|containers| containers.len().checked_sub(1));
    steps.get(2).is_some_and(|step| Some(&step.name) == last.map(|last| last.to_string()).as_ref())
}

fn resource_causes(role: &str, kind: &str, resource: &str) -> Vec<String> {
    match resource {
        "cpu" => {
            let limit = if kind == "limits" { "limit" } else { "request" };
            vec![format!("spark.kubernetes.{role}.{limit}.cores"), format!("spark.{role}.cores")]
        }
        "memory" => {
            let heap = format!("spark.{role}.memory");
            vec![heap.clone(), format!("{heap}Overhead"), format!("{heap}OverheadFactor")]
        }
        other => {
            let name = other.rsplit('/').next().unwrap_or(other);
            vec![format!("spark.{role}.resource.{name}.amount")]
        }
    }
}

/// Returns the properties that a volume comes from, by the names that Spark gives its own volumes.
fn volume_causes(role: &str, name: &str, judged: &Judged<'_>) -> Vec<String> {
    let fixed: &[&str] = match name {
        "hadoop-properties" => {
            &["spark.kubernetes.hadoop.configMapName", "spark.kubernetes.executor.hadoopConfigMapName"]
        }
        "krb5-file" => &["spark.kubernetes.kerberos.krb5.configMapName", "spark.kubernetes.kerberos.krb5.path"],
        "hadoop-secret" => &["spark.kubernetes.kerberos.tokenSecret.name"],
        "kerberos-keytab" => &["spark.kerberos.keytab"],
        name if name.starts_with("spark-local-dir-") => &["spark.local.dir"],
        _ => &[],
    };
    let mut keys: Vec<String> = fixed.iter().map(|key| (*key).to_owned()).collect();
    if let Some(secret) = name.strip_suffix("-volume") {
        keys.push(format!("spark.kubernetes.{role}.secrets.{secret}"));
    }
    for (key, _) in judged.family(&format!("spark.kubernetes.{role}.volumes.")) {
        if key.split('.').nth(1) == Some(name) {
            keys.push(format!("spark.kubernetes.{role}.volumes.{key}"));
        }
    }
    // The option is the better cause than the place where the volume is mounted.
    keys.sort_by_key(|key| !key.contains(".options."));
    keys
}

/// Returns the properties that a value of another object may come from.
fn object_causes(kind: &str, steps: &[Step<'_>], judged: &Judged<'_>) -> Vec<String> {
    let names: Vec<&str> = steps.iter().map(|step| step.name.as_str()).collect();
    match (kind, &names[..]) {
        ("Service", ["metadata", "labels", key]) => vec![format!("spark.kubernetes.driver.service.label.{key}")],
        ("Service", ["metadata", "annotations", key]) => {
            vec![format!("spark.kubernetes.driver.service.annotation.{key}")]
        }
        ("PodGroup", _) => {
            ["File", "Json"].map(|form| format!("spark.kubernetes.scheduler.volcano.podGroupTemplate{form}")).into()
        }
        ("PersistentVolumeClaim", _) => {
            // A claim doesn't name its volume: the option with the same value is the cause.
            let prefix = "spark.kubernetes.driver.volumes.persistentVolumeClaim.";
            let value = steps.last().and_then(|step| step.value.as_str());
            let same = judged.family(prefix).filter(|(_, own)| Some(*own) == value);
            same.map(|(key, _)| format!("{prefix}{key}")).collect()
        }
        _ => Vec::new(),
    }
}

fn volume_keys(prefix: &str, judged: &Judged<'_>) -> Vec<String> {
    let mut keys: Vec<String> = judged.family(prefix).map(|(key, _)| format!("{prefix}{key}")).collect();
    keys.sort_by_key(|key| !key.contains(".options."));
    keys
}

/// Returns the path of the value in a template, if it is there. Elements of lists are found by their name or value, since
/// Spark moves the container that it completes to the end.
fn in_template(field: &str, template: &Value, steps: &[Step<'_>]) -> Option<String> {
    let mut path = field.to_owned();
    let mut value = template;
    for step in steps {
        let name = match value {
            Value::Array(list) if step.is_index => {
                let name = &step.value["name"];
                let same = |own: &Value| match name {
                    Value::String(_) => own["name"] == *name,
                    _ => own == step.value,
                };
                let index = list.iter().position(same)?;
                value = &list[index];
                index.to_string()
            }
            _ => {
                value = value.get(&step.name)?;
                step.name.replace('~', "~0").replace('/', "~1")
            }
        };
        path.push('/');
        path.push_str(&name);
    }
    Some(path)
}
