//! Reads that are under way.

use tokio::sync::Semaphore;

use super::row::Record;
use crate::{error::Error, group_commit::GroupCommit, scope::Scope};
use sparkgate_submission::SubmissionId;

/// Maximum number of concurrent reads that have a statement of their own, of concurrent statements that are shared, and of reads that share
/// one. A read of its own needs no other task to be woken up, which is most of the time of a small statement.
const ALONE: usize = 2;
const AT_ONCE: usize = 2;
const TOGETHER: usize = 64;

/// One read: of which submission, and for whom.
pub(super) struct Wanted {
    pub(super) id: SubmissionId,
    pub(super) scope: Scope,
}

pub(super) type Found = Result<Option<Record>, Error>;

/// Reads that are under way.
#[derive(Debug)]
pub(crate) struct Records {
    pub(super) alone: Semaphore,
    pub(super) together: GroupCommit<Wanted, Found>,
}

impl Default for Records {
    fn default() -> Self {
        Self { alone: Semaphore::new(ALONE), together: GroupCommit::new(AT_ONCE, TOGETHER) }
    }
}
