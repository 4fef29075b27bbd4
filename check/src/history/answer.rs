//! What a client learned from a call: `docs/operate/reliability.md`, "What each answer means".

use serde::{Deserialize, Serialize};

use super::Document;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Answer {
    Reply(Reply),
    /// No connection was made.
    NotSent,
    /// The request was sent, and no whole reply came.
    Lost,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reply {
    pub status: u16,
    #[serde(default)]
    pub retry_after: bool,
    /// What a problem says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document: Option<Document>,
}

/// What an answer says of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    Yes,
    No,
    InDoubt,
}

impl Answer {
    /// Returns what the answer says of a request that changes something.
    pub fn kept(&self) -> Kept {
        let reply = match self {
            Self::NotSent => return Kept::No,
            Self::Lost => return Kept::InDoubt,
            Self::Reply(reply) => reply,
        };
        let nothing_was_done = reply.detail.as_ref().is_some_and(|detail| detail.starts_with("Nothing was done"));
        match reply.status {
            200..300 => Kept::Yes,
            500.. if reply.retry_after || nothing_was_done => Kept::No,
            500.. => Kept::InDoubt,
            _ => Kept::No,
        }
    }

    /// Returns the submission that it describes, if the request succeeded.
    pub fn document(&self) -> Option<&Document> {
        match self {
            Self::Reply(reply) if (200..300).contains(&reply.status) => reply.document.as_ref(),
            _ => None,
        }
    }
}
