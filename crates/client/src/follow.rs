//! Waiting for a submission by long polls, and following streams, across restarts of the gateway.

use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use serde::Deserialize;
use tokio::time::{Instant, sleep};

use super::{
    api::{Answer, Api, Call},
    document::{self, Attempt, Submission},
    error::Error,
    screen::note,
    span,
    why::headline,
};
use sparkgate_submission::State;

/// How long a gateway that has answered before may be unavailable.
const AWAY: Duration = Duration::from_secs(300);
/// The pause before a stream is opened again.
const RECONNECT: Duration = Duration::from_secs(1);
/// The length of a poll. It is short while the reason for which the submission isn't running may change.
const NOT_RUNNING: Duration = Duration::from_secs(10);
const RUNNING: Duration = Duration::from_secs(50);

/// A submission, as the gateway's document and parsed.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) body: Bytes,
    pub(super) submission: Submission,
}

impl Seen {
    pub(super) fn of(action: &str, answer: Answer) -> Result<Self, Error> {
        Ok(Self { submission: document::read(action, &answer.body)?, body: answer.body })
    }
}

/// Reads a submission with all details.
///
/// # Errors
/// Those of the call; a 404 for an unknown id.
pub(super) async fn look(api: &Api, id: &str) -> Result<Seen, Error> {
    let call = Call::get(format!("asking for {id}"), &["submissions", id]);
    Seen::of(call.action(), api.send(&call).await?)
}

/// Reads the attempts of a submission.
///
/// # Errors
/// As [`look`].
pub(super) async fn attempts(api: &Api, id: &str) -> Result<Vec<Attempt>, Error> {
    #[derive(Deserialize)]
    struct Attempts {
        items: Vec<Attempt>,
    }
    let call = Call::get(format!("asking for the attempts of {id}"), &["submissions", id, "attempts"]);
    let attempts: Attempts = document::read(call.action(), &api.send(&call).await?.body)?;
    Ok(attempts.items)
}

/// How a stream ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// Everything requested was printed.
    Done,
    /// The connection broke.
    Cut,
}

/// Calls `stream` until it is done. After a broken connection it is called again, and has to continue where it ended.
///
/// # Errors
/// The gateway refuses a request, can't be reached the first time, or is unavailable for minutes.
pub(super) async fn reconnecting(mut stream: impl AsyncFnMut() -> Result<End, Error>) -> Result<(), Error> {
    let mut answered: Option<Instant> = None;
    loop {
        match stream().await {
            Ok(End::Done) => return Ok(()),
            Ok(End::Cut) => answered = Some(Instant::now()),
            Err(error) if error.is_passing() && answered.is_some_and(|at| at.elapsed() < AWAY) => {
                note(&format!("{error}\n  still following"));
            }
            Err(error) => return Err(error),
        }
        sleep(RECONNECT).await;
    }
}

/// Waits until the submission has ended, or has reached `goal` or passed it. Calls `tell` after each poll.
///
/// # Errors
/// [`Error::TimedOut`] at `deadline`; the gateway refuses a request, or is unavailable for minutes.
pub(super) async fn follow(
    api: &Api,
    id: &str,
    goal: Option<State>,
    deadline: Option<Instant>,
    mut tell: impl AsyncFnMut(&Submission),
) -> Result<Seen, Error> {
    let mut seen = look(api, id).await?;
    let mut answered = Instant::now();
    loop {
        tell(&seen.submission).await;
        if seen.submission.has_ended() {
            // Only a read of the submission itself has all details of the end.
            return match look(api, id).await {
                Err(error) if error.is_passing() => Ok(seen),
                looked => looked,
            };
        }
        if has_arrived(&seen.submission, goal) {
            return Ok(seen);
        }
        let before = Instant::now();
        let most = if seen.submission.state() == Some(State::Running) { RUNNING } else { NOT_RUNNING };
        let left = deadline.map_or(most, |deadline| deadline.duration_since(before));
        if left.is_zero() {
            let state = &seen.submission.state;
            return Err(Error::TimedOut(format!("{id} is still {state}: the timeout has expired")));
        }
        match poll(api, id, next_of(&seen.submission), left.min(most)).await {
            Ok(next) => {
                let nothing_new = next.submission == seen.submission;
                seen = next;
                answered = Instant::now();
                // A proxy that answers at once must not turn this into a busy loop.
                if nothing_new && before.elapsed() < Duration::from_millis(100) {
                    sleep(Duration::from_millis(500)).await;
                }
            }
            Err(error) if error.is_passing() && answered.elapsed() < AWAY => {
                note(&format!("{error}\n  still waiting for {id}"));
                sleep(Duration::from_secs(2)).await;
            }
            Err(error) => return Err(error),
        }
    }
}

