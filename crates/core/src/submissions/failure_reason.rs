//! The reason why a submission failed, or doesn't run yet.

use super::Submissions;
use crate::witness::Archived;
use sparkgate_common::error::Error;
use sparkgate_store::Submission;
use sparkgate_submission::{FailureCode, PodEvent, State, signal};

/// A hint for an end by SIGKILL that Kubernetes doesn't explain: if the kernel kills a process of the container other than its
/// first, such as Python's, no reason says so.
const OF_MEMORY: &str = "; it was killed (SIGKILL), often because it used more memory than its container has: \
    spark.driver.memory and spark.driver.memoryOverhead raise that";

/// The reason, with all details that are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailureReason {
    pub code: FailureCode,
    /// Human-readable sentence.
    pub message: String,
    /// Kubernetes' reason, if there is one.
    pub reason: Option<String>,
    /// Exit code of the driver's container, and the signal that it stands for.
    pub exit_code: Option<i32>,
    pub signal: Option<&'static str>,
    /// Kubernetes events of the pod.
    pub events: Vec<PodEvent>,
    /// The end of what the application wrote, from its exception on.
    pub log_tail: Option<String>,
}

impl FailureReason {
    /// Derives the reason from the row of a submission; `None` for one that is running or finished.
    pub fn of(row: &Submission) -> Option<Self> {
        if row.state == State::Running {
            return None;
        }
        let ended = |state| Self::ended(state, row.exit_code, row.reason.as_deref(), row.message.as_deref());
        match row.state {
            State::Finished => None,
            // Its end is known already.
            State::Killing => ended(State::Killed),
            state if state.is_terminal() => ended(state),
            state => Some(Self::waiting(state, row.reason.as_deref(), row.message.as_deref())),
        }
    }

    /// Derives the reason of an attempt that ended; `None` if it finished.
    pub fn ended(state: State, exit_code: Option<i32>, reason: Option<&str>, message: Option<&str>) -> Option<Self> {
        let code = FailureCode::for_end(state, exit_code, reason, message)?;
        let mut message = message.map_or_else(|| format!("the driver ended as {state}"), str::to_owned);
        if state == State::Failed && exit_code == Some(137) && code == FailureCode::ApplicationError {
            message += OF_MEMORY;
        }
        let reason = reason.map(str::to_owned);
        let signal = exit_code.and_then(signal);
        Some(Self { code, message, reason, exit_code, signal, events: Vec::new(), log_tail: None })
    }

    fn waiting(state: State, reason: Option<&str>, message: Option<&str>) -> Self {
        let code = FailureCode::for_row(state, None, reason, message).unwrap_or(FailureCode::Starting);
        let nothing_wrong = match state {
            State::Queued => "it waits to be launched",
            State::Launching => "its objects are being created",
            _ => "its pod is starting",
        };
        let message = message.filter(|text| !text.is_empty()).unwrap_or(nothing_wrong).to_owned();
        let reason = reason.map(str::to_owned);
        Self { code, message, reason, exit_code: None, signal: None, events: Vec::new(), log_tail: None }
    }

    /// Derives the reason from the events: only an event reports a failed mount, for example. Only the newest event counts: the
    /// pod exists before its `ConfigMap`, so kubelets often report the `ConfigMap` as missing at first.
    fn learn_from_events(&mut self, state: State) {
        let newest = self.events.iter().max_by_key(|event| event.at).filter(|event| event.kind == "Warning");
        let Some(event) = newest.filter(|_| self.code == FailureCode::Starting) else { return };
        let code = FailureCode::for_row(state, None, Some(&event.reason), None);
        if let Some(code) = code.filter(|code| *code != FailureCode::Starting) {
            (self.code, self.message, self.reason) = (code, event.message.clone(), Some(event.reason.clone()));
        }
    }
}

impl Submissions {
    /// Returns the reason with all details: those of the row, the events of the pod (current, or at its end), and the end of
    /// the driver's log.
    pub async fn failure_reason(&self, row: &Submission) -> Result<Option<FailureReason>, Error> {
        let archived = match row.state.is_terminal() && FailureReason::of(row).is_some() {
            true => self.witness.archived(&row.id, row.attempt).await?,
            false => Archived::default(),
        };
        Ok(self.reason(row, archived).await)
    }

    /// Returns the same, with the archive of the current attempt.
    pub(super) async fn reason(&self, row: &Submission, archived: Archived) -> Option<FailureReason> {
        let mut why = FailureReason::of(row)?;
        if row.state.is_terminal() {
            // The row lacks it if the log wasn't archived in time.
            if let Some(cause) = archived.cause.filter(|cause| !why.message.contains(cause))
                && row.state == State::Failed
            {
                why.message += &format!(": {cause}");
            }
            (why.events, why.log_tail) = (archived.events, archived.tail);
        } else if let Some(uid) = &row.pod_uid {
            why.events = self.witness.pod_events(&row.id, &row.namespace, uid).await;
            why.learn_from_events(row.state);
        }
        Some(why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: &str, reason: &str, second: i64) -> PodEvent {
        let at = chrono::DateTime::from_timestamp(second, 0);
        PodEvent { at, kind: kind.to_owned(), reason: reason.to_owned(), message: format!("{reason}!"), count: 1 }
    }

    #[test]
    fn an_unexplained_kill_hints_at_memory() {
        let hints = |exit_code, reason| {
            let why = FailureReason::ended(State::Failed, Some(exit_code), Some(reason), Some("words")).unwrap();
            why.message.starts_with("words") && why.message.contains("spark.driver.memoryOverhead")
        };
        assert!(hints(137, "Error"));
        assert!(!hints(137, "Evicted") && !hints(143, "Error") && !hints(1, "Error"));
    }

    #[test]
    fn the_reason_comes_from_the_newest_event_of_a_pod() {
        let reason = |events: Vec<PodEvent>| {
            let mut why = FailureReason::waiting(State::Pending, None, None);
            why.events = PodEvent::that_matter(events);
            why.learn_from_events(State::Pending);
            (why.code, why.message)
        };
        let (mount, pulling) = (event("Warning", "FailedMount", 5), event("Normal", "Pulling", 5));
        assert_eq!(reason(vec![mount.clone()]), (FailureCode::ConfigMissing, "FailedMount!".to_owned()));
        assert_eq!(reason(vec![mount, pulling.clone()]).0, FailureCode::Starting, "the mount succeeded later");
        let again = event("Warning", "FailedMount", 6);
        assert_eq!(reason(vec![pulling, again]).0, FailureCode::ConfigMissing);
    }
}
