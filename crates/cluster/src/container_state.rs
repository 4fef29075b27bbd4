//! The state of a container, as its kubelet reports it.

use k8s_openapi::api::core::v1::ContainerState;

use super::slim_pod::time;
use sparkgate_submission::Container;

/// Converts the state of a container; one that isn't reported is absent.
pub(super) fn container_of(state: Option<&ContainerState>) -> Container {
    match state {
        Some(ContainerState { terminated: Some(ended), .. }) => Container::Terminated {
            exit_code: ended.exit_code,
            reason: ended.reason.clone(),
            message: ended.message.clone(),
            started_at: ended.started_at.as_ref().and_then(time),
            finished_at: ended.finished_at.as_ref().and_then(time),
        },
        Some(ContainerState { running: Some(running), .. }) => {
            Container::Running { started_at: running.started_at.as_ref().and_then(time) }
        }
        Some(ContainerState { waiting: Some(waiting), .. }) => {
            Container::Waiting { reason: waiting.reason.clone(), message: waiting.message.clone() }
        }
        Some(_) | None => Container::Absent,
    }
}
