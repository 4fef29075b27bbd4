//! What makes a kubelet start a driver's container a second time. An attempt's driver runs once, so the gateway creates no pod
//! that allows it, and recognizes one that does.
//!
//! Since Kubernetes 1.35 a container's own `restartPolicy` and `restartPolicyRules` count instead of the policy of its pod, and a
//! rule of any container can have all containers started again (`RestartAllContainers`). Independent of any policy, a kubelet
//! starts a container again that its runtime has lost (`ShouldContainerBeRestarted`).

use k8s_openapi::api::core::v1::{Container as PodContainer, ContainerState, Pod, PodSpec};

use super::{
    container_state::container_of,
    labels,
    slim_pod::{Container as SlimContainer, ContainerStatus, RestartAction, RestartPolicy, SlimPod},
};
use sparkgate_submission::{Container, Rerun};

const NEVER: &str = "Never";
const ALL_CONTAINERS: &str = "RestartAllContainers";
/// The reason with which a kubelet reports a container that its runtime has lost.
const LOST: &str = "ContainerStatusUnknown";

/// Removes from a pod whatever makes a kubelet start the container of this name again after an end.
pub(super) fn never_restart(spec: &mut PodSpec, driver: &str) {
    spec.restart_policy = Some(NEVER.to_owned());
    let all = spec.containers.iter_mut().chain(spec.init_containers.iter_mut().flatten());
    for PodContainer { name, restart_policy, restart_policy_rules, .. } in all {
        if name == driver {
            (*restart_policy, *restart_policy_rules) = (None, None);
        }
        if let Some(rules) = restart_policy_rules {
            rules.retain(|rule| rule.action != ALL_CONTAINERS);
            if rules.is_empty() {
                *restart_policy_rules = None;
            }
        }
    }
}

/// Returns the text of a stored pod without what [`never_restart`] removes, if it has any: releases before kept it.
///
/// # Errors
/// The text isn't that of a pod.
pub(super) fn without_restarts(pod: &str) -> serde_json::Result<Option<String>> {
    // Nearly all pods have the one policy that this gateway sets.
    if pod.matches("\"restartPolicy\"").count() <= 1 && !pod.contains("\"restartPolicyRules\"") {
        return Ok(None);
    }
    let mut pod: Pod = serde_json::from_str(pod)?;
    let noted = pod.metadata.annotations.as_ref().and_then(|all| all.get(labels::DRIVER_CONTAINER)).cloned();
    let Some(spec) = &mut pod.spec else { return Ok(None) };
    let last = || spec.containers.last().map(|container| container.name.clone());
    let driver = noted.or_else(last).unwrap_or_default();
    never_restart(spec, &driver);
    serde_json::to_string(&pod).map(Some)
}

/// Returns the field by which a kubelet may start the driver's container again after an end, with its value. Without a name, the
/// driver's is the last container.
pub(super) fn restarted_by(pod: &SlimPod, driver: Option<&str>) -> Option<String> {
    let spec = &pod.spec;
    let last = spec.containers.len().wrapping_sub(1);
    let is_drivers = |at: usize, container: &SlimContainer| driver.map_or(at == last, |name| container.name == name);
    for (at, container) in spec.containers.iter().enumerate() {
        if !is_drivers(at, container) {
            continue;
        }
        let own = container.restart_policy.map(|policy| (policy, format!("spec.containers[{at}].restartPolicy")));
        let of_pod = || spec.restart_policy.map(|policy| (policy, "spec.restartPolicy".to_owned()));
        if let Some((policy, field)) = own.or_else(of_pod)
            && policy != RestartPolicy::Never
        {
            return Some(format!("{field}: {policy:?}"));
        }
        if container.restart_policy_rules.as_ref().is_some_and(|rules| !rules.is_empty()) {
            return Some(format!("spec.containers[{at}].restartPolicyRules"));
        }
    }
    let restarts_all = |container: &SlimContainer| {
        container.restart_policy_rules.iter().flatten().any(|rule| rule.action == RestartAction::RestartAllContainers)
    };
    [("containers", &spec.containers), ("initContainers", &spec.init_containers)].into_iter().find_map(|(kind, all)| {
        let at = all.iter().position(restarts_all)?;
        Some(format!("spec.{kind}[{at}].restartPolicyRules with {ALL_CONTAINERS}"))
    })
}

/// Returns whether the driver's container was started again, and how its run before ended. A container that was created anew
/// because it had never started wasn't.
pub(super) fn rerun(pod: &SlimPod, status: &ContainerStatus) -> Option<(Rerun, Container)> {
    if status.restart_count <= 0 {
        return None;
    }
    let before = match container_of(status.last_state.as_deref()) {
        ended @ Container::Terminated { .. } => ended,
        Container::Waiting { .. } | Container::Running { .. } => return None,
        Container::Absent => lost(),
    };
    let is_deleted = pod.metadata.deletion_timestamp.is_some();
    let again = match &status.state {
        Some(ContainerState { running: Some(_), .. }) => Rerun::Live,
        Some(ContainerState { terminated: Some(_), .. }) => Rerun::Over,
        Some(_) | None if is_deleted => Rerun::Over,
        Some(_) | None => Rerun::Live,
    };
    Some((again, before))
}

/// Returns the end of a run of which the kubelet knows nothing more, as it reports it itself.
fn lost() -> Container {
    Container::Terminated {
        exit_code: 137,
        reason: Some(LOST.to_owned()),
        message: None,
        started_at: None,
        finished_at: None,
    }
}

#[cfg(test)]
mod tests;
