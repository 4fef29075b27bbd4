//! Turns the text of one pod into an observation. A pod that can't be read is logged by name and skipped: it must not stop the
//! watch of the others.

use serde_json::Value;

use super::report::{PodKey, WatchReport};
use crate::{
    executor_pod::{self, EXECUTOR_ID},
    labels, observe,
    slim_pod::SlimPod,
};
use sparkgate_submission::{ExecutorKey, Installation};

/// One pod, as far as it could be read.
#[derive(Debug, Default)]
pub(super) struct Sorted {
    pub(super) report: Option<WatchReport>,
    /// The pod's key, if it is one of ours. It is also known for some pods that can't be read.
    pub(super) key: Option<Key>,
    pub(super) resource_version: Option<String>,
}

#[derive(Debug, PartialEq)]
pub(super) enum Key {
    Driver(PodKey),
    Executor(ExecutorKey),
}

pub(super) fn sort(text: &str, gone: bool, installation: Option<&Installation>) -> Sorted {
    serde_json::from_str(text).map_or_else(|error| unreadable(text, &error), |pod| sort_pod(pod, gone, installation))
}

/// Does the same for a pod that has been parsed.
pub(super) fn sort_pod(pod: SlimPod, gone: bool, installation: Option<&Installation>) -> Sorted {
    let driver = observe::observation(&pod, gone, installation).map(|observed| {
        let key = Key::Driver((observed.submission.clone(), observed.attempt, observed.pod_uid.clone()));
        (WatchReport::Driver(Box::new(observed)), key)
    });
    let executor = || {
        let observed = executor_pod::observation(&pod, gone)?;
        let key = Key::Executor(observed.key());
        Some((WatchReport::Executor(Box::new(observed)), key))
    };
    let (report, key) = driver.or_else(executor).unzip();
    Sorted { report, key, resource_version: pod.metadata.resource_version }
}

fn unreadable(text: &str, error: &serde_json::Error) -> Sorted {
    let value: Value = serde_json::from_str(text).unwrap_or_default();
    let metadata = &value["metadata"];
    let field = |name: &str| metadata[name].as_str().unwrap_or_default();
    tracing::error!(namespace = field("namespace"), pod = field("name"), %error, "a pod can't be read and is skipped");
    Sorted {
        report: None,
        key: key(metadata),
        resource_version: metadata["resourceVersion"].as_str().map(str::to_owned),
    }
}

fn key(metadata: &Value) -> Option<Key> {
    let label = |key: &str| metadata["labels"][key].as_str();
    let submission = label(labels::SUBMISSION_ID)?.parse().ok()?;
    let attempt = label(labels::ATTEMPT)?.parse().ok()?;
    match label(labels::ROLE)? {
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
    fn a_pod_that_cannot_be_read_keeps_its_key_and_version() {
        let pod = |role: &str, phase: Value| {
            json!({"metadata": {"uid": "u", "resourceVersion": "7", "ownerReferences": [{"kind": "Pod", "uid": "d"}],
                "labels": {labels::ROLE: role, EXECUTOR_ID: "3",
                labels::SUBMISSION_ID: "driver-1", labels::ATTEMPT: "1"}}, "status": {"phase": phase}})
            .to_string()
        };
        for role in ["driver", "executor"] {
            let (good, bad) =
                (sort(&pod(role, json!("Running")), false, None), sort(&pod(role, json!({"of": 1})), false, None));
            assert!(good.report.is_some() && bad.report.is_none());
            assert!(good.key.is_some() && good.key == bad.key, "{good:?}, {bad:?}");
            assert_eq!((good.resource_version.as_deref(), bad.resource_version.as_deref()), (Some("7"), Some("7")));
        }
    }
}
