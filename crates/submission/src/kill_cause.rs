//! The cause of a kill. The first cause of a submission is final.

/// Why a submission is killed. Timeouts carry their message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum KillCause {
    /// A client requested it.
    #[default]
    Request,
    /// The submission wasn't running in time. Says how long that was, and why it waited.
    StartTimeout(String),
    /// The submission ran longer than its timeout.
    RunTimeout(String),
}

/// A value that is no cause: another program wrote to the database.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the cause of a kill")]
pub struct UnknownKillCause(pub String);

impl KillCause {
    /// The reason of a submission that was killed through Sparkgate.
    pub const REQUEST: &'static str = "Killed";
    pub const START_TIMEOUT: &'static str = "StartTimeout";
    pub const RUN_TIMEOUT: &'static str = "RunTimeout";

    /// Reads the cause and the message of a row. Older releases stored no cause; then a client requested the kill.
    ///
    /// # Errors
    /// [`UnknownKillCause`].
    pub fn from_row(cause: Option<&str>, words: Option<String>) -> Result<Self, UnknownKillCause> {
        let words = words.unwrap_or_default();
        match cause {
            None | Some(Self::REQUEST) => Ok(Self::Request),
            Some(Self::START_TIMEOUT) => Ok(Self::StartTimeout(words)),
            Some(Self::RUN_TIMEOUT) => Ok(Self::RunTimeout(words)),
            Some(other) => Err(UnknownKillCause(other.to_owned())),
        }
    }

    /// Returns the reason of the outcome, one word.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Request => Self::REQUEST,
            Self::StartTimeout(_) => Self::START_TIMEOUT,
            Self::RunTimeout(_) => Self::RUN_TIMEOUT,
        }
    }

    /// Returns the message of the outcome.
    pub fn message(&self) -> &str {
        match self {
            Self::Request => "killed on request",
            Self::StartTimeout(words) if words.is_empty() => "not running in time: killed",
            Self::RunTimeout(words) if words.is_empty() => "still running after its timeout: killed",
            Self::StartTimeout(words) | Self::RunTimeout(words) => words,
        }
    }
}
