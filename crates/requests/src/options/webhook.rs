//! A webhook that the request of a submission names.

use std::{fmt, str::FromStr};

use secrecy::SecretString;

use sparkgate_submission::State;

/// The format of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MessageFormat {
    /// `CloudEvents` 1.0, structured as JSON.
    CloudEvents,
    /// Run events of `OpenLineage`.
    OpenLineage,
}

/// A text is the name of no format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a format is cloudevents or openlineage")]
pub struct UnknownFormat;

/// A webhook for one submission.
#[derive(Debug, Clone)]
pub struct SubmissionWebhook {
    pub url: String,
    /// The signing secret. The response has none, because a repeated request gets the same response.
    pub secret: SecretString,
    pub format: MessageFormat,
    /// Only these states; all if there are none.
    pub states: Vec<State>,
}

impl MessageFormat {
    /// Contains all formats.
    pub const ALL: [Self; 2] = [Self::CloudEvents, Self::OpenLineage];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::CloudEvents => "cloudevents",
            Self::OpenLineage => "openlineage",
        }
    }
}

impl fmt::Display for MessageFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for MessageFormat {
    type Err = UnknownFormat;

    fn from_str(text: &str) -> Result<Self, UnknownFormat> {
        Self::ALL.into_iter().find(|format| format.as_str() == text).ok_or(UnknownFormat)
    }
}

/// Compares what is asked for, without secrets: a repeated request may have another.
impl PartialEq for SubmissionWebhook {
    fn eq(&self, other: &Self) -> bool {
        (&self.url, self.format, &self.states) == (&other.url, other.format, &other.states)
    }
}

impl Eq for SubmissionWebhook {}
