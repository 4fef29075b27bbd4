//! The events of one submission.

use super::EventFeed;
use sparkgate_common::error::Error;
use sparkgate_store::Event;
use sparkgate_submission::SubmissionId;
use sparkgate_tenancy::session::Session;

/// A page of events, oldest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubmissionEvents {
    pub items: Vec<Event>,
    /// The number after which the next page starts, if there is one.
    pub next: Option<i64>,
}

impl EventFeed {
    /// Returns up to `limit` events of a submission after the number `after`. The newest ones may have no number yet. `None`
    /// if no submission has this id.
    pub async fn submission_events(
        &self,
        caller: &Session,
        id: &SubmissionId,
        after: i64,
        limit: u32,
    ) -> Result<Option<SubmissionEvents>, Error> {
        let found = self.store.scoped(&caller.readable()).submission_events(id, after, limit.saturating_add(1)).await?;
        Ok(found.map(|items| page(items, after, limit as usize)))
    }
}

/// Builds a page. Except for the last one, a page ends with an event that has a number: the next page starts after it.
fn page(mut items: Vec<Event>, after: i64, limit: usize) -> SubmissionEvents {
    if items.len() <= limit {
        return SubmissionEvents { items, next: None };
    }
    items.truncate(limit);
    let numbered = items.iter().take_while(|event| event.sequence.is_some()).count();
    items.truncate(numbered);
    let next = items.last().map_or(Some(after), |event| event.sequence);
    SubmissionEvents { items, next }
}
