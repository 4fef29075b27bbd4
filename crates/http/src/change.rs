//! What requests want to change, as the audit names it.

/// A change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) action: &'static str,
    pub(super) about: About,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum About {
    Nothing,
    Submission(String),
    Batch(i64),
    Key(String),
    Webhook(String),
    File(String),
}

/// Each takes the first parameter of a path.
impl About {
    pub(super) fn nothing(_: &str) -> Self {
        Self::Nothing
    }

    pub(super) fn submission(id: &str) -> Self {
        Self::Submission(id.to_owned())
    }

    /// Batches have names, too.
    pub(super) fn batch(id: &str) -> Self {
        id.parse().map_or(Self::Nothing, Self::Batch)
    }

    pub(super) fn key(id: &str) -> Self {
        Self::Key(id.to_owned())
    }

    pub(super) fn webhook(id: &str) -> Self {
        Self::Webhook(id.to_owned())
    }

    pub(super) fn file(digest: &str) -> Self {
        Self::File(digest.to_owned())
    }
}
