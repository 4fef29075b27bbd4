//! The result of a case, in a form that can be compared: leaves by path, or the message of a refusal.

mod unordered;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::case::Case;

/// Compact JSON by path.
pub(crate) type Leaves = BTreeMap<String, String>;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Answer {
    Objects(Leaves),
    /// Spark's message. Empty if it ended without one, such as for `--help` or a `NullPointerException`.
    Refused(String),
}

impl Answer {
    /// Converts objects in the order in which they were sent.
    pub(crate) fn objects(mut objects: Vec<Value>, case: &Case) -> Self {
        if volumes(case) > 1 {
            unordered::volumes(&mut objects);
        }
        let mut leaves = Leaves::new();
        let mut order = Vec::new();
        for object in objects {
            let kind = object["kind"].as_str().unwrap_or("?").to_owned();
            let main = object["data"].get("spark.properties").is_some();
            let taken = order.iter().filter(|id: &&String| id.split('#').next() == Some(&kind)).count();
            let id = match taken {
                _ if main => "Config".to_owned(),
                0 => kind,
                more => format!("{kind}#{}", more + 1),
            };
            let mut object = comparable(object);
            for (id, part) in take_out(&mut object) {
                collect(&part, id, &mut leaves);
            }
            collect(&object, &id, &mut leaves);
            order.push(id);
        }
        leaves.insert("order".into(), Value::from(order.join(" ")).to_string());
        Self::Objects(leaves)
    }
}

/// Returns the number of the driver's volumes that come from keys, by type and name.
fn volumes(case: &Case) -> usize {
    let keys = case.request.spark_properties.keys().chain(case.request.app_args.iter());
    let name = |key: &String| {
        let rest = key.split("spark.kubernetes.driver.volumes.").nth(1)?;
        Some(rest.split('.').take(2).map(str::to_owned).collect::<Vec<_>>())
    };
    let secret = |key: &String| key.contains("spark.kubernetes.driver.secrets.").then(|| vec![key.clone()]);
    keys.filter_map(|key| name(key).or_else(|| secret(key))).collect::<BTreeSet<_>>().len()
}

fn comparable(mut object: Value) -> Value {
    if let Some(text) = object.pointer_mut("/data/spark.properties") {
        *text = properties(text.as_str().unwrap_or_default());
    }
    unordered::hadoop_files(&mut object);
    let containers = object.pointer_mut("/spec/containers").and_then(Value::as_array_mut);
    for container in containers.into_iter().flatten() {
        unordered::variables(container);
        unordered::local_dirs(container);
    }
    object
}

/// Returns the lines of a properties file by key, with their escapes.
fn properties(text: &str) -> Value {
    let mut lines = Map::new();
    for (index, line) in text.split('\n').enumerate() {
        let (key, value) = match line {
            comment if index < 2 => (format!("line {index}"), comment),
            "" => ("end".to_owned(), ""),
            line => split(line),
        };
        if let Some(twice) = lines.insert(key.clone(), value.into()) {
            lines.insert(format!("{key} (again)"), twice);
        }
    }
    lines.into()
}

/// Splits a properties line into key and value, at its first `=` without a backslash.
fn split(line: &str) -> (String, &str) {
    let mut escaped = false;
    for (at, c) in line.char_indices() {
        if c == '=' && !escaped {
            return (line[..at].to_owned(), &line[at + 1..]);
        }
        escaped = c == '\\' && !escaped;
    }
    (line.to_owned(), "")
}

/// Takes out the driver's container, which is the pod's last, and the properties: these have short paths of their own.
fn take_out(object: &mut Value) -> Vec<(&'static str, Value)> {
    let mut parts = Vec::new();
    if let Some(properties) = object.pointer_mut("/data/spark.properties") {
        parts.push(("Properties", properties.take()));
    }
    if object["kind"] == "Pod"
        && let Some(containers) = object.pointer_mut("/spec/containers").and_then(Value::as_array_mut)
    {
        parts.extend(containers.pop().map(|driver| ("Driver", driver)));
    }
    parts
}

/// Collects scalars, lists of scalars and empty values, by path. Items with names of their own are identified by these,
/// and their order is a leaf.
fn collect(value: &Value, path: &str, leaves: &mut Leaves) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (name, field) in fields {
                let name = Value::from(name.as_str()).to_string();
                let name = &name[1..name.len() - 1];
                let plain = name.chars().all(|c| c.is_ascii_alphanumeric());
                let inner = if plain { format!("{path}.{name}") } else { format!("{path}[{name}]") };
                collect(field, &inner, leaves);
            }
        }
        Value::Array(items) if items.iter().any(|item| item.is_object() || item.is_array()) => {
            let names: BTreeSet<&str> = items.iter().filter_map(|item| item["name"].as_str()).collect();
            let named = names.len() == items.len();
            if named {
                let order = items.iter().map(|item| item["name"].clone()).collect::<Vec<_>>();
                leaves.insert(format!("{path}.order"), json!(order).to_string());
            }
            for (index, item) in items.iter().enumerate() {
                let id = if named { item["name"].as_str().unwrap_or_default().to_owned() } else { index.to_string() };
                collect(item, &format!("{path}[{id}]"), leaves);
            }
        }
        leaf => {
            leaves.insert(path.to_owned(), leaf.to_string());
        }
    }
}
