//! Sorts what Spark takes from a hash map, or shuffles, so that it can be compared.

use std::collections::BTreeMap;

use serde_json::Value;

/// Sorts variables: `spark.kubernetes.driverEnv.*` is between two variables of Spark's own; `secretKeyRef.*` follows as
/// one block.
pub(super) fn variables(container: &mut Value) {
    let Some(variables) = container.get_mut("env").and_then(Value::as_array_mut) else { return };
    let first = variables.iter().position(|variable| variable["name"] == "SPARK_APPLICATION_ID");
    let bound =
        |variable: &Value| variable["name"] == "SPARK_DRIVER_BIND_ADDRESS" && variable.get("valueFrom").is_some();
    if let (Some(first), Some(last)) = (first, variables.iter().rposition(bound))
        && first < last
    {
        variables[first + 1..last].sort_by_key(|variable| variable["name"].as_str().map(str::to_owned));
    }
    let secret = |variable: &Value| variable.pointer("/valueFrom/secretKeyRef").is_some();
    for run in variables.chunk_by_mut(|a, b| secret(a) && secret(b)) {
        run.sort_by_key(|variable| variable["name"].as_str().map(str::to_owned));
    }
}

/// Sorts local directories: Spark shuffles them, and mounts its volumes in that order.
pub(super) fn local_dirs(container: &mut Value) {
    let mut directories = Vec::new();
    for variable in container.get_mut("env").and_then(Value::as_array_mut).into_iter().flatten() {
        if variable["name"] == "SPARK_LOCAL_DIRS" && variable["value"].is_string() {
            let mut sorted: Vec<&str> = variable["value"].as_str().unwrap_or_default().split(',').collect();
            sorted.sort_unstable();
            directories = sorted.iter().map(|directory| (*directory).to_owned()).collect();
            variable["value"] = sorted.join(",").into();
        }
    }
    let mounts = container.get_mut("volumeMounts").and_then(Value::as_array_mut).into_iter().flatten();
    let mounts: Vec<&mut Value> = mounts
        .filter(|mount| mount["name"].as_str().is_some_and(|name| name.starts_with("spark-local-dir-")))
        .collect();
    let mut paths: Vec<Value> = mounts.iter().map(|mount| mount["mountPath"].clone()).collect();
    paths.sort_by_key(Value::to_string);
    if directories.len() == mounts.len() {
        mounts.into_iter().zip(paths).for_each(|(mount, path)| mount["mountPath"] = path);
    }
}

/// Sorts Hadoop's configuration files: Spark lists their directory in the order of its file system.
pub(super) fn hadoop_files(object: &mut Value) {
    for volume in object.pointer_mut("/spec/volumes").and_then(Value::as_array_mut).into_iter().flatten() {
        let own = volume["name"] == "hadoop-properties";
        if let Some(items) = volume.pointer_mut("/configMap/items").and_then(Value::as_array_mut).filter(|_| own) {
            items.sort_by_key(|item| item["key"].to_string());
        }
    }
}

/// Sorts volumes and secrets by name, and names each claim after its volume. If several come from keys, their order has
/// no meaning, and the number in the name of a claim depends on it.
pub(super) fn volumes(objects: &mut [Value]) {
    let mut claims = BTreeMap::new();
    for pod in objects.iter_mut().filter(|object| object["kind"] == "Pod") {
        for volume in pod.pointer_mut("/spec/volumes").and_then(Value::as_array_mut).into_iter().flatten() {
            let name = volume["name"].as_str().unwrap_or_default().to_owned();
            let Some(claim) = volume.pointer_mut("/persistentVolumeClaim/claimName") else { continue };
            let own = claim.as_str().unwrap_or_default().to_owned();
            if let Some((before, after)) = own.split_once("-driver-pvc-") {
                let rest = after.trim_start_matches(|c: char| c.is_ascii_digit());
                let called = format!("{before}-driver-pvc-({name}){rest}");
                *claim = called.as_str().into();
                claims.insert(own, called);
            }
        }
        let by_name = |item: &Value| (item["name"].to_string(), item.to_string());
        if let Some(volumes) = pod.pointer_mut("/spec/volumes").and_then(Value::as_array_mut) {
            volumes.sort_by_key(by_name);
        }
        for container in pod.pointer_mut("/spec/containers").and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(mounts) = container.get_mut("volumeMounts").and_then(Value::as_array_mut) {
                mounts.sort_by_key(by_name);
            }
        }
    }
    let is_claim = |object: &Value| object["kind"] == "PersistentVolumeClaim";
    for claim in objects.iter_mut().filter(|object| is_claim(object)) {
        let own = claim["metadata"]["name"].as_str().unwrap_or_default();
        if let Some(called) = claims.get(own) {
            claim["metadata"]["name"] = called.as_str().into();
        }
    }
    for run in objects.chunk_by_mut(|a, b| is_claim(a) && is_claim(b)) {
        run.sort_by_key(|claim| claim["metadata"]["name"].to_string());
    }
}
