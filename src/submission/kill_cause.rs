//! Why a submission is being killed: the first cause stays.

use super::Outcome;

/// Who or what ends a submission, with the words of a time limit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum KillCause {
    /// Somebody asked for it.
    #[default]
    Request,
    /// It wasn't running in time: how long that was, and why it waited.
    StartTimeout(String),
    /// It ran for longer than it may.
    RunTimeout(String),
}

/// A word that is no cause: the database was written by something else.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the cause of a kill")]
pub struct UnknownKillCause(pub String);

impl KillCause {
    pub const REQUEST: &'static str = Outcome::ON_REQUEST;
    pub const START_TIMEOUT: &'static str = "StartTimeout";
    pub const RUN_TIMEOUT: &'static str = "RunTimeout";

    /// The cause that a row has, and its words. A release that knew no causes left none: then somebody asked for it.
    ///
    /// # Errors
    /// [`UnknownKillCause`].
    pub fn of_row(cause: Option<&str>, words: Option<String>) -> Result<Self, UnknownKillCause> {
        let words = words.unwrap_or_default();
        match cause {
            None | Some(Self::REQUEST) => Ok(Self::Request),
            Some(Self::START_TIMEOUT) => Ok(Self::StartTimeout(words)),
            Some(Self::RUN_TIMEOUT) => Ok(Self::RunTimeout(words)),
            Some(other) => Err(UnknownKillCause(other.to_owned())),
        }
    }

    /// One word: the reason of the outcome.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Request => Self::REQUEST,
            Self::StartTimeout(_) => Self::START_TIMEOUT,
            Self::RunTimeout(_) => Self::RUN_TIMEOUT,
        }
    }

    /// The same for people.
    pub fn message(&self) -> &str {
        match self {
            Self::Request => "killed on request",
            Self::StartTimeout(words) if words.is_empty() => "not running in time: killed",
            Self::RunTimeout(words) if words.is_empty() => "still running after its time: killed",
            Self::StartTimeout(words) | Self::RunTimeout(words) => words,
        }
    }
}
