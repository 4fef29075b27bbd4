//! The rule that derives the next state from an observation. Every write of a state follows it.

use super::{
    kill_cause::KillCause,
    observation::{Container, Phase, PodObservation},
    outcome::Outcome,
    state::State,
};

/// The effect of an observation on a submission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transition {
    /// Nothing new.
    Stay,
    /// Still waiting, with the reason (for example, an image that can't be pulled).
    Waiting { reason: String, message: String },
    /// The driver's container runs.
    Started,
    /// The driver has ended, and its kubelet has started it again, or may do so: the end counts once the pod is deleted.
    MayRunAgain,
    /// The driver has ended.
    Ended(Outcome),
}

/// Evaluates one observation of a submission in `state`, which, if it is being killed, is killed for `cause`.
///
/// The exit code of the driver *container* decides, not the phase of the pod: sidecars and node problems affect the phase.
pub fn transition(state: State, cause: &KillCause, observed: &PodObservation) -> Transition {
    if state.is_terminal() {
        return Transition::Stay;
    }
    let killing = Some(cause).filter(|_| state == State::Killing);
    match &observed.container {
        Container::Terminated { .. } if observed.may_run_again() => Transition::MayRunAgain,
        Container::Terminated { exit_code, reason, message, .. } => {
            Transition::Ended(ended(killing, observed, *exit_code, reason.clone(), message.clone()))
        }
        _ if observed.phase == Phase::Failed => Transition::Ended(failed_without_exit_code(killing, observed)),
        // The pod succeeded without container statuses: the kubelet never wrote them, so only the phase is known.
        _ if observed.phase == Phase::Succeeded => Transition::Ended(Outcome {
            state: State::Finished,
            exit_code: None,
            reason: Some("Completed".to_owned()),
            message: "the driver pod succeeded".to_owned(),
        }),
        _ if observed.gone || observed.forced => Transition::Ended(gone(killing, observed)),
        Container::Running { .. } if matches!(state, State::Queued | State::Launching | State::Pending) => {
            Transition::Started
        }
        Container::Waiting { reason: Some(reason), message } if reason != "ContainerCreating" => {
            Transition::Waiting { reason: reason.clone(), message: message.clone().unwrap_or_default() }
        }
        Container::Absent | Container::Waiting { .. } | Container::Running { .. } => Transition::Stay,
    }
}

fn ended(
    killing: Option<&KillCause>,
    observed: &PodObservation,
    exit_code: i32,
    reason: Option<String>,
    said: Option<String>,
) -> Outcome {
    let said = said.filter(|text| !text.trim().is_empty()).or_else(|| observed.message.clone());
    let with = |text: String| said.map_or_else(|| text.clone(), |said| format!("{text}: {}", said.trim()));
    // A kubelet invents this end for a container of a deleted pod that it can't find, mostly because it never started.
    let is_invented =
        exit_code == 137 && reason.as_deref() == Some("ContainerStatusUnknown") && observed.never_started();
    let named = reason.as_deref().map(|word| format!(" ({word})")).unwrap_or_default();
    let again = if observed.rerun.is_some() { "; its kubelet started it again, and it was stopped" } else { "" };
    let ending = match is_invented {
        true => format!("the driver didn't start, or its node lost track of it{named}{again}"),
        false => format!("the driver exited with code {exit_code}{named}{again}"),
    };
    let (state, message) = match (exit_code, killing) {
        // The driver succeeded before the kill reached it, so the submission is FINISHED.
        (0, _) => (State::Finished, format!("the driver exited with code 0{again}")),
        (_, Some(cause)) => (State::Killed, format!("{}; {ending}", cause.message())),
        // The deletion of a pod whose driver had already ended changes nothing.
        (_, None) if observed.deleting && observed.reason.is_none() && !observed.ended_by_itself() => {
            (State::Killed, with(format!("the driver pod was deleted from outside Sparkgate; {ending}")))
        }
        (_, None) => (State::Failed, with(ending)),
    };
    // The pod's own reason (Evicted, DeadlineExceeded) is more specific than the container's "Error".
    let reason = match (state, killing) {
        (State::Failed, _) => observed.reason.clone().or(reason),
        (State::Killed, Some(cause)) => Some(cause.reason().to_owned()),
        _ => reason,
    };
    Outcome { state, exit_code: (!is_invented).then_some(exit_code), reason, message }
}

fn failed_without_exit_code(killing: Option<&KillCause>, observed: &PodObservation) -> Outcome {
    if let Some(cause) = killing {
        return Outcome::killed(cause);
    }
    // The pod garbage collector marks pods that were deleted before they had a node as failed.
    if observed.deleting && observed.reason.is_none() {
        return deleted_from_outside();
    }
    ended_by_the_cluster(observed)
}

fn gone(killing: Option<&KillCause>, observed: &PodObservation) -> Outcome {
    if let Some(cause) = killing {
        Outcome::killed(cause)
    } else if observed.deleting && observed.reason.is_some() {
        ended_by_the_cluster(observed)
    } else if observed.deleting {
        deleted_from_outside()
    } else {
        Outcome::pod_gone()
    }
}

fn ended_by_the_cluster(observed: &PodObservation) -> Outcome {
    let reason = observed.reason.clone().unwrap_or_else(|| "PodFailed".to_owned());
    let message = match &observed.message {
        Some(message) => format!("the driver pod failed ({reason}): {message}"),
        None => format!("the driver pod failed ({reason}) and left no exit code"),
    };
    Outcome { state: State::Failed, exit_code: None, reason: Some(reason), message }
}

fn deleted_from_outside() -> Outcome {
    Outcome::new(State::Killed, "PodDeleted", "the driver pod was deleted from outside Sparkgate")
}

#[cfg(test)]
mod tests;
