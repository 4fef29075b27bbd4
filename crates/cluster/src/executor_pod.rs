//! Turns an executor pod into an observation.

use super::{
    labels,
    observe::{container, phase},
    pod_requests::reservation,
    slim_pod::{SlimPod, time},
};
use sparkgate_submission::ExecutorObservation;

/// Spark's label with the number of the executor (`SPARK_EXECUTOR_ID_LABEL`).
pub(super) const EXECUTOR_ID: &str = "spark-exec-id";
/// The value of Spark's label for the role on executors.
pub(super) const EXECUTOR: &str = "executor";
/// Spark's name for the container, unless a pod template names another (`DEFAULT_EXECUTOR_CONTAINER_NAME`).
pub(super) const CONTAINER: &str = "spark-kubernetes-executor";

/// The highest executor id that is recorded for an attempt. Spark counts the ids up from 1.
const MOST: i64 = 100_000;

/// Returns the observation of an executor pod. `None` if its labels aren't ours, or if it has no number: Spark writes `EXECID`
/// where a controller of the cluster numbers the pods, and doesn't count those pods as executors either
/// (`ExecutorPodsSnapshot`). A pod that no other pod owns was not created by a driver, which makes itself the owner
/// (`BasicExecutorFeatureStep`).
pub(super) fn observation(pod: &SlimPod, gone: bool) -> Option<ExecutorObservation> {
    let (metadata, status) = (&pod.metadata, &pod.status);
    let (reason, message) = status.disruption();
    if pod.label(labels::ROLE) != Some(EXECUTOR) {
        return None;
    }
    let owner = metadata.owner_references.iter().flatten().find(|owner| owner.kind == "Pod")?;
    let named = pod.spec.containers.iter().any(|container| container.name == CONTAINER);
    Some(ExecutorObservation {
        submission: pod.label(labels::SUBMISSION_ID)?.parse().ok()?,
        attempt: pod.label(labels::ATTEMPT)?.parse().ok()?,
        executor_id: pod.label(EXECUTOR_ID)?.parse().ok().filter(|id| *id <= MOST)?,
        driver_uid: owner.uid.clone(),
        pod_name: metadata.name.clone().unwrap_or_default(),
        pod_uid: metadata.uid.clone()?,
        phase: phase(status.phase.as_deref()),
        deleting: metadata.deletion_timestamp.is_some(),
        gone,
        node: pod.spec.node_name.clone(),
        reason,
        message,
        container: container(pod, named.then_some(CONTAINER)),
        created_at: metadata.creation_timestamp.as_ref().and_then(time),
        reservation: reservation(pod),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use sparkgate_submission::{Container, Phase};

    fn executor(id: &str, containers: &Value, ended: &str) -> SlimPod {
        let labels = json!({"spark-role": "executor", EXECUTOR_ID: id,
            labels::SUBMISSION_ID: "driver-20260101000000-0001", labels::ATTEMPT: "2"});
        serde_json::from_value(json!({
            "metadata": {"name": "pi-exec-3", "uid": "u", "labels": labels, "creationTimestamp": "2026-01-01T00:00:01Z",
                "ownerReferences": [{"kind": "Pod", "uid": "driver-uid"}],
                "managedFields": "of no interest"},
            "spec": {"nodeName": "n", "containers": containers},
            "status": {"phase": "Failed", "reason": "Evicted", "containerStatuses": [
                {"name": ended, "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}]}
        }))
        .unwrap()
    }

    #[test]
    fn spark_container_of_an_executor_is_found_by_name_or_position() {
        let by_name = json!([{"name": "spark-kubernetes-executor"}, {"name": "injected"}]);
        let by_place = json!([{"name": "logger"}, {"name": "mine"}]);
        for (containers, ended) in [(by_name, "spark-kubernetes-executor"), (by_place, "mine")] {
            let observed = observation(&executor("3", &containers, ended), true).unwrap();
            assert_eq!(
                (observed.attempt, observed.executor_id, observed.phase, observed.gone),
                (2, 3, Phase::Failed, true)
            );
            assert_eq!(observed.created_at.unwrap().to_rfc3339(), "2026-01-01T00:00:01+00:00");
            assert!(
                matches!(observed.container, Container::Terminated { exit_code: 137, .. }),
                "{:?}",
                observed.container
            );
        }
    }

    #[test]
    fn a_pod_without_an_executor_number_is_no_executor() {
        for id in ["EXECID", "", "1a", "100001"] {
            assert_eq!(observation(&executor(id, &json!([]), "x"), false), None, "{id}");
        }
    }
}
