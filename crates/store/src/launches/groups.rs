//! Group commits of the two writes of a launch.

use std::time::Duration;

use crate::{error::Error, group_commit::GroupCommit};
use sparkgate_submission::{State, SubmissionId};

/// A launch takes about ten milliseconds for each object: this additional delay is negligible, and saves most of the
/// statements.
const GAP: Duration = Duration::from_millis(25);
const TOGETHER: usize = 64;

/// The group commits of the two writes.
#[derive(Debug)]
pub(crate) struct Groups {
    pub(super) recording: GroupCommit<Launch, Result<Option<State>, Error>>,
    pub(super) ending: GroupCommit<Launch, Result<Option<State>, Error>>,
}

impl Default for Groups {
    fn default() -> Self {
        Self { recording: GroupCommit::paced(GAP, TOGETHER), ending: GroupCommit::paced(GAP, TOGETHER) }
    }
}

/// A launch under its claim, and the pod that it created.
#[derive(Debug, Clone)]
pub(crate) struct Launch {
    pub(super) id: String,
    pub(super) attempt: i32,
    pub(super) claim: i64,
    pub(super) uid: String,
}

impl Launch {
    pub(super) fn new(id: &SubmissionId, attempt: i32, claim: i64, uid: &str) -> Self {
        Self { id: id.to_string(), attempt, claim, uid: uid.to_owned() }
    }
}
