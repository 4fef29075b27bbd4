//! What clients did and saw, as lines of a file.

mod answer;

use std::{
    collections::BTreeSet,
    io::{self, BufRead, Write},
};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sparkgate_submission::State;

pub use answer::{Answer, Kept, Reply};

/// One line of the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "camelCase")]
pub enum Line {
    Job(Job),
    Call(Call),
    Follower(Follower),
    Event(Event),
    Found(Found),
}

/// Something to run once. All its creates have one idempotency key, or there is one create.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Job {
    pub job: u32,
    /// How its program ends if it isn't killed: FINISHED or FAILED.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends: Option<String>,
}

/// A call of one client, and its reply. Times are microseconds since the run began, by one clock that doesn't go back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Call {
    pub began: u64,
    pub ended: u64,
    pub act: Act,
    pub answer: Answer,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Act {
    /// The creation of a submission of the job with this number.
    Create {
        job: u32,
    },
    Kill {
        id: String,
    },
    Read {
        id: String,
    },
}

/// The parts of a submission's document that the promises speak of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Document {
    pub id: String,
    pub state: String,
    pub attempt: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i64>,
}

/// A change of a submission, as the gateway reports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// Its position in the order of all changes; the newest may have none yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence: Option<i64>,
    pub submission_id: String,
    pub attempt: i64,
    pub state: String,
    /// That of the change before it. The first has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<String>,
}

/// A client that follows all changes, from one on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Follower {
    pub follower: String,
    /// The number of the last change before it began.
    pub after: i64,
}

/// A change that a follower received.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    pub follower: String,
    /// When it arrived, in microseconds since the run began.
    pub at: u64,
    pub change: Change,
}

/// A submission at the end of the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Found {
    pub job: u32,
    pub document: Document,
    pub attempts: Vec<Attempt>,
    pub events: Vec<Change>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Attempt {
    pub attempt: i64,
    pub state: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<DateTime<Utc>>,
}

/// A driver's pod, as an observer of the cluster saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pod {
    pub uid: String,
    pub submission: String,
    pub attempt: i64,
    /// Its container has run.
    pub started: bool,
}

/// Returns how far a state is on the way of an attempt; all ends are equally far.
pub fn rank(state: &str) -> Option<u8> {
    Some(match state.parse::<State>().ok()? {
        State::Queued => 0,
        State::Launching => 1,
        State::Pending => 2,
        State::Running => 3,
        State::Killing => 4,
        _ => 5,
    })
}

/// Returns whether a state is an end.
pub fn is_end(state: &str) -> bool {
    state.parse::<State>().is_ok_and(State::is_terminal)
}

/// Everything that was recorded in a run.
#[derive(Debug, Clone, Default)]
pub struct History {
    pub jobs: Vec<Job>,
    pub calls: Vec<Call>,
    pub followers: Vec<Follower>,
    /// In the order of their arrival.
    pub events: Vec<Event>,
    pub found: Vec<Found>,
    /// Empty if nothing observed the cluster.
    pub pods: Vec<Pod>,
}

impl History {
    pub fn add(&mut self, line: Line) {
        match line {
            Line::Job(job) => self.jobs.push(job),
            Line::Call(call) => self.calls.push(call),
            Line::Follower(follower) => self.followers.push(follower),
            Line::Event(event) => self.events.push(event),
            Line::Found(found) => self.found.push(found),
        }
    }

    /// Returns in one line what was played: a run in which little was accepted shows little.
    pub fn summary(&self) -> String {
        let accepted = |call: &Call| match call.act {
            Act::Create { job } if call.answer.kept() == Kept::Yes => Some(job),
            _ => None,
        };
        let accepted: BTreeSet<u32> = self.calls.iter().filter_map(accepted).collect();
        let of = |answer: &Answer| self.calls.iter().filter(|call| call.answer == *answer).count();
        let (lost, unsent) = (of(&Answer::Lost), of(&Answer::NotSent));
        let replies = self.calls.len() - lost - unsent;
        let (jobs, accepted, calls) = (self.jobs.len(), accepted.len(), self.calls.len());
        format!(
            "{jobs} jobs, {accepted} accepted. {calls} calls: {replies} replies, {lost} lost, {unsent} that reached no gateway"
        )
    }

    /// Reads the lines of a file. The last line may be cut off, as after the end of the program that wrote it.
    ///
    /// # Errors
    /// The file can't be read, or another line than the last isn't one of a history.
    pub fn read(file: impl BufRead) -> io::Result<Self> {
        let mut history = Self::default();
        let mut cut = None;
        for (number, line) in file.lines().enumerate() {
            let line = line?;
            if let Some(error) = cut.take() {
                return Err(error);
            }
            match serde_json::from_str(&line) {
                Ok(line) => history.add(line),
                Err(error) => cut = Some(io::Error::other(format!("line {}: {error}", number + 1))),
            }
        }
        Ok(history)
    }
}

/// Writes one line.
///
/// # Errors
/// The file can't be written.
pub fn write(file: &mut impl Write, line: &Line) -> io::Result<()> {
    serde_json::to_writer(&mut *file, line)?;
    file.write_all(b"\n")
}
