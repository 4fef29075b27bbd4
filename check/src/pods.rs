//! Driver pods as `kubectl get pods --watch -o json` prints them: one document after the other, one for each change.

use std::{collections::BTreeMap, fs::File, io::BufReader, path::Path};

use anyhow::Context;
use serde_json::Value;
use sparkgate_check::history::Pod;

pub(super) fn read(file: &Path) -> anyhow::Result<Vec<Pod>> {
    let opened = File::open(file).with_context(|| format!("opening {}", file.display()))?;
    let mut pods: BTreeMap<String, Pod> = BTreeMap::new();
    for document in serde_json::Deserializer::from_reader(BufReader::new(opened)).into_iter::<Value>() {
        let document = match document {
            Ok(document) => document,
            // The last one is cut off when the command ends.
            Err(error) if error.is_eof() => break,
            Err(error) => return Err(error).with_context(|| format!("reading {}", file.display())),
        };
        // The first may be a list.
        let listed = document["items"].as_array().cloned();
        for seen in listed.unwrap_or_else(|| vec![document]).iter().filter_map(pod) {
            let pod = pods.entry(seen.uid.clone()).or_insert_with(|| seen.clone());
            pod.started |= seen.started;
        }
    }
    Ok(pods.into_values().collect())
}

/// Returns a driver of Sparkgate.
fn pod(pod: &Value) -> Option<Pod> {
    let (metadata, status) = (&pod["metadata"], &pod["status"]);
    let label = |name: &str| metadata["labels"][name].as_str();
    let containers = status["containerStatuses"].as_array().into_iter().flatten();
    let started = containers.flat_map(|container| [&container["state"], &container["lastState"]]).any(has_run);
    Some(Pod {
        uid: metadata["uid"].as_str()?.to_owned(),
        submission: label("sparkgate.dev/submission-id")?.to_owned(),
        attempt: label("sparkgate.dev/attempt").map_or(Some(1), |attempt| attempt.parse().ok())?,
        started,
    })
}

/// Returns whether a container in this state runs, or has run.
fn has_run(state: &Value) -> bool {
    !state["running"].is_null() || !state["terminated"].is_null()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use serde_json::json;

    use super::*;

    #[test]
    fn pods_are_read_from_what_kubectl_prints() {
        let pod = |uid: &str, attempt: Option<&str>, state: Value| {
            let mut labels = json!({"sparkgate.dev/submission-id": "driver-1"});
            if let Some(attempt) = attempt {
                labels["sparkgate.dev/attempt"] = attempt.into();
            }
            json!({"metadata": {"uid": uid, "labels": labels}, "status": {"containerStatuses": [{"state": state}]}})
        };
        let running = json!({"running": {"startedAt": "2026-01-02T03:04:05Z"}});
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let first = json!({"kind": "List", "items": [pod("u1", None, json!({"waiting": {}}))]});
        for document in [first, pod("u1", None, running), pod("u1", None, json!({})), pod("u2", Some("2"), json!({}))] {
            writeln!(file, "{document:#}").unwrap();
        }
        write!(file, "{{\"metadata\": ").unwrap();
        let seen = |uid: &str, attempt, started| Pod {
            uid: uid.to_owned(),
            submission: "driver-1".to_owned(),
            attempt,
            started,
        };
        assert_eq!(read(file.path()).unwrap(), [seen("u1", 1, true), seen("u2", 2, false)]);
    }
}
