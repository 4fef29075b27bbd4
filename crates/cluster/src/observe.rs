//! Turns a driver pod into an observation.

use chrono::{DateTime, TimeDelta, Utc};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use uuid::Uuid;

use super::{
    container_state::container_of,
    labels,
    pod_requests::reservation,
    restarts::{rerun, restarted_by},
    slim_pod::{ContainerStatus, SlimPod, time},
};
use sparkgate_submission::{Container, Installation, Phase, PodObservation, SubmissionId};

/// Spark's name for the container, unless a pod template names another (`DEFAULT_DRIVER_CONTAINER_NAME`).
const CONTAINER: &str = "spark-kubernetes-driver";
/// Kubernetes' reason of a pod with scheduling gates (`PodReasonSchedulingGated`).
const GATED: &str = "SchedulingGated";

/// Returns the observation of a driver pod that a watch found, or `None` if nothing on the pod names an attempt: what other
/// clients wrote there must not stop a watch. The identity names the attempt; if there is none, the labels do.
pub(super) fn observation(pod: &SlimPod, gone: bool, installation: Option<&Installation>) -> Option<PodObservation> {
    let signed = signed(pod, installation);
    let is_driver = signed.is_some() || pod.label(labels::ROLE) == Some(labels::DRIVER);
    let genuine = signed.is_some();
    let of = signed.or_else(|| labels_name(pod)).filter(|_| is_driver)?;
    Some(PodObservation { gone, ..observe_pod(pod, of, genuine, installation)? })
}

/// Returns the attempt that the pod's identity names, if this installation signed it for exactly this pod.
fn signed(pod: &SlimPod, installation: Option<&Installation>) -> Option<(SubmissionId, i32)> {
    let metadata = &pod.metadata;
    let (namespace, name) = (metadata.namespace.as_deref()?, metadata.name.as_deref()?);
    installation?.verify(pod.annotation(labels::IDENTITY)?, namespace, name)
}

fn labels_name(pod: &SlimPod) -> Option<(SubmissionId, i32)> {
    Some((pod.label(labels::SUBMISSION_ID)?.parse().ok()?, pod.label(labels::ATTEMPT)?.parse().ok()?))
}

/// Returns the observation of a pod as the driver of this attempt. `None` if the pod has no uid; the API server gives every pod
/// one.
pub(super) fn observation_of(
    pod: &SlimPod,
    of: (SubmissionId, i32),
    installation: Option<&Installation>,
) -> Option<PodObservation> {
    let genuine = signed(pod, installation).is_some_and(|signed| signed == of);
    observe_pod(pod, of, genuine, installation)
}

fn observe_pod(
    pod: &SlimPod,
    of: (SubmissionId, i32),
    genuine: bool,
    installation: Option<&Installation>,
) -> Option<PodObservation> {
    let (metadata, status) = (&pod.metadata, &pod.status);
    let (reason, message) = status.disruption();
    // The container that was the driver's at creation: webhooks may have added others before and after it.
    let driver = driver_container(pod);
    let (rerun, first) = self::status(pod, driver).and_then(|status| rerun(pod, status)).unzip();
    let watched = installation.is_none_or(|installation| {
        pod.label(labels::INSTANCE).is_some_and(|label| Uuid::try_parse(label).is_ok_and(|id| id == installation.id))
    });
    Some(PodObservation {
        genuine,
        labelled: watched
            && pod.label(labels::ROLE) == Some(labels::DRIVER)
            && labels_name(pod).is_some_and(|labels| labels == of),
        submission: of.0,
        attempt: of.1,
        namespace: metadata.namespace.clone().unwrap_or_default(),
        pod: metadata.name.clone().unwrap_or_default(),
        pod_uid: metadata.uid.clone()?,
        phase: phase(status.phase.as_deref()),
        deleting: metadata.deletion_timestamp.is_some(),
        forced: metadata.deletion_timestamp.is_some() && metadata.deletion_grace_period_seconds == Some(0),
        asked_to_go_at: asked_to_go_at(metadata),
        holds_finalizer: metadata.finalizers.iter().flatten().any(|name| name == labels::FINALIZER),
        gone: false,
        node: pod.spec.node_name.clone(),
        pod_ip: status.pod_ip.clone(),
        reason,
        message,
        container: match first.unwrap_or_else(|| container(pod, driver)) {
            Container::Absent => without_node(pod),
            present => present,
        },
        restarted_by: restarted_by(pod, driver),
        rerun,
        reservation: reservation(pod),
    })
}

/// Returns the name of the container that was the driver's when the pod was created, as the pod's annotation notes it. If other
/// clients removed the annotation, it is the container that has Spark's name.
pub(super) fn driver_container(pod: &SlimPod) -> Option<&str> {
    let names = || pod.spec.containers.iter().map(|container| container.name.as_str());
    let noted = pod.annotation(labels::DRIVER_CONTAINER).filter(|noted| names().any(|name| name == *noted));
    noted.or_else(|| names().find(|name| *name == CONTAINER))
}

