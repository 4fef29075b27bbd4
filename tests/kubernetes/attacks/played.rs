//! The executor's pod that Spark's driver creates from its properties and its template (`KubernetesExecutorBuilder` with its feature
//! steps of Spark 4.3). It is written from Spark's code, without that of `sparkgate::policy`.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

type Properties = BTreeMap<String, String>;

const HEAP_MIB: f64 = 1024.0;
const OVERHEAD_MIB: f64 = 384.0;

/// Returns the pod of the first executor of a driver.
pub(crate) fn executor(driver: &Value, properties: &Properties, template: Option<&Value>) -> Value {
    let of = |key: &str| properties.get(key).map(|value| value.trim());
    let mut pod = template.cloned().unwrap_or_else(|| json!({}));
    for field in ["metadata", "spec"] {
        if pod[field].is_null() {
            pod[field] = json!({});
        }
    }
    let mut container = take_container(&mut pod, of("spark.kubernetes.executor.podTemplateContainerName"));
    complete_container(&mut container, properties);
    let driver_name = driver["metadata"]["name"].as_str().unwrap();
    let prefix = of("spark.kubernetes.executor.podNamePrefix").unwrap_or(driver_name);
    let spec = pod["spec"].as_object_mut().unwrap();
    complete_spec(spec, &mut container, properties, prefix);
    list(spec, "containers").insert(0, container);

    pod["apiVersion"] = json!("v1");
    pod["kind"] = json!("Pod");
    let metadata = pod["metadata"].as_object_mut().unwrap();
    metadata.insert("name".to_owned(), json!(format!("{prefix}-exec-1")));
    let labels = map(metadata, "labels");
    for label in ["spark-version", "spark-app-selector", "spark-app-name"] {
        labels.insert(label.to_owned(), driver["metadata"]["labels"][label].clone());
    }
    labels.insert("spark-role".to_owned(), json!("executor"));
    labels.insert("spark-exec-id".to_owned(), json!("1"));
    labels.insert("spark-exec-resourceprofile-id".to_owned(), json!("0"));
    extend(labels, properties, "spark.kubernetes.executor.label.");
    let annotations = map(metadata, "annotations");
    extend(annotations, properties, "spark.kubernetes.executor.annotation.");
    metadata.insert("ownerReferences".to_owned(), json!([owner(driver)]));
    pod
}

/// Returns the reference to the driver that an executor has (`ExecutorPodsAllocator`).
pub(crate) fn owner(driver: &Value) -> Value {
    let metadata = &driver["metadata"];
    json!({"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"], "controller": true})
}

/// `KubernetesUtils.loadPodFromTemplate`: the named container, or else the first.
fn take_container(pod: &mut Value, name: Option<&str>) -> Value {
    let Some(containers) = pod["spec"]["containers"].as_array_mut().filter(|containers| !containers.is_empty()) else {
        return json!({});
    };
    let named = containers.iter().position(|container| name.is_some() && container["name"].as_str() == name);
    containers.remove(named.unwrap_or(0))
}