async fn poll(api: &Api, id: &str, state: Option<State>, time: Duration) -> Result<Seen, Error> {
    let call = Call::get(format!("waiting for {id}"), &["submissions", id, "wait"])
        .query("timeoutSeconds", time.as_secs().max(1))
        .query_if("state", state.map(State::as_str))
        .longer_by(time);
    Seen::of(call.action(), api.send(&call).await?)
}

/// Returns whether the submission has reached `goal` or passed it.
fn has_arrived(submission: &Submission, goal: Option<State>) -> bool {
    goal.zip(submission.state()).is_some_and(|(goal, state)| state == goal || goal.may_become(state))
}

/// Returns the next state to wait for.
fn next_of(submission: &Submission) -> Option<State> {
    match submission.state()? {
        State::Queued | State::Launching => Some(State::Pending),
        State::Pending => Some(State::Running),
        State::Running => Some(State::Killing),
        _ => None,
    }
}

/// Formats the progress of a submission as lines, without repeating a line.
#[derive(Debug, Default)]
pub(super) struct Progress {
    last: String,
    /// The attempt up to which the user is informed.
    attempt: Option<i64>,
}

impl Progress {
    /// Starts with an attempt.
    pub(super) fn from_attempt(attempt: i64) -> Self {
        Self { last: String::new(), attempt: Some(attempt) }
    }

    /// Prints how the attempts ended that were followed by a retry since the last call.
    pub(super) async fn tell_retried(&mut self, api: &Api, submission: &Submission) {
        let from = self.attempt.replace(submission.attempt).unwrap_or(submission.attempt);
        if from >= submission.attempt {
            return;
        }
        // If they can't be read, the number of the attempt in the next line has to do.
        let attempts = attempts(api, &submission.id).await.unwrap_or_default();
        for attempt in attempts.iter().filter(|attempt| (from..submission.attempt).contains(&attempt.attempt)) {
            let mut line = format!("{} (attempt {})", attempt.state, attempt.attempt);
            line += &duration(attempt.started_at, attempt.finished_at);
            if let Some(failure) = &attempt.failure {
                line += &format!(": {}", headline(failure));
            }
            note(&line);
        }
    }

    /// Returns the line to print, if it is new.
    pub(super) fn line(&mut self, submission: &Submission) -> Option<String> {
        let line = describe(submission);
        let is_new = line != self.last;
        self.last.clone_from(&line);
        is_new.then_some(line)
    }
}

fn describe(submission: &Submission) -> String {
    let mut line = submission.state.clone();
    if submission.attempt > 1 {
        line += &format!(" (attempt {})", submission.attempt);
    }
    match (submission.state(), &submission.driver.node) {
        (Some(State::Running), Some(node)) => line += &format!(" on {node}"),
        (Some(state), _) if state.is_terminal() => {
            line += &duration(submission.started_at, submission.finished_at);
        }
        _ => {}
    }
    // The state already says that the submission is only queued or starting.
    if let Some(why) = submission.waiting.as_ref().filter(|why| why.class != "waiting") {
        line += &format!(": {}", headline(why));
    }
    line
}

fn duration(started: Option<DateTime<Utc>>, finished: Option<DateTime<Utc>>) -> String {
    let both = started.zip(finished);
    both.map(|(started, finished)| format!(" after {}", span::between(started, finished))).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Why;

    fn submission(state: &str) -> Submission {
        Submission { state: state.to_owned(), ..Submission::default() }
    }

    #[test]
    fn goal_is_reached_in_its_state_or_a_later_one() {
        let arrived = |state, goal| has_arrived(&submission(state), goal);
        assert!(!arrived("PENDING", Some(State::Running)));
        assert!(arrived("RUNNING", Some(State::Running)) && arrived("KILLING", Some(State::Running)));
        assert!(arrived("FAILED", Some(State::Running)) && arrived("FINISHED", Some(State::Finished)));
        assert!(!arrived("RUNNING", Some(State::Finished)) && !arrived("RUNNING", None));
        assert!(!arrived("PONDERING", Some(State::Queued)), "an unknown state is not an end");
    }

    #[test]
    fn progress_is_reported_once_and_with_its_reason() {
        let mut progress = Progress::default();
        assert_eq!(progress.line(&submission("QUEUED")).as_deref(), Some("QUEUED"));
        assert_eq!(progress.line(&submission("QUEUED")), None);
        let mut waits = submission("PENDING");
        let why =
            |class: &str, code: &str| Some(Why { class: class.to_owned(), code: code.to_owned(), ..Why::default() });
        waits.waiting = why("waiting", "STARTING");
        assert_eq!(progress.line(&waits).as_deref(), Some("PENDING"));
        waits.waiting = why("capacity", "UNSCHEDULABLE");
        assert_eq!(progress.line(&waits).as_deref(), Some("PENDING: UNSCHEDULABLE"));
        let again = Submission { attempt: 2, ..submission("QUEUED") };
        assert_eq!(progress.line(&again).as_deref(), Some("QUEUED (attempt 2)"));
    }
}
