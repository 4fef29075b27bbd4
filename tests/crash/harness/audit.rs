//! The creates of driver pods in the API server's audit log.

use std::{
    collections::BTreeSet,
    fs::File,
    io::{BufRead, BufReader},
    path::Path,
};

use serde::Deserialize;
use serde_json::Value;

use super::adversary::FORGED;

/// A driver pod that the API server created for the program.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Made {
    pub(crate) submission: String,
    pub(crate) attempt: i32,
    pub(crate) uid: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    verb: String,
    object_ref: Option<ObjectRef>,
    response_status: Option<Status>,
    response_object: Option<Value>,
}

#[derive(Deserialize)]
struct ObjectRef {
    namespace: Option<String>,
    subresource: Option<String>,
}

#[derive(Deserialize)]
struct Status {
    code: Option<u16>,
}

/// Returns the driver pods that were created in the namespaces. One is missing if the API server was killed between
/// creating and logging it.
pub(crate) fn made(log: &Path, namespaces: &[String]) -> BTreeSet<Made> {
    let lines = BufReader::new(File::open(log).unwrap()).split(b'\n');
    let of_namespaces: Vec<_> = namespaces.iter().map(|name| format!("\"namespace\":\"{name}\"")).collect();
    let mut made = BTreeSet::new();
    for line in lines.map(Result::unwrap) {
        let text = String::from_utf8_lossy(&line);
        // A line that was cut off by a kill is no JSON.
        let Ok(event) = serde_json::from_str::<Event>(&text) else { continue };
        if !of_namespaces.iter().any(|of_namespace| text.contains(of_namespace)) {
            continue;
        }
        let of_pod = event.object_ref.is_some_and(|object| {
            object.subresource.is_none() && object.namespace.is_some_and(|name| namespaces.contains(&name))
        });
        let answered = event.response_status.and_then(|status| status.code);
        if event.verb == "create" && of_pod && answered == Some(201) {
            made.extend(event.response_object.as_ref().and_then(driver));
        }
    }
    made
}

fn driver(pod: &Value) -> Option<Made> {
    let (meta, label) = (&pod["metadata"], |key: &str| pod["metadata"]["labels"][key].as_str());
    (label("spark-role")? == "driver" && meta["annotations"][FORGED].is_null()).then_some(())?;
    Some(Made {
        submission: label("sparkgate.dev/submission-id")?.to_owned(),
        attempt: label("sparkgate.dev/attempt")?.parse().ok()?,
        uid: meta["uid"].as_str()?.to_owned(),
    })
}