/// `BasicExecutorFeatureStep` and `EnvSecretsFeatureStep`.
fn complete_container(container: &mut Value, properties: &Properties) {
    let of = |key: &str| properties.get(key).map(|value| value.trim());
    let container = container.as_object_mut().unwrap();
    container.entry("name").or_insert(json!("spark-kubernetes-executor"));
    let image = of("spark.kubernetes.executor.container.image").or_else(|| of("spark.kubernetes.container.image"));
    container.insert("image".to_owned(), json!(image.unwrap_or_default()));
    container.insert("args".to_owned(), json!(["executor"]));
    let env = list(container, "env");
    let literal = |(name, value): (&str, &str)| json!({"name": name, "value": value});
    env.extend([("SPARK_USER", "tester"), ("SPARK_EXECUTOR_ID", "1")].map(literal));
    env.extend(family(properties, "spark.executorEnv.").map(literal));
    env.extend(family(properties, "spark.kubernetes.executor.secretKeyRef.").map(|(name, reference)| {
        let (secret, key) = reference.split_once(':').unwrap_or((reference, ""));
        json!({"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}})
    }));
    let memory = json!(format!("{}Mi", memory_mib(properties)));
    let cores = of("spark.executor.cores").unwrap_or("1");
    let resources = map(container, "resources");
    let requests = map(resources, "requests");
    requests.insert("memory".to_owned(), memory.clone());
    requests.insert("cpu".to_owned(), json!(of("spark.kubernetes.executor.request.cores").unwrap_or(cores)));
    let limits = map(resources, "limits");
    limits.insert("memory".to_owned(), memory);
    if let Some(cores) = of("spark.kubernetes.executor.limit.cores") {
        limits.insert("cpu".to_owned(), json!(cores));
    }
    for (key, amount) in family(properties, "spark.executor.resource.") {
        if let Some(name) = key.strip_suffix(".amount") {
            let vendor = of(&format!("spark.executor.resource.{name}.vendor")).unwrap_or_default();
            limits.insert(format!("{vendor}/{name}"), json!(amount));
        }
    }
}

/// `ResourceProfile.getResourcesForClusterManager`.
fn memory_mib(properties: &Properties) -> i64 {
    let of = |key: &str| properties.get(key).map(|value| value.trim());
    let heap = of("spark.executor.memory").map_or(HEAP_MIB, mib);
    let factors = ["spark.executor.memoryOverheadFactor", "spark.kubernetes.memoryOverheadFactor"];
    let factor = factors.iter().find_map(|key| of(key)?.parse().ok()).unwrap_or(0.1);
    let overhead = of("spark.executor.memoryOverhead").map_or_else(|| (heap * factor).max(OVERHEAD_MIB), mib);
    let off_heap = match of("spark.memory.offHeap.enabled") {
        Some("true") => of("spark.memory.offHeap.size").map_or(0.0, mib),
        _ => 0.0,
    };
    (heap + overhead + off_heap) as i64
}

/// Returns a size of Spark in MiB, the unit of a number without one.
fn mib(text: &str) -> f64 {
    let text = text.trim().to_ascii_lowercase();
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: f64 = text[..end].parse().unwrap_or(0.0);
    let unit = match text[end..].trim_end_matches('b') {
        "k" => 1.0 / 1024.0,
        "g" => 1024.0,
        "t" => 1024.0 * 1024.0,
        _ => 1.0,
    };
    number * unit
}

fn complete_spec(spec: &mut Map<String, Value>, container: &mut Value, properties: &Properties, prefix: &str) {
    let of = |key: &str| properties.get(key).map(|value| value.trim());
    spec.insert("restartPolicy".to_owned(), json!("Never"));
    for family in ["spark.kubernetes.node.selector.", "spark.kubernetes.executor.node.selector."] {
        extend(map(spec, "nodeSelector"), properties, family);
    }
    let secrets = of("spark.kubernetes.container.image.pullSecrets").unwrap_or_default().split(',').map(str::trim);
    let secrets = secrets.filter(|name| !name.is_empty()).map(|name| json!({"name": name}));
    list(spec, "imagePullSecrets").extend(secrets);
    let scheduler = of("spark.kubernetes.executor.scheduler.name").or_else(|| of("spark.kubernetes.scheduler.name"));
    if let Some(name) = scheduler {
        spec.insert("schedulerName".to_owned(), json!(name));
    }
    let accounts =
        ["executor", "driver"].map(|role| format!("spark.kubernetes.authenticate.{role}.serviceAccountName"));
    if spec.get("serviceAccount").is_none_or(Value::is_null)
        && let Some(account) = accounts.iter().find_map(|key| of(key))
    {
        spec.insert("serviceAccount".to_owned(), json!(account));
        spec.insert("serviceAccountName".to_owned(), json!(account));
    }
    if let Some(time) = of("spark.kubernetes.executor.terminationGracePeriodSeconds") {
        let seconds: i64 = time.trim_end_matches('s').parse().unwrap_or(0);
        spec.insert("terminationGracePeriodSeconds".to_owned(), json!(seconds));
    }
    let mut mount = |name: String, path: &str, source: (&str, Value)| {
        list(spec, "volumes").push(json!({"name": name, source.0: source.1}));
        let mounts = list(container.as_object_mut().unwrap(), "volumeMounts");
        mounts.push(json!({"name": name, "mountPath": path}));
    };
    mount(
        "spark-conf-volume-exec".into(),
        "/opt/spark/conf",
        ("configMap", json!({"name": "spark-exec-0123456789abcdef-conf-map"})),
    );
    mount("spark-local-dir-1".into(), "/var/data/spark-0", ("emptyDir", json!({})));
    for (secret, path) in family(properties, "spark.kubernetes.executor.secrets.") {
        mount(format!("{secret}-volume"), path, ("secret", json!({"secretName": secret})));
    }
    if let Some(name) = of("spark.kubernetes.executor.hadoopConfigMapName") {
        mount("hadoop-properties".into(), "/opt/hadoop/conf", ("configMap", json!({"name": name})));
    }
    for (key, path) in family(properties, "spark.kubernetes.executor.volumes.") {
        let Some((kind, name)) = key.strip_suffix(".mount.path").and_then(|key| key.split_once('.')) else { continue };
        let option = |option: &str| of(&format!("spark.kubernetes.executor.volumes.{kind}.{name}.options.{option}"));
        let source = match kind {
            "hostPath" => json!({"path": option("path")}),
            "nfs" => json!({"server": option("server"), "path": option("path")}),
            "emptyDir" => json!({"medium": option("medium").unwrap_or_default(), "sizeLimit": option("sizeLimit")}),
            _ => {
                let claim = option("claimName").unwrap_or_default();
                json!({"claimName": claim.replace("OnDemand", &format!("{prefix}-exec-1-pvc-0"))})
            }
        };
        mount(name.to_owned(), path, (kind, source));
    }
}

/// Returns the properties of a family: the rest of the key, and the value.
fn family<'a>(properties: &'a Properties, prefix: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
    properties.iter().filter_map(move |(key, value)| Some((key.strip_prefix(prefix)?, value.trim())))
}

fn extend(target: &mut Map<String, Value>, properties: &Properties, prefix: &str) {
    target.extend(family(properties, prefix).map(|(key, value)| (key.to_owned(), json!(value))));
}

/// Returns a field that is an object; creates an absent one.
fn map<'a>(object: &'a mut Map<String, Value>, field: &str) -> &'a mut Map<String, Value> {
    let value = object.entry(field).or_insert(Value::Null);
    if value.is_null() {
        *value = json!({});
    }
    value.as_object_mut().unwrap()
}

/// Returns a field that is a list; creates an absent one.
fn list<'a>(object: &'a mut Map<String, Value>, field: &str) -> &'a mut Vec<Value> {
    let value = object.entry(field).or_insert(Value::Null);
    if value.is_null() {
        *value = json!([]);
    }
    value.as_array_mut().unwrap()
}
