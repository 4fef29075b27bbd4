//! What requests want to change, as the audit names it.

/// A change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub action: &'static str,
    pub about: About,
}

/// The subject of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum About {
    Nothing,
    Submission(String),
    Batch(i64),
    Key(String),
    Webhook(String),
    File(String),
}

/// Each takes the first parameter of a path.
impl About {
    /// A change without a subject.
    pub fn nothing(_: &str) -> Self {
        Self::Nothing
    }

    /// A change of a submission.
    pub fn submission(id: &str) -> Self {
        Self::Submission(id.to_owned())
    }

    /// A change of a batch. A batch that is named, not numbered, is nothing here.
    pub fn batch(id: &str) -> Self {
        id.parse().map_or(Self::Nothing, Self::Batch)
    }

    /// A change of an API key.
    pub fn key(id: &str) -> Self {
        Self::Key(id.to_owned())
    }

    /// A change of a webhook.
    pub fn webhook(id: &str) -> Self {
        Self::Webhook(id.to_owned())
    }

    /// A change of a file.
    pub fn file(digest: &str) -> Self {
        Self::File(digest.to_owned())
    }
}
