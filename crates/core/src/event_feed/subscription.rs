//! One subscriber, with its own cursor in the order of events.

use std::sync::Arc;

use tokio::sync::watch;

use super::{
    EventFeed,
    filter::EventFilter,
    hub::{Lost, Newest, Place},
    ring::{FeedEvent, Next},
};
use sparkgate_common::{detached::detached, error::Error, rate_limits::Exceeded, tenant_slots::TenantSlot};
use sparkgate_store::Event;
use sparkgate_tenancy::session::Session;

/// Maximum number of events that are read at once from memory, and from the database.
const BATCH: usize = 200;
const PAGE: u32 = 200;

/// The reason why a subscription can't start, or ends.
#[derive(Debug, thiserror::Error)]
pub enum Interrupted {
    /// Events after the cursor were deleted with their submissions, before they could be sent.
    #[error("changes after {0} are no longer stored: list the submissions, then follow new changes")]
    Expired(i64),
    /// No event has this number yet.
    #[error("{cursor} is not the number of a change: the newest change has number {newest}")]
    Future { cursor: i64, newest: i64 },
    #[error("there are {0} subscribers already")]
    TooMany(usize),
    /// The tenant's cap on subscribers is reached.
    #[error("{0}")]
    Limited(Exceeded),
    /// This process is shutting down: the client can reconnect to another replica.
    #[error("the gateway is shutting down")]
    Closing,
    /// The database failed; a retry continues where this call stopped.
    #[error(transparent)]
    Failed(#[from] Error),
}

/// The events that match one client's filter, in order, each exactly once.
pub struct Subscription {
    feed: Arc<EventFeed>,
    filter: EventFilter,
    cursor: i64,
    newest: watch::Receiver<Newest>,
    history: u64,
    _places: (Place, TenantSlot),
}

impl EventFeed {
    /// Follows the events after the number `after`, or new ones only. `most` is the maximum number of subscribers, including
    /// this one.
    ///
    /// # Errors
    /// [`Interrupted::Future`], [`Interrupted::TooMany`], [`Interrupted::Limited`], or an error of the database.
    pub async fn subscribe(
        self: &Arc<Self>,
        caller: &Session,
        filter: EventFilter,
        after: Option<i64>,
        most: usize,
    ) -> Result<Subscription, Interrupted> {
        let hub = &self.hub;
        let capped = caller.capped().into_iter().map(|tenant| (tenant.name.as_str(), tenant.limits.subscribers));
        let of_tenants = self.of_tenants.take(capped).map_err(Interrupted::Limited)?;
        let place = hub.enter(most).ok_or(Interrupted::TooMany(most))?;
        let newest = hub.follow();
        let history = newest.borrow().history;
        let cursor = match after {
            Some(cursor) if cursor <= hub.newest().sequence => cursor,
            // Another replica may have read newer events than this one.
            _ => {
                let newest = self.store.last_number().await.map_err(Error::from)?;
                let cursor = after.unwrap_or(newest);
                if cursor > newest {
                    return Err(Interrupted::Future { cursor, newest });
                }
                cursor
            }
        };
        Ok(Subscription { feed: self.clone(), filter, cursor, newest, history, _places: (place, of_tenants) })
    }
}

impl Subscription {
    /// Returns the cursor: all events up to this number were returned or didn't match.
    pub fn cursor(&self) -> i64 {
        self.cursor
    }

    /// Returns the events that are available without waiting. The result may be empty because none of them matches;
    /// [`Subscription::is_behind`] says whether there are more.
    ///
    /// # Errors
    /// [`Interrupted::Expired`], [`Interrupted::Closing`], or an error of the database.
    pub async fn pull(&mut self) -> Result<Vec<Arc<FeedEvent>>, Interrupted> {
        let hub = &self.feed.hub;
        if self.feed.closing.is_cancelled() {
            return Err(Interrupted::Closing);
        }
        let next = hub.look(&mut self.cursor, self.history, BATCH);
        let mut events = match next.map_err(|Lost| Interrupted::Expired(self.cursor))? {
            Next::Here(events) => events,
            Next::Nothing => return Ok(Vec::new()),
            Next::Older(end) => self.catch_up(end).await?,
        };
        if let Some(last) = events.last() {
            self.cursor = last.sequence;
        }
        events.retain(|event| self.filter.takes(&event.event));
        Ok(events)
    }

    /// Waits for the next matching events and returns at least one.
    ///
    /// Cancel-safe: dropping the future loses no event.
    ///
    /// # Errors
    /// As [`Subscription::pull`].
    pub async fn next(&mut self) -> Result<Vec<Arc<FeedEvent>>, Interrupted> {
        loop {
            let events = self.pull().await?;
            if !events.is_empty() {
                return Ok(events);
            }
            let (cursor, history) = (self.cursor, self.history);
            let more = self.newest.wait_for(|newest| newest.sequence > cursor || newest.history != history);
            tokio::select! {
                _ = more => {}
                () = self.feed.closing.cancelled() => {}
            }
        }
    }

    /// Returns whether more events can be pulled without waiting.
    pub fn is_behind(&self) -> bool {
        self.feed.hub.newest().sequence > self.cursor
    }

    /// Reads a page of the events up to `newest` from the database. Numbers have no gaps, so a missing one was deleted.
    async fn catch_up(&self, newest: i64) -> Result<Vec<Arc<FeedEvent>>, Interrupted> {
        let (feed, cursor) = (self.feed.clone(), self.cursor);
        let page = detached(async move {
            let _turn = feed.hub.catching_up.acquire().await;
            feed.store.events(cursor, PAGE).await
        });
        let mut page = page.await.map_err(Error::from)?;
        page.retain(|event| event.sequence.is_some_and(|sequence| sequence <= newest));
        if !is_whole(self.cursor, newest, &page) {
            return Err(Interrupted::Expired(self.cursor));
        }
        Ok(page.into_iter().filter_map(|event| Some(FeedEvent::new(event.sequence?, event))).collect())
    }
}

/// Returns whether a page starts right after the cursor, has no gaps, and ends either because it is full or not before
/// `newest`.
fn is_whole(cursor: i64, newest: i64, page: &[Event]) -> bool {
    let ends_at = (cursor + 1..)
        .zip(page)
        .try_fold(cursor, |_, (expected, event)| (event.sequence == Some(expected)).then_some(expected));
    ends_at.is_some_and(|end| page.len() == PAGE as usize || end >= newest)
}
