//! A step of a submission towards its end, as it is written to the database.

use std::fmt;

use chrono::{DateTime, Utc};

use super::{outcome::Outcome, reservation::Reservation, state::State};

/// Where and when the driver runs, and what its pod reserves there. Unknown values leave the row unchanged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Placement {
    pub pod_uid: Option<String>,
    pub node: Option<String>,
    pub pod_ip: Option<String>,
    pub started_at: Option<DateTime<Utc>>,
    /// When the driver's container ended, as its node reports it.
    pub ended_at: Option<DateTime<Utc>>,
    pub reservation: Option<Reservation>,
}

/// A step of a submission towards its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StateChange {
    /// All objects exist.
    Launched,
    Running,
    Ended(Outcome),
}

impl StateChange {
    /// Returns the state that the row moves to, unless it is in that state or beyond.
    pub fn state(&self) -> State {
        match self {
            Self::Launched => State::Pending,
            Self::Running => State::Running,
            Self::Ended(outcome) => outcome.state,
        }
    }

    /// Returns the outcome, if this is the end.
    pub fn outcome(&self) -> Option<&Outcome> {
        match self {
            Self::Ended(outcome) => Some(outcome),
            Self::Launched | Self::Running => None,
        }
    }
}

impl fmt::Display for StateChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended(outcome) => write!(f, "{}: {}", outcome.state, outcome.message),
            Self::Launched | Self::Running => self.state().fmt(f),
        }
    }
}
