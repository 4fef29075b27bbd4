//! One subscriber: a place in the order of changes, moved on by nobody but itself.

use std::sync::Arc;

use tokio::sync::watch;

use super::{
    ChangeFilter, Told,
    hub::{Newest, Place},
    ring::Next,
};
use crate::{
    service::{Error, Gateway, detached::detached},
    store::Change,
};

/// Changes that are taken at once from the memory, and from the database.
const BATCH: usize = 200;
const PAGE: u32 = 200;

/// Why a subscription can't begin, or ends.
#[derive(Debug, thiserror::Error)]
pub enum Interrupted {
    /// Changes after the cursor were deleted with their submissions, before they could be told.
    #[error("changes after {0} are not kept any more: list the submissions, and follow from now on")]
    Expired(i64),
    /// No change has this number yet.
    #[error("{cursor} is not the number of a change: the newest one has {newest}")]
    Future { cursor: i64, newest: i64 },
    #[error("there are {0} subscribers already")]
    TooMany(usize),
    /// This process is ending: another replica goes on.
    #[error("the gateway is shutting down")]
    Closing,
    /// The database; the same call goes on where it was.
    #[error(transparent)]
    Failed(#[from] Error),
}

/// The changes that one client wants, in their order, each exactly once.
pub struct Subscription {
    gateway: Gateway,
    filter: ChangeFilter,
    cursor: i64,
    newest: watch::Receiver<Newest>,
    history: u64,
    _place: Place,
}

impl Gateway {
    /// Follows the changes after the number `after`, or from now on, beside less than `most` other subscribers.
    ///
    /// # Errors
    /// [`Interrupted::Future`], [`Interrupted::TooMany`], or the database.
    pub async fn subscribe(
        &self,
        filter: ChangeFilter,
        after: Option<i64>,
        most: usize,
    ) -> Result<Subscription, Interrupted> {
        let hub = &self.events;
        let place = hub.enter(most).ok_or(Interrupted::TooMany(most))?;
        let newest = hub.follow();
        let history = newest.borrow().history;
        let cursor = match after {
            Some(cursor) if cursor <= hub.newest().sequence => cursor,
            // Another replica may know more than we do.
            _ => {
                let newest = self.store.last_number().await.map_err(Error::from)?;
                let cursor = after.unwrap_or(newest);
                if cursor > newest {
                    return Err(Interrupted::Future { cursor, newest });
                }
                cursor
            }
        };
        Ok(Subscription { gateway: self.clone(), filter, cursor, newest, history, _place: place })
    }
}

impl Subscription {
    /// All changes up to this number were told or weren't wanted.
    pub fn cursor(&self) -> i64 {
        self.cursor
    }

    /// What there is already, without waiting for more. Nothing wanted may be among it, so [`Subscription::is_behind`]
    /// tells whether there is more.
    ///
    /// # Errors
    /// [`Interrupted::Expired`], [`Interrupted::Closing`], or the database.
    pub async fn pull(&mut self) -> Result<Vec<Arc<Told>>, Interrupted> {
        let hub = &self.gateway.events;
        if self.gateway.closing.is_cancelled() {
            return Err(Interrupted::Closing);
        }
        if self.newest.borrow().history != self.history {
            return Err(Interrupted::Expired(self.cursor));
        }
        let mut told = match hub.after(self.cursor, BATCH) {
            Next::Here(told) => told,
            Next::Nothing => return Ok(Vec::new()),
            Next::Older(newest) => self.catch_up(newest).await?,
        };
        if let Some(last) = told.last() {
            self.cursor = last.sequence;
        }
        told.retain(|told| self.filter.takes(&told.change));
        Ok(told)
    }

    /// The next changes that are wanted, at least one.
    ///
    /// This may be dropped at any time: nothing is lost.
    ///
    /// # Errors
    /// As [`Subscription::pull`].
    pub async fn next(&mut self) -> Result<Vec<Arc<Told>>, Interrupted> {
        loop {
            let told = self.pull().await?;
            if !told.is_empty() {
                return Ok(told);
            }
            let (cursor, history) = (self.cursor, self.history);
            let more = self.newest.wait_for(|newest| newest.sequence > cursor || newest.history != history);
            tokio::select! {
                _ = more => {}
                () = self.gateway.closing.cancelled() => {}
            }
        }
    }

    /// Whether there is more to pull at once.
    pub fn is_behind(&self) -> bool {
        self.gateway.events.newest().sequence > self.cursor
    }

    /// A page from the database. Numbers follow each other without gaps, so one that is missing was deleted.
    async fn catch_up(&self, newest: i64) -> Result<Vec<Arc<Told>>, Interrupted> {
        let (gateway, cursor) = (self.gateway.clone(), self.cursor);
        let page = detached(async move {
            let _turn = gateway.events.catching_up.acquire().await;
            gateway.store.changes(cursor, PAGE).await
        });
        let page = page.await.map_err(Error::from)?;
        if !is_whole(self.cursor, newest, &page) {
            return Err(Interrupted::Expired(self.cursor));
        }
        Ok(page.into_iter().filter_map(|change| Some(Told::new(change.sequence?, change))).collect())
    }
}

/// Whether a page begins right after the cursor, has no gaps, and ends because it is full or not before `newest`.
fn is_whole(cursor: i64, newest: i64, page: &[Change]) -> bool {
    let ends_at = (cursor + 1..)
        .zip(page)
        .try_fold(cursor, |_, (expected, change)| (change.sequence == Some(expected)).then_some(expected));
    ends_at.is_some_and(|end| page.len() == PAGE as usize || end >= newest)
}
