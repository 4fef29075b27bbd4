//! Group commits of accepting, and what its statements share.

use std::sync::Arc;

use tokio::sync::Mutex;

use super::{
    new_submission::NewSubmission,
    spares::{Drawn, Spares},
};
use crate::{error::Error, group_commit::GroupCommit};

/// Maximum number of concurrent statements for new submissions, and of submissions that share one (`TOGETHER`).
const AT_ONCE: usize = 2;
const TOGETHER: usize = 64;

/// Group commits of concurrent calls.
#[derive(Debug)]
pub(crate) struct Groups {
    pub(super) drawing: GroupCommit<(), Result<Drawn, Error>>,
    pub(super) spares: Spares,
    pub(super) accepting: GroupCommit<Arc<NewSubmission>, Result<bool, Error>>,
    pub(super) behind: Behind,
}

impl Default for Groups {
    fn default() -> Self {
        let spares = Spares::default();
        Self {
            drawing: GroupCommit::new(AT_ONCE, TOGETHER),
            spares,
            accepting: GroupCommit::new(AT_ONCE, TOGETHER),
            behind: Behind::default(),
        }
    }
}

/// The number that the sequence is known to be past. Locked while the sequence is moved, so that a replica moves it once.
#[derive(Debug, Default)]
pub(super) struct Behind(pub(super) Mutex<i64>);
