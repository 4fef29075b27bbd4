//! What all subscribers of a replica share.

use std::sync::{
    Arc, PoisonError, RwLock,
    atomic::{AtomicUsize, Ordering},
};

use tokio::sync::{Mutex, Notify, Semaphore, watch};

use super::{
    publish::Rounds,
    ring::{Next, Ring, Told},
};
use crate::store::Change;

/// Changes in memory. One is rarely more than some hundred bytes, and never more than some kilobytes.
const CAPACITY: usize = 4096;
/// Subscribers that read from the database at once: after a restart they all may have to.
const CATCHING_UP: usize = 2;

/// How far this replica is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Newest {
    /// Of the newest change in the ring.
    pub(super) sequence: i64,
    /// Counted up when the database has lost what was told already.
    pub(super) history: u64,
}

/// The newest changes, and who waits for the next one.
#[derive(Debug)]
pub(in crate::service) struct Hub {
    ring: RwLock<Ring>,
    newest: watch::Sender<Newest>,
    /// Held by the one who takes changes in.
    pub(super) rounds: Mutex<Rounds>,
    /// Rung when there may be something to publish for somebody here.
    changed: Notify,
    subscribers: Arc<AtomicUsize>,
    pub(super) catching_up: Semaphore,
}

/// The place of one subscriber, until it is dropped.
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
            newest: watch::Sender::new(Newest { sequence: 0, history: 0 }),
            rounds: Mutex::default(),
            changed: Notify::new(),
            subscribers: Arc::default(),
            catching_up: Semaphore::new(CATCHING_UP),
        }
    }
}

impl Hub {
    /// This process has changed a state: whoever waits for it shouldn't wait long.
    pub(in crate::service) fn changed(&self) {
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

    /// A place beside at most `most - 1` others.
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

    pub(super) fn follow(&self) -> watch::Receiver<Newest> {
        self.newest.subscribe()
    }

    pub(super) fn after(&self, after: i64, limit: usize) -> Next {
        self.ring.read().unwrap_or_else(PoisonError::into_inner).after(after, limit)
    }

    /// Only what fits into the ring is to be read up to `last`: so much of it that whoever comes back after a restart finds it
    /// here.
    pub(super) fn skip_to_what_fits(&self, last: i64) {
        let first = last - CAPACITY as i64;
        if self.newest().sequence < first {
            self.set(|ring| ring.reset(first));
        }
    }

    /// Takes in the next changes, a whole page of what there is `through` that number, or the `end` of it.
    pub(super) fn take_in(&self, page: Vec<Change>, end: Option<i64>) {
        self.set(|ring| {
            for change in page {
                if let Some(sequence) = change.sequence {
                    ring.push(Told::new(sequence, change));
                }
            }
            if let Some(end) = end.filter(|end| ring.newest() < *end) {
                // The newest ones were deleted before we saw them.
                ring.reset(end);
            }
        });
    }

    /// The database has lost what was told: it was brought back from an older copy.
    pub(super) fn went_back(&self, last: i64) {
        self.set(|ring| ring.reset(last));
        self.newest.send_modify(|newest| newest.history += 1);
    }

    fn set(&self, change: impl FnOnce(&mut Ring)) {
        let mut ring = self.ring.write().unwrap_or_else(PoisonError::into_inner);
        change(&mut ring);
        let sequence = ring.newest();
        drop(ring);
        self.newest.send_modify(|newest| newest.sequence = sequence);
    }
}
