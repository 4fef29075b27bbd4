//! From the text of one pod to what it shows. A pod that can't be read is passed over, by name: it must not stop the rest.

use serde_json::Value;

use super::{PodKey, Seen};
use crate::{
    cluster::{
        executor_pod::{self, EXECUTOR_ID},
        labels, observe,
        slim_pod::SlimPod,
    },
    submission::ExecutorKey,
};

/// One pod, as far as it could be read.
#[derive(Debug, Default)]
pub(super) struct Sorted {
    pub(super) seen: Option<Seen>,
    /// Which one it is, if it is one of ours: known of some pods that can't be read, too.
    pub(super) key: Option<Key>,
    pub(super) resource_version: Option<String>,
}

#[derive(Debug, PartialEq)]
pub(super) enum Key {
    Driver(PodKey),
    Executor(ExecutorKey),
}

pub(super) fn sort(text: &str, gone: bool) -> Sorted {
    serde_json::from_str(text).map_or_else(|error| unreadable(text, &error), |pod| sort_pod(pod, gone))
}

/// The same of a pod that is read.
pub(super) fn sort_pod(pod: SlimPod, gone: bool) -> Sorted {
    let (seen, key) = match pod.label(ROLE) {
        Some("driver") => observe::observation(&pod, gone).map(|seen| {
            let key = Key::Driver((seen.submission.clone(), seen.attempt, seen.pod_uid.clone()));
            (Seen::Driver(Box::new(seen)), key)
        }),
        Some("executor") => executor_pod::observation(&pod, gone).map(|seen| {
            let key = Key::Executor(seen.key());
            (Seen::Executor(Box::new(seen)), key)
        }),
        _ => None,
    }
    .unzip();
    Sorted { seen, key, resource_version: pod.metadata.resource_version }
}

/// Spark's label that tells drivers from executors.
const ROLE: &str = "spark-role";

fn unreadable(text: &str, error: &serde_json::Error) -> Sorted {
    let value: Value = serde_json::from_str(text).unwrap_or_default();
    let metadata = &value["metadata"];
    let field = |name: &str| metadata[name].as_str().unwrap_or_default();
    tracing::error!(namespace = field("namespace"), pod = field("name"), %error, "a pod can't be read and is passed over");
    Sorted { seen: None, key: key(metadata), resource_version: metadata["resourceVersion"].as_str().map(str::to_owned) }
}

fn key(metadata: &Value) -> Option<Key> {
    let label = |key: &str| metadata["labels"][key].as_str();
    let submission = label(labels::SUBMISSION_ID)?.parse().ok()?;
    let attempt = label(labels::ATTEMPT)?.parse().ok()?;
    match label(ROLE)? {
        "driver" => Some(Key::Driver((submission, attempt, metadata["uid"].as_str()?.to_owned()))),
        "executor" => Some(Key::Executor((submission, attempt, label(EXECUTOR_ID)?.parse().ok()?))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pod_that_cannot_be_read_still_exists() {
        let pod = |role: &str, phase: Value| {
            json!({"metadata": {"uid": "u", "resourceVersion": "7", "labels": {ROLE: role, EXECUTOR_ID: "3",
                labels::SUBMISSION_ID: "driver-1", labels::ATTEMPT: "1"}}, "status": {"phase": phase}})
            .to_string()
        };
        for role in ["driver", "executor"] {
            let (good, bad) = (sort(&pod(role, json!("Running")), false), sort(&pod(role, json!({"of": 1})), false));
            assert!(good.seen.is_some() && bad.seen.is_none());
            assert!(good.key.is_some() && good.key == bad.key, "{good:?}, {bad:?}");
            assert_eq!((good.resource_version.as_deref(), bad.resource_version.as_deref()), (Some("7"), Some("7")));
        }
    }
}
