//! State that all subscribers of a replica share.

use std::sync::{
    Arc, PoisonError, RwLock,
    atomic::{AtomicUsize, Ordering},
};

use tokio::sync::{Mutex, Notify, Semaphore, watch};

use super::ring::{FeedEvent, Next, Ring};
use sparkgate_store::{Event, Horizon, LostNumbers};

/// Events in memory. One usually takes some hundred bytes, and never more than some kilobytes.
const CAPACITY: usize = 4096;
/// Maximum number of subscribers that read from the database at the same time: after a restart, all of them may have to.
const CATCHING_UP: usize = 2;

/// How far this replica has read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Newest {
    /// Number of the newest event in the ring.
    pub(super) sequence: i64,
    /// Incremented when the database has lost events that were sent already.
    pub(super) history: u64,
    /// Numbers that were lost with an earlier history of the database.
    pub(super) lost: Option<LostNumbers>,
}

/// The newest events, and their subscribers.
#[derive(Debug)]
pub(super) struct Hub {
    ring: RwLock<Ring>,
    newest: watch::Sender<Newest>,
    /// The number of the newest event that has one, also while the ring isn't filled.
    numbered: watch::Sender<i64>,
    /// Held by the task that reads events into the ring.
    pub(super) rounds: Mutex<Rounds>,
    /// Notified when there may be something to publish for a subscriber of this replica.
    changed: Notify,
    subscribers: Arc<AtomicUsize>,
    pub(super) catching_up: Semaphore,
}

/// State of the rounds of this replica.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    pub(super) begun: bool,
    pub(super) horizon: Horizon,
    /// The sequence of ids was found to be past all events.
    pub(super) ids_are_new: bool,
}

/// What a cursor has read never happened: the database has lost it.
#[derive(Debug)]
pub(super) struct Lost;

/// The slot of one subscriber, until it is dropped.
#[derive(Debug)]
pub(super) struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Default for Hub {
    fn default() -> Self {
        Self {
            ring: RwLock::new(Ring::new(CAPACITY)),
            newest: watch::channel(Newest { sequence: 0, history: 0, lost: None }).0,
            numbered: watch::channel(0).0,
            rounds: Mutex::default(),
            changed: Notify::new(),
            subscribers: Arc::default(),
            catching_up: Semaphore::new(CATCHING_UP),
        }
    }
}

impl Hub {
    /// Reports that this process changed a state, so that subscribers get the event soon.
    pub(super) fn changed(&self) {
        if self.subscribers() > 0 {
            self.changed.notify_one();
        }
    }

    pub(super) async fn rung(&self) {
        self.changed.notified().await;
    }

    pub(super) fn subscribers(&self) -> usize {
        self.subscribers.load(Ordering::Relaxed)
    }

    /// Adds a subscriber, unless there are `most` already.
    pub(super) fn enter(&self, most: usize) -> Option<Place> {
        let place = Place(self.subscribers.clone());
        let others = self.subscribers.fetch_add(1, Ordering::Relaxed);
        if others >= most {
            return None;
        }
        self.changed.notify_one();
        Some(place)
    }

    pub(super) fn newest(&self) -> Newest {
        *self.newest.borrow()
    }

    /// Reports the number of the newest event.
    pub(super) fn set_numbered(&self, last: i64) {
        self.numbered.send_if_modified(|numbered| std::mem::replace(numbered, last) != last);
    }

    pub(super) fn follow_numbers(&self) -> watch::Receiver<i64> {
        self.numbered.subscribe()
    }

    pub(super) fn follow(&self) -> watch::Receiver<Newest> {
        self.newest.subscribe()
    }

    pub(super) fn after(&self, after: i64, limit: usize) -> Next {
        self.ring.read().unwrap_or_else(PoisonError::into_inner).after(after, limit)
    }

    /// Skips events before those that fit into the ring, up to `last`. The ring is filled as far as possible, so that clients
    /// that reconnect after a restart find their events in memory.
    pub(super) fn skip_to_what_fits(&self, last: i64) {
        let first = last - CAPACITY as i64;
        if self.newest().sequence < first {
            self.set(|ring| ring.reset(first));
        }
    }

    /// Appends a page of events. `end`: the page is the last one of the events up to this number.
    pub(super) fn push_page(&self, page: Vec<Event>, end: Option<i64>) {
        self.set(|ring| {
            for event in page {
                if let Some(sequence) = event.sequence {
                    ring.push(FeedEvent::new(sequence, event));
                }
            }
            if let Some(end) = end.filter(|end| ring.newest() < *end) {
                // The newest events were deleted before this replica read them.
                ring.reset(end);
            }
        });
    }

    /// Starts over at `last`, because the database was restored from an older backup and has lost events that were sent
    /// already.
    pub(super) fn went_back(&self, last: i64) {
        self.set(|ring| ring.reset(last));
        self.newest.send_modify(|newest| newest.history += 1);
    }

    /// Continues after numbers that were lost with a history of the database: those that have read one of them have read
    /// changes that never happened, and all others continue. The lost numbers are known before anything that follows them.
    pub(super) fn lose(&self, lost: LostNumbers) {
        self.newest.send_modify(|newest| newest.lost = Some(lost));
        self.set(|ring| {
            if ring.newest() > lost.after {
                ring.reset(lost.until);
            }
        });
    }

    /// Looks for events after a cursor that began with a history of the database.
    ///
    /// # Errors
    /// [`Lost`].
    pub(super) fn look(&self, cursor: &mut i64, began: u64, limit: usize) -> Result<Next, Lost> {
        let mut next = self.after(*cursor, limit);
        // Read after the ring, which skips lost numbers once they are known here.
        let Newest { history, lost, .. } = self.newest();
        if history != began || lost.is_some_and(|lost| lost.contain(*cursor)) {
            return Err(Lost);
        }
        // No event has one of the numbers in between.
        if let Some(lost) = lost.filter(|lost| lost.after == *cursor) {
            *cursor = lost.until;
            next = self.after(*cursor, limit);
        }
        // Up to lost numbers first: those after them don't follow immediately.
        let end = lost.map(|lost| lost.after).filter(|end| *cursor < *end);
        Ok(match (next, end) {
            (Next::Older(_), Some(end)) => Next::Older(end),
            (next, _) => next,
        })
    }

    fn set(&self, change: impl FnOnce(&mut Ring)) {
        let mut ring = self.ring.write().unwrap_or_else(PoisonError::into_inner);
        change(&mut ring);
        let sequence = ring.newest();
        drop(ring);
        self.newest.send_modify(|newest| newest.sequence = sequence);
    }
}