/// Returns the driver's state for a pod that has no status of its container. If the pod fits on no node, the container
/// waits, with the scheduler's reason and message. If it has scheduling gates, no scheduler has looked at it.
fn without_node(pod: &SlimPod) -> Container {
    let gates: Vec<_> = pod.spec.scheduling_gates.iter().map(|gate| gate.name.as_str()).collect();
    if pod.spec.node_name.is_none() && !gates.is_empty() {
        let message = format!("the scheduler waits until its gates are removed: {}", gates.join(", "));
        return Container::Waiting { reason: Some(GATED.to_owned()), message: Some(message) };
    }
    match pod.status.unscheduled() {
        Some(condition) if pod.spec.node_name.is_none() => {
            Container::Waiting { reason: condition.reason.clone(), message: condition.message.clone() }
        }
        Some(_) | None => Container::Absent,
    }
}

/// Returns when the deletion was requested. `deletionTimestamp` is the end of the grace period; the API server keeps both
/// consistent when a later request shortens the period (`BeforeDelete`).
fn asked_to_go_at(metadata: &ObjectMeta) -> Option<DateTime<Utc>> {
    let until = metadata.deletion_timestamp.as_ref().and_then(time)?;
    until.checked_sub_signed(TimeDelta::try_seconds(metadata.deletion_grace_period_seconds?)?)
}

pub(super) fn phase(text: Option<&str>) -> Phase {
    match text {
        Some("Pending") | None => Phase::Pending,
        Some("Running") => Phase::Running,
        Some("Succeeded") => Phase::Succeeded,
        Some("Failed") => Phase::Failed,
        Some(_) => Phase::Unknown,
    }
}

/// Returns the state of the container of that name. Without a name it is the last container, where Spark puts its own.
pub(super) fn container(pod: &SlimPod, name: Option<&str>) -> Container {
    status(pod, name).map_or(Container::Absent, |status| container_of(status.state.as_ref()))
}

