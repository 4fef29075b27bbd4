//! Derives the status that a kubelet would report for a pod from the state of its Spark container. Pure.

use std::net::Ipv4Addr;

use k8s_openapi::api::core::v1::{
    Container, ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting, ContainerStatus,
    HostIP, Pod, PodCondition, PodIP, PodStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;

/// The address of every pod's node.
pub(super) const HOST: &str = "127.0.0.1";

/// The state of the container.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum State {
    Waiting {
        reason: &'static str,
        message: Option<String>,
    },
    Running {
        since: Timestamp,
    },
    Terminated {
        exit_code: i32,
        reason: &'static str,
        message: Option<String>,
        since: Option<Timestamp>,
        at: Timestamp,
    },
}

/// The node's view of a pod.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    /// The name of Spark's container; the others aren't run.
    pub(super) container: Option<String>,
    pub(super) address: Option<Ipv4Addr>,
    pub(super) accepted: Timestamp,
    pub(super) state: State,
    /// Why the pod as a whole failed, if its container is not the cause.
    pub(super) verdict: Option<(&'static str, String)>,
}

/// Returns the reason that a container runtime reports for an exit code.
pub(super) fn exit_reason(exit_code: i32) -> &'static str {
    if exit_code == 0 { "Completed" } else { "Error" }
}

/// Returns the whole status. The times of conditions that don't change, and conditions of other clients, are taken from `pod`.
pub(super) fn status(pod: &Pod, seen: &Seen, now: Timestamp) -> PodStatus {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    PodStatus {
        phase: Some(phase(seen).to_owned()),
        conditions: Some(conditions(pod, seen, now)),
        container_statuses: Some(containers.map(|container| container_status(container, seen)).collect()),
        host_ip: Some(HOST.to_owned()),
        host_ips: Some(vec![HostIP { ip: HOST.to_owned() }]),
        pod_ip: seen.address.map(|address| address.to_string()),
        pod_ips: seen.address.map(|address| vec![PodIP { ip: address.to_string() }]),
        start_time: Some(Time(seen.accepted)),
        reason: seen.verdict.as_ref().map(|(reason, _)| (*reason).to_owned()),
        message: seen.verdict.as_ref().map(|(_, message)| message.clone()),
        ..Default::default()
    }
}

fn phase(seen: &Seen) -> &'static str {
    match seen.state {
        _ if seen.verdict.is_some() => "Failed",
        State::Waiting { .. } => "Pending",
        State::Running { .. } => "Running",
        State::Terminated { exit_code: 0, .. } => "Succeeded",
        State::Terminated { .. } => "Failed",
    }
}

fn container_status(container: &Container, seen: &Seen) -> ContainerStatus {
    let spark = seen.container.as_deref().is_none_or(|name| name == container.name);
    let running = spark && matches!(seen.state, State::Running { .. });
    let image = container.image.clone().unwrap_or_default();
    ContainerStatus {
        name: container.name.clone(),
        image_id: if matches!(seen.state, State::Waiting { .. }) { String::new() } else { image.clone() },
        image,
        ready: running,
        started: Some(running),
        restart_count: 0,
        container_id: None,
        state: Some(if spark { container_state(&seen.state) } else { side_car() }),
        ..Default::default()
    }
}

fn container_state(state: &State) -> ContainerState {
    match state.clone() {
        State::Waiting { reason, message } => ContainerState {
            waiting: Some(ContainerStateWaiting { reason: Some(reason.to_owned()), message }),
            ..Default::default()
        },
        State::Running { since } => ContainerState {
            running: Some(ContainerStateRunning { started_at: Some(Time(since)) }),
            ..Default::default()
        },
        State::Terminated { exit_code, reason, message, since, at } => ContainerState {
            terminated: Some(ContainerStateTerminated {
                exit_code,
                reason: Some(reason.to_owned()),
                message,
                started_at: since.map(Time),
                finished_at: Some(Time(at)),
                ..Default::default()
            }),
            ..Default::default()
        },
    }
}

fn side_car() -> ContainerState {
    let message = "the sandbox runs only the Spark container of a pod".to_owned();
    let waiting = ContainerStateWaiting { reason: Some("NotInSandbox".to_owned()), message: Some(message) };
    ContainerState { waiting: Some(waiting), ..Default::default() }
}

fn conditions(pod: &Pod, seen: &Seen, now: Timestamp) -> Vec<PodCondition> {
    const OURS: [&str; 5] = ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"];
    let (ready, reason) = match (&seen.state, phase(seen)) {
        (State::Running { .. }, "Running") => (true, None),
        (_, "Succeeded") => (false, Some("PodCompleted")),
        (_, "Failed") => (false, Some("PodFailed")),
        _ => (false, Some("ContainersNotReady")),
    };
    let before = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let condition = |name: &str| {
        let (holds, reason) = match name {
            "Ready" | "ContainersReady" => (ready, reason),
            "PodReadyToStartContainers" => (ready, None),
            "Initialized" => (true, reason.filter(|reason| *reason == "PodCompleted")),
            _ => (true, None),
        };
        let status = if holds { "True" } else { "False" };
        let since =
            before.clone().find(|c| c.type_ == name && c.status == status).and_then(|c| c.last_transition_time.clone());
        PodCondition {
            type_: name.to_owned(),
            status: status.to_owned(),
            reason: reason.map(str::to_owned),
            last_transition_time: Some(since.unwrap_or(Time(now))),
            ..Default::default()
        }
    };
    let ours = OURS.iter().map(|name| condition(name));
    ours.chain(before.clone().filter(|c| !OURS.contains(&c.type_.as_str())).cloned()).collect()
}

#[cfg(test)]
mod tests;
