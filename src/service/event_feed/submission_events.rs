//! The changes of one submission.

use super::EventFeed;
use crate::{service::error::Error, store::Change, submission::SubmissionId};

/// A page of changes, oldest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changes {
    pub items: Vec<Change>,
    /// The number after which the next page starts, if there is one.
    pub next: Option<i64>,
}

impl EventFeed {
    /// Returns up to `limit` changes of a submission after the number `after`. The newest ones may have no number yet. `None`
    /// if no submission has this id.
    pub async fn changes_of(&self, id: &SubmissionId, after: i64, limit: u32) -> Result<Option<Changes>, Error> {
        let found = self.store.changes_of(id, after, limit.saturating_add(1)).await?;
        Ok(found.map(|items| page(items, after, limit as usize)))
    }
}

/// Builds a page. Except for the last one, a page ends with a change that has a number: the next page starts after it.
fn page(mut items: Vec<Change>, after: i64, limit: usize) -> Changes {
    if items.len() <= limit {
        return Changes { items, next: None };
    }
    items.truncate(limit);
    let numbered = items.iter().take_while(|change| change.sequence.is_some()).count();
    items.truncate(numbered);
    let next = items.last().map_or(Some(after), |change| change.sequence);
    Changes { items, next }
}