fn status<'a>(pod: &'a SlimPod, name: Option<&str>) -> Option<&'a ContainerStatus> {
    let name = name.or_else(|| pod.spec.containers.last().map(|container| container.name.as_str()))?;
    pod.status.container_statuses.iter().flatten().find(|status| status.name == name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_driver_container_is_found_among_sidecars() {
        let pod: SlimPod = serde_json::from_value(json!({
            "metadata": {"uid": "u", "annotations": {labels::DRIVER_CONTAINER: "spark-kubernetes-driver"},
                "labels": {labels::ROLE: "driver", labels::SUBMISSION_ID: "driver-20260101000000-0001", labels::ATTEMPT: "1"}},
            "spec": {"nodeName": "n", "containers": [{"name": "logger"}, {"name": "spark-kubernetes-driver"},
                {"name": "injected"}]},
            "status": {"phase": "Running", "podIP": "10.0.0.1", "containerStatuses": [
                {"name": "spark-kubernetes-driver", "image": "", "imageID": "", "ready": false, "restartCount": 0,
                 "state": {"terminated": {"exitCode": 3, "reason": "Error", "finishedAt": "2026-01-01T00:00:05Z"}}},
                {"name": "logger", "image": "", "imageID": "", "ready": true, "restartCount": 0,
                 "state": {"running": {}}}]}
        }))
        .unwrap();
        let seen = observation(&pod, false, None).unwrap();
        assert_eq!((seen.attempt, seen.pod_ip.as_deref()), (1, Some("10.0.0.1")));
        let Container::Terminated { exit_code: 3, finished_at: Some(at), .. } = seen.container else {
            panic!("{:?}", seen.container)
        };
        assert_eq!(at.to_rfc3339(), "2026-01-01T00:00:05+00:00");
    }

    #[test]
    fn an_unschedulable_pod_waits_with_the_schedulers_reason() {
        let seen = |status: &str, node: serde_json::Value| {
            let labels = json!({labels::ROLE: "driver", labels::SUBMISSION_ID: "driver-20260101000000-0001", labels::ATTEMPT: "1"});
            let condition = json!({"type": "PodScheduled", "status": status, "reason": "Unschedulable",
                "message": "0/3 nodes are available: 3 Insufficient cpu."});
            let pod = json!({"metadata": {"uid": "u", "labels": labels}, "spec": {"nodeName": node,
                "containers": [{"name": "d"}]}, "status": {"phase": "Pending", "conditions": [condition]}});
            observation(&serde_json::from_value(pod).unwrap(), false, None).unwrap().container
        };
        let Container::Waiting { reason, message } = seen("False", json!(null)) else { panic!() };
        assert_eq!(reason.as_deref(), Some("Unschedulable"));
        assert!(message.unwrap().contains("Insufficient cpu"));
        assert_eq!(seen("True", json!("n")), Container::Absent);
        assert_eq!(seen("False", json!("n")), Container::Absent);
    }

    #[test]
    fn a_pod_that_a_queue_holds_back_waits_for_its_gates() {
        let seen = |node: serde_json::Value, gates: serde_json::Value| {
            let labels = json!({labels::ROLE: "driver", labels::SUBMISSION_ID: "driver-20260101000000-0001", labels::ATTEMPT: "1"});
            let condition = json!({"type": "PodScheduled", "status": "False", "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates"});
            let pod = json!({"metadata": {"uid": "u", "labels": labels}, "spec": {"nodeName": node, "schedulingGates": gates,
                "containers": [{"name": "d"}]}, "status": {"phase": "Pending", "conditions": [condition]}});
            observation(&serde_json::from_value(pod).unwrap(), false, None).unwrap().container
        };
        let gates = json!([{"name": "kueue.x-k8s.io/admission"}, {"name": "kueue.x-k8s.io/topology"}]);
        let Container::Waiting { reason, message } = seen(json!(null), gates) else { panic!() };
        assert_eq!(reason.as_deref(), Some("SchedulingGated"));
        assert!(message.unwrap().ends_with("kueue.x-k8s.io/admission, kueue.x-k8s.io/topology"));
        assert_eq!(seen(json!("n"), json!([])), Container::Absent);
    }

    #[test]
    fn a_pod_with_foreign_labels_gives_no_observation() {
        for labels in [json!({}), json!({labels::ROLE: "driver", labels::SUBMISSION_ID: "../x", labels::ATTEMPT: "1"})]
        {
            let pod = serde_json::from_value(json!({"metadata": {"uid": "u", "labels": labels}})).unwrap();
            assert_eq!(observation(&pod, false, None), None);
        }
    }

    #[test]
    fn a_deletion_was_requested_one_grace_period_before_its_timestamp() {
        let asked = |grace: serde_json::Value| {
            let labels = json!({labels::ROLE: "driver", labels::SUBMISSION_ID: "driver-20260101000000-0001", labels::ATTEMPT: "1"});
            let metadata = json!({"uid": "u", "labels": labels, "deletionTimestamp": "2026-01-01T00:00:30Z",
                "deletionGracePeriodSeconds": grace});
            let pod = serde_json::from_value(json!({"metadata": metadata})).unwrap();
            observation(&pod, false, None).unwrap().asked_to_go_at.map(|at| at.timestamp() % 60)
        };
        assert_eq!((asked(json!(25)), asked(json!(0)), asked(json!(null))), (Some(5), Some(30), None));
        assert_eq!(asked(json!(i64::MAX)), None);
    }

    #[test]
    fn the_reason_of_a_disruption_is_read_from_its_condition() {
        let pod = |status: serde_json::Value| {
            let labels = json!({labels::ROLE: "driver", labels::SUBMISSION_ID: "driver-20260101000000-0001", labels::ATTEMPT: "1"});
            let pod = json!({"metadata": {"uid": "u", "labels": labels}, "status": status});
            observation(&serde_json::from_value(pod).unwrap(), false, None).unwrap().reason
        };
        let condition = |is: &str| json!({"type": "DisruptionTarget", "status": is, "reason": "DeletionByPodGC"});
        assert_eq!(pod(json!({"conditions": [condition("True")]})).as_deref(), Some("DeletionByPodGC"));
        assert_eq!(pod(json!({"conditions": [condition("False")]})), None, "the disruption was called off");
        assert_eq!(pod(json!({"reason": "Evicted", "conditions": [condition("True")]})).as_deref(), Some("Evicted"));
        let kueue = |reason: &str| {
            pod(json!({"conditions": [{"type": "TerminationTarget", "status": "True", "reason": reason}]}))
        };
        assert_eq!(kueue("WorkloadEvicted").as_deref(), Some("WorkloadEvicted"));
        assert_eq!(kueue("WorkloadDeleted"), None, "a client deleted it");
    }

    #[test]
    fn a_driver_that_ended_before_its_deletion_ended_by_itself() {
        let by_deletion = |code: i32, finished: &str, grace: i64| {
            let state = json!({"terminated": {"exitCode": code, "reason": "Error", "finishedAt": finished}});
            let pod: SlimPod = serde_json::from_value(json!({
                "metadata": {"uid": "u", "deletionTimestamp": "2026-01-01T00:01:00Z", "deletionGracePeriodSeconds": grace,
                    "labels": {labels::ROLE: "driver", labels::SUBMISSION_ID: "driver-20260101000000-0001", labels::ATTEMPT: "1"}},
                "spec": {"containers": [{"name": "d"}]},
                "status": {"phase": "Failed", "containerStatuses": [
                    {"name": "d", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state}]}
            }))
            .unwrap();
            !observation(&pod, false, None).unwrap().ended_by_itself()
        };
        assert!(!by_deletion(3, "2026-01-01T00:00:59Z", 0), "it had ended before");
        assert!(by_deletion(3, "2026-01-01T00:01:00Z", 0), "which came first is unknown");
        assert!(by_deletion(3, "2026-01-01T00:00:31Z", 30), "it used its grace period");
        assert!(!by_deletion(3, "2026-01-01T00:00:29Z", 30));
        assert!(by_deletion(143, "2026-01-01T00:00:59Z", 0), "the node's clock is late");
    }
}
