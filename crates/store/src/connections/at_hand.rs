//! What is kept ready for the next caller, which waits for one of a limited number of turns.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::sync::{AcquireError, Semaphore, SemaphorePermit};

/// Turns for callers, and what earlier callers have left for the next ones.
#[derive(Debug)]
pub(super) struct AtHand<T> {
    /// Callers wait here, and get what the previous one returned.
    turns: Semaphore,
    most: usize,
    /// What is kept for less than this.
    fresh: Duration,
    free: Mutex<Vec<Held<T>>>,
}

/// Something, and when it was obtained.
#[derive(Debug)]
pub(super) struct Held<T>(T, Instant);

/// A caller's turn, until it is dropped.
#[derive(Debug)]
pub(super) struct Turn<'a, T> {
    of: &'a AtHand<T>,
    permit: SemaphorePermit<'a>,
}

impl<T> AtHand<T> {
    /// Permits `most` turns at a time. What is older than `fresh` isn't kept.
    pub(super) fn new(most: usize, fresh: Duration) -> Self {
        let most = most.min(Semaphore::MAX_PERMITS);
        Self { turns: Semaphore::new(most), most, fresh, free: Mutex::default() }
    }

    /// Returns how many turns are under way.
    pub(super) fn busy(&self) -> usize {
        self.most.saturating_sub(self.turns.available_permits())
    }

    /// Waits for a turn.
    ///
    /// # Errors
    /// There are no more turns.
    pub(super) async fn turn(&self) -> Result<Turn<'_, T>, AcquireError> {
        Ok(Turn { of: self, permit: self.turns.acquire().await? })
    }

    /// Ends all waiting, and drops what is kept. Nothing is kept from now on.
    pub(super) fn close(&self) {
        self.turns.close();
        self.free().clear();
    }

    fn free(&self) -> MutexGuard<'_, Vec<Held<T>>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Turn<'_, T> {
    /// Returns what was used last. What is too old is dropped.
    pub(super) fn last(&self) -> Option<Held<T>> {
        let mut free = self.of.free();
        free.retain(|Held(_, since)| since.elapsed() < self.of.fresh);
        free.pop()
    }

    /// Ends the turn, and keeps what it used for the next one.
    pub(super) fn leave(self, held: Held<T>) {
        let mut free = self.of.free();
        if !self.of.turns.is_closed() {
            free.push(held);
        }
        drop((free, self.permit));
    }
}

impl<T> Held<T> {
    pub(super) fn new(one: T) -> Self {
        Self(one, Instant::now())
    }

    pub(super) fn get_mut(&mut self) -> &mut T {
        &mut self.0
    }
}
