//! Why a submission failed, or doesn't run yet.

use super::{Error, Gateway};
use crate::{
    store::Submission,
    submission::{FailureCode, PodEvent, State, signal},
};

/// The whole story, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Why {
    pub code: FailureCode,
    /// A sentence for people.
    pub message: String,
    /// Kubernetes' own word, where there is one.
    pub reason: Option<String>,
    /// Of the driver's container, and the signal that it stands for.
    pub exit_code: Option<i32>,
    pub signal: Option<&'static str>,
    /// What Kubernetes said about the pod.
    pub events: Vec<PodEvent>,
    /// The last lines that the driver wrote.
    pub log_tail: Option<String>,
}

impl Why {
    /// As far as the row of a submission tells; `None` of one that runs or that finished.
    pub fn of(row: &Submission) -> Option<Self> {
        if row.state == State::Running {
            return None;
        }
        let ended = |state| Self::ended(state, row.exit_code, row.reason.as_deref(), row.message.as_deref());
        match row.state {
            State::Finished => None,
            // On its way to an end that is known already.
            State::Killing => ended(State::Killed),
            state if state.is_terminal() => ended(state),
            state => Some(Self::waiting(state, row.reason.as_deref(), row.message.as_deref())),
        }
    }

    /// Of an attempt that ended; `None` if it finished.
    pub fn ended(state: State, exit_code: Option<i32>, reason: Option<&str>, message: Option<&str>) -> Option<Self> {
        let code = FailureCode::of_end(state, exit_code, reason, message)?;
        let message = message.map_or_else(|| format!("the driver ended as {state}"), str::to_owned);
        let reason = reason.map(str::to_owned);
        let signal = exit_code.and_then(signal);
        Some(Self { code, message, reason, exit_code, signal, events: Vec::new(), log_tail: None })
    }

    fn waiting(state: State, reason: Option<&str>, message: Option<&str>) -> Self {
        let code = FailureCode::of_waiting(state, reason, message);
        let nothing_wrong = match state {
            State::Queued => "it waits for a launcher",
            State::Launching => "its objects are being created",
            _ => "its pod is starting",
        };
        let message = message.filter(|text| !text.is_empty()).unwrap_or(nothing_wrong).to_owned();
        let reason = reason.map(str::to_owned);
        Self { code, message, reason, exit_code: None, signal: None, events: Vec::new(), log_tail: None }
    }

    /// A mount that fails, say, is told by an event alone.
    fn learn_from_events(&mut self, state: State) {
        if self.code != FailureCode::Starting {
            return;
        }
        let warnings = self.events.iter().filter(|event| event.kind == "Warning");
        let told = warnings.map(|event| (FailureCode::of_waiting(state, Some(&event.reason), None), event));
        if let Some((code, event)) = told.into_iter().find(|(code, _)| *code != FailureCode::Starting) {
            (self.code, self.message, self.reason) = (code, event.message.clone(), Some(event.reason.clone()));
        }
    }
}

impl Gateway {
    /// All that is known of it: what the row tells, what Kubernetes said about the pod (now, or when it ended), and the end
    /// of the driver's log.
    pub async fn why(&self, row: &Submission) -> Result<Option<Why>, Error> {
        let Some(mut why) = Why::of(row) else { return Ok(None) };
        if row.state.is_terminal() {
            why.events = self.kept_events(&row.id, row.attempt).await?;
            why.log_tail = self.log_tail(&row.id, row.attempt).await?;
        } else if row.pod_uid.is_some() {
            why.events = self.pod_events(&row.id).await?;
            why.learn_from_events(row.state);
        }
        Ok(Some(why))
    }
}
