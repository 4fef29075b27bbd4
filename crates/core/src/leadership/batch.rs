//! How many rows the statements of the clean-up handle.

use std::sync::atomic::{AtomicU32, Ordering};

use sparkgate_store as store;

/// Maximum number of pods and submissions of one round.
pub(super) const ROUND: u32 = 100;
/// Maximum number of submissions whose usage one statement settles.
pub(super) const SETTLED_AT_ONCE: u32 = 500;

/// How many rows a statement handles: fewer after one that took too long.
#[derive(Debug)]
pub(super) struct Batch {
    most: u32,
    now: AtomicU32,
}

impl Batch {
    pub(super) fn new(most: u32) -> Self {
        Self { most, now: AtomicU32::new(most) }
    }

    /// Runs a statement, with half as many rows each time that it takes too long. Returns its result, and whether it handled as many
    /// rows as it was given.
    pub(super) async fn run<F>(&self, statement: impl Fn(u32) -> F + Send) -> Result<(u64, bool), store::Error>
    where
        F: Future<Output = Result<u64, store::Error>> + Send,
    {
        loop {
            let limit = self.now.load(Ordering::Relaxed);
            let result = statement(limit).await;
            if limit > 1 && result.as_ref().is_err_and(store::Error::is_timeout) {
                self.now.store(limit / 2, Ordering::Relaxed);
                continue;
            }
            let count = result?;
            self.now.store((limit * 2).min(self.most), Ordering::Relaxed);
            return Ok((count, count >= u64::from(limit)));
        }
    }
}
