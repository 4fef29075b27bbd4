//! What a submission waits for, in words.

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};

use sparkgate_store::{Held, QueueStanding, QueueState, Submission};
use sparkgate_submission::State;

/// What a submission waits for that isn't launched yet.
#[derive(Debug, Clone, PartialEq)]
pub struct Waiting {
    /// The queue that has to admit it, if there is one.
    pub queue: Option<String>,
    pub priority: Option<i32>,
    /// It isn't launched before it is released.
    pub held: Option<Held>,
    /// How many submissions of its tenant are admitted before it; `None` if it is held, or if there are more than ten thousand.
    pub ahead: Option<u32>,
    /// Why it waits, as a sentence.
    pub reason: String,
    /// When it is admitted if the queue goes on as before; `None` if too little happened there in the last day.
    pub estimate: Option<WaitEstimate>,
}

/// When a submission will be admitted, from the history of its tenant in the queue.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WaitEstimate {
    pub seconds: f64,
    /// The standard error of the seconds.
    pub error_seconds: f64,
    /// From how many times between admissions it was computed, and since when.
    pub admissions: u32,
    pub since: DateTime<Utc>,
}

impl Waiting {
    /// Derives it from the document of a submission and its [`pause`]; `None` if no queue and no hold keeps it from being launched.
    pub(super) fn of(submission: &Submission, standing: Option<QueueStanding>, pause: Option<&str>) -> Option<Self> {
        if !matches!(submission.state, State::Queued | State::Launching) {
            return None;
        }
        let Submission { queue, priority, held, message, tenant, .. } = submission;
        let (queue, priority) = (queue.clone(), *priority);
        if let Some(held) = held {
            let by = &held.by;
            let reason =
                held.reason.as_ref().map_or_else(|| format!("held by {by}"), |why| format!("held by {by}: {why}"));
            return Some(Self { queue, priority, held: Some(held.clone()), ahead: None, reason, estimate: None });
        }
        let QueueStanding { ahead, state, history, .. } = standing?;
        let name = queue.as_deref()?;
        let reason = match (state, pause, ahead) {
            (Some(QueueState::Paused), ..) => format!("queue {name} is paused"),
            (_, Some(pause), _) => format!("{pause}, and then waits in queue {name}"),
            (.., Some(0)) => {
                message.clone().unwrap_or_else(|| format!("it is the next of tenant {tenant} in queue {name}"))
            }
            (.., Some(1)) => format!("1 submission of tenant {tenant} in queue {name} is before it"),
            (.., Some(ahead)) => format!("{ahead} submissions of tenant {tenant} in queue {name} are before it"),
            (.., None) => {
                format!("more than ten thousand submissions of tenant {tenant} in queue {name} are before it")
            }
        };
        let known = ahead.filter(|_| state != Some(QueueState::Paused) && pause.is_none());
        let estimate = known.and_then(|ahead| history.estimate(ahead)).map(|(seconds, error_seconds)| WaitEstimate {
            seconds,
            error_seconds,
            admissions: history.admissions,
            since: Utc::now() - TimeDelta::milliseconds((history.age * 1000.0) as i64),
        });
        Some(Self { queue, priority, held: None, ahead, reason, estimate })
    }
}

/// Says until when a submission pauses between two attempts, if it does.
pub(super) fn pause(standing: &QueueStanding) -> Option<String> {
    let due = standing.due?.to_rfc3339_opts(SecondsFormat::Secs, true);
    Some(format!("it pauses between two attempts until {due}"))
}
