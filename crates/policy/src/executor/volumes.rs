//! The volumes of an executor: `MountVolumesFeatureStep`, `MountSecretsFeatureStep` and `HadoopConfExecutorFeatureStep`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::append;
use crate::judged::Judged;

const PREFIX: &str = "spark.kubernetes.executor.volumes.";

/// The part of a claim's name that Spark replaces by a name of its own.
pub(crate) const ON_DEMAND: &str = "OnDemand";

/// Adds the volumes to a spec, and returns the claims that the driver creates for them.
pub(super) fn complete(
    spec: &mut Map<String, Value>,
    judged: &Judged<'_>,
    unreadable: &mut Vec<(String, String)>,
) -> BTreeMap<String, Value> {
    let mut volumes = Vec::new();
    let mut claims = BTreeMap::new();
    for (kind, name) in names(judged, unreadable) {
        let option = |option: &str| judged.property(&format!("{PREFIX}{kind}.{name}.options.{option}"));
        volumes.push(json!({ "name": name, kind: source(kind, &option) }));
        if let ("persistentVolumeClaim", Some(class), Some(size)) = (kind, option("storageClass"), option("sizeLimit"))
        {
            claims.insert(name.to_owned(), claim(judged, name, class, size));
        }
    }
    for (secret, _) in judged.family("spark.kubernetes.executor.secrets.") {
        volumes.push(json!({ "name": format!("{secret}-volume"), "secret": { "secretName": secret } }));
    }
    let maps = ["spark.kubernetes.executor.hadoopConfigMapName", "spark.kubernetes.hadoop.configMapName"];
    if let Some(map) = judged.first(&maps) {
        volumes.push(json!({ "name": "hadoop-properties", "configMap": { "name": map } }));
    }
    append(spec, "volumes", volumes);
    claims
}

/// Returns type and name of each volume. A key that names none is unreadable.
fn names<'a>(judged: &'a Judged<'_>, unreadable: &mut Vec<(String, String)>) -> BTreeSet<(&'a str, &'a str)> {
    let mut names = BTreeSet::new();
    for (key, _) in judged.family(PREFIX) {
        let mut parts = key.splitn(3, '.');
        match (parts.next(), parts.next(), parts.next()) {
            (Some(kind), Some(name), Some(_)) if !kind.is_empty() && !name.is_empty() => {
                names.insert((kind, name));
            }
            _ => unreadable.push((format!("{PREFIX}{key}"), "it names no volume".to_owned())),
        }
    }
    names
}

/// Returns the source of a volume. One of a type that Spark doesn't know has no fields, and is refused by its type.
fn source<'a>(kind: &str, option: &impl Fn(&str) -> Option<&'a str>) -> Value {
    match kind {
        "hostPath" => json!({ "path": option("path").unwrap_or_default() }),
        "emptyDir" => match option("sizeLimit") {
            Some(limit) => json!({ "medium": option("medium").unwrap_or_default(), "sizeLimit": limit }),
            None => json!({ "medium": option("medium").unwrap_or_default() }),
        },
        "nfs" => json!({ "server": option("server").unwrap_or_default(), "path": option("path").unwrap_or_default() }),
        "persistentVolumeClaim" => json!({ "claimName": option("claimName").unwrap_or_default() }),
        _ => json!({}),
    }
}

fn claim(judged: &Judged<'_>, name: &str, class: &str, size: &str) -> Value {
    let entries = |kind: &str| {
        let prefix = format!("{PREFIX}persistentVolumeClaim.{name}.{kind}.");
        let entries = judged.family(&prefix).map(|(key, value)| (key.to_owned(), Value::from(value)));
        Value::Object(entries.collect())
    };
    json!({
        "metadata": { "labels": entries("label"), "annotations": entries("annotation") },
        "spec": { "storageClassName": class, "resources": { "requests": { "storage": size } } },
    })
}
