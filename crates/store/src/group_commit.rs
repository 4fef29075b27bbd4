//! Group commit: concurrent calls share a statement, because a statement and the disk take almost as long for one row as for
//! fifty. A call that arrives while no group is being carried out starts immediately.

use std::{
    collections::VecDeque,
    fmt,
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::FutureExt;
use tokio::{
    sync::oneshot,
    time::{Instant, sleep_until, timeout},
};

/// A queue of calls that are carried out in groups.
pub(super) struct GroupCommit<I, O>(Arc<Shared<I, O>>);

struct Shared<I, O> {
    waiting: Mutex<Waiting<I, O>>,
    /// Maximum number of concurrent groups.
    turns: usize,
    /// Maximum number of calls in a group.
    most: usize,
    /// Minimum time between the starts of two groups: calls that can wait this long form larger groups.
    gap: Duration,
}

struct Waiting<I, O> {
    calls: VecDeque<Call<I, O>>,
    /// The number of the next call.
    next: u64,
    /// Number of tasks that write groups.
    writers: usize,
}

struct Call<I, O> {
    number: u64,
    item: I,
    answer: oneshot::Sender<O>,
}

/// The reason why a call has no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unanswered {
    /// The call was not started.
    #[error("timed out in the queue of a group commit")]
    Late,
    /// The result of the call is unknown.
    #[error("the task of the statement was ended")]
    Ended,
}

/// Writes groups, one after the other.
pub(super) trait BatchWriter<I, O>: Send + 'static {
    /// Returns one answer for each call, in order.
    fn write(&self, group: Vec<I>) -> impl Future<Output = Vec<O>> + Send;
}

impl<I: Send + 'static, O: Send + 'static> GroupCommit<I, O> {
    pub(super) fn new(turns: usize, most: usize) -> Self {
        Self::with_gap(turns, most, Duration::ZERO)
    }

    /// Creates a queue that carries out one group at a time, at most once in `gap`.
    pub(super) fn paced(gap: Duration, most: usize) -> Self {
        Self::with_gap(1, most, gap)
    }

    fn with_gap(turns: usize, most: usize, gap: Duration) -> Self {
        let waiting = Mutex::new(Waiting { calls: VecDeque::new(), next: 0, writers: 0 });
        Self(Arc::new(Shared { waiting, turns, most, gap }))
    }

    /// Adds `item` and waits for its answer: up to `patience` until it is started, and then for as long as it takes. Groups are
    /// carried out in tasks of their own, so that dropping a caller cancels no other call; the call of the dropped caller is
    /// carried out, too.
    ///
    /// # Errors
    /// [`Unanswered`].
    pub(super) async fn call<C: BatchWriter<I, O>>(
        &self,
        item: I,
        patience: Option<Duration>,
        writer: impl FnOnce() -> C,
    ) -> Result<O, Unanswered> {
        let (sender, mut answer) = oneshot::channel();
        let number = self.0.hand_in(item, sender, |shared| tokio::spawn(shared.write_batches(writer())));
        let answered = match patience {
            Some(patience) => timeout(patience, &mut answer).await,
            None => Ok((&mut answer).await),
        };
        match answered {
            Err(_) if self.0.take_back(number) => Err(Unanswered::Late),
            Err(_) => answer.await.map_err(|_| Unanswered::Ended),
            Ok(answered) => answered.map_err(|_| Unanswered::Ended),
        }
    }
}

impl<I: Send + 'static, O: Send + 'static> Shared<I, O> {
    /// Adds a call and returns its number. `start` starts another writer, if all are busy and another is allowed.
    fn hand_in<T>(self: &Arc<Self>, item: I, answer: oneshot::Sender<O>, start: impl FnOnce(Arc<Self>) -> T) -> u64 {
        let mut waiting = self.waiting();
        let number = waiting.next;
        waiting.next += 1;
        waiting.calls.push_back(Call { number, item, answer });
        if waiting.writers < self.turns {
            waiting.writers += 1;
            start(self.clone());
        }
        number
    }

    /// Removes a call that has not started. `false` if it has.
    fn take_back(&self, number: u64) -> bool {
        let mut waiting = self.waiting();
        let place = waiting.calls.iter().position(|call| call.number == number);
        place.and_then(|place| waiting.calls.remove(place)).is_some()
    }

    /// Carries out groups until no call is left.
    async fn write_batches(self: Arc<Self>, writer: impl BatchWriter<I, O>) {
        while let Some((items, senders)) = self.next_group() {
            let next = Instant::now() + self.gap;
            // A group that panics gives no answers, and must not stop later groups.
            if let Ok(answers) = AssertUnwindSafe(writer.write(items)).catch_unwind().await {
                for (sender, answer) in senders.into_iter().zip(answers) {
                    // A dropped caller needs no answer.
                    let _ = sender.send(answer);
                }
            }
            // A sleep takes at least a millisecond, even if it is already due.
            if !self.gap.is_zero() {
                sleep_until(next).await;
            }
        }
    }

    /// Returns the next group. `None` if no call waits; in that case, this writer ends.
    fn next_group(&self) -> Option<(Vec<I>, Vec<oneshot::Sender<O>>)> {
        let mut waiting = self.waiting();
        if waiting.calls.is_empty() {
            waiting.writers -= 1;
            return None;
        }
        let group = waiting.calls.len().min(self.most);
        Some(waiting.calls.drain(..group).map(|call| (call.item, call.answer)).unzip())
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting<I, O>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<I, O> fmt::Debug for GroupCommit<I, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupCommit").field("most", &self.0.most).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
