//! The objects of the chart are those of `deploy/kubernetes.yaml`: the same rights, the same pods, the same network policy.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::chart::helm::{MANIFESTS, template};

type Objects = BTreeMap<String, Value>;

#[test]
fn the_objects_are_those_of_the_manifests() {
    let manifests: Vec<Value> = serde_saphyr::from_multiple(include_str!("../../../deploy/kubernetes.yaml")).unwrap();
    // Helm creates the namespace of a release itself.
    let manifests = manifests
        .into_iter()
        .filter(|object| (&object["kind"], &object["metadata"]["name"]) != (&json!("Namespace"), &json!("sparkgate")));
    let chart = template(&["--values", MANIFESTS]).into_iter();
    let chart = chart.filter(|object| object["metadata"]["annotations"]["helm.sh/hook"].is_null());
    let (manifests, chart) = (comparable(manifests), comparable(chart));
    let names = |objects: &Objects| objects.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&chart), names(&manifests));
    for (name, object) in manifests {
        assert_eq!(chart[&name], object, "{name}: the first is the chart's, the second that of the manifests");
    }
}

/// Returns the objects by kind, namespace and name, without what may differ.
fn comparable(objects: impl Iterator<Item = Value>) -> Objects {
    let named = |mut object: Value| {
        reduce(&mut object);
        let metadata = &object["metadata"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        (format!("{} {}/{}", text(&object["kind"]), text(&metadata["namespace"]), text(&metadata["name"])), object)
    };
    objects.map(named).collect()
}

/// Removes the labels that only tell objects apart, annotations of Helm, and defaults; sorts lists of variables; parses
/// properties.
fn reduce(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|key, value| {
                let is_mark = ["app.kubernetes.io/", "helm.sh/", "checksum/"].iter().any(|mark| key.starts_with(mark));
                let is_default = key == "type" && value == "ClusterIP";
                !is_mark && !is_default
            });
            for (key, member) in members.iter_mut() {
                match (key.as_str(), &member) {
                    ("env", Value::Array(variables)) => *member = by_name(variables),
                    ("spark-defaults.conf", Value::String(text)) => *member = properties(text),
                    _ => reduce(member),
                }
            }
            members.retain(|_, value| value.as_object().is_none_or(|object| !object.is_empty()));
        }
        Value::Array(values) => values.iter_mut().for_each(reduce),
        _ => {}
    }
}

fn by_name(variables: &[Value]) -> Value {
    let named = variables.iter().map(|variable| (variable["name"].as_str().unwrap().to_owned(), variable.clone()));
    Value::Object(named.collect::<Map<_, _>>())
}

fn properties(text: &str) -> Value {
    json!(sparkgate_spark::parse_properties(text))
}
