//! Reads that are under way.

use std::fmt;

use sqlx::{FromRow, Postgres, QueryBuilder, postgres::PgRow};
use tokio::sync::Semaphore;

use crate::{error::Error, group_commit::GroupCommit, scope::Scope};
use sparkgate_submission::SubmissionId;

/// Maximum number of concurrent reads that have a statement of their own, of concurrent statements that are shared, and of reads that share
/// one. A read of its own needs no other task to be woken up, which is most of the time of a small statement.
const ALONE: usize = 2;
const AT_ONCE: usize = 2;
pub(super) const TOGETHER: usize = 32;

/// What is read of a submission. Reads of equal views may share a statement.
pub(crate) trait View: PartialEq + Send + Sync + 'static {
    type Row: for<'r> FromRow<'r, PgRow> + Send + 'static;

    /// Appends a statement that returns `place`, `tenant`, `principal` and the columns of [`Self::Row`] for each row of `submissions s` that
    /// `rows` appends.
    fn push(&self, query: &mut QueryBuilder<Postgres>, rows: impl FnOnce(&mut QueryBuilder<Postgres>));
}

pub(crate) type Found<V> = Result<Option<<V as View>::Row>, Error>;

/// A view of one submission, for one caller.
pub(super) struct Wanted<V> {
    pub(super) id: SubmissionId,
    pub(super) scope: Scope,
    pub(super) view: V,
}

/// The reads of one kind that are under way.
pub(crate) struct GroupedReads<V: View> {
    pub(super) alone: Semaphore,
    pub(super) together: GroupCommit<Wanted<V>, Found<V>>,
}

impl<V: View> Default for GroupedReads<V> {
    fn default() -> Self {
        Self { alone: Semaphore::new(ALONE), together: GroupCommit::new(AT_ONCE, TOGETHER) }
    }
}

impl<V: View> fmt::Debug for GroupedReads<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupedReads").field("together", &self.together).finish_non_exhaustive()
    }
}
