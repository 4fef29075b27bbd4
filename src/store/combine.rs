//! Group commit: what many ask for at the same moment is done together, because a statement and the disk take almost as long
//! for one row as for fifty. Whoever comes while nothing is under way goes at once.

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

/// Calls that wait to be carried out, a number of them at a time.
pub(super) struct Combine<I, O>(Arc<Shared<I, O>>);

struct Shared<I, O> {
    waiting: Mutex<Waiting<I, O>>,
    /// How many groups may be under way.
    turns: usize,
    /// The most calls of a group.
    most: usize,
    /// From the beginning of a group to that of the next, at least: who can wait so long is spared company too small.
    gap: Duration,
}

struct Waiting<I, O> {
    calls: VecDeque<Call<I, O>>,
    /// Tells calls apart.
    next: u64,
    /// Tasks that carry groups out.
    carriers: usize,
}

struct Call<I, O> {
    number: u64,
    item: I,
    answer: oneshot::Sender<O>,
}

/// A call that has no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unanswered {
    /// It was not begun.
    #[error("others were waited for too long")]
    Late,
    /// It is unknown what became of it.
    #[error("the statement's task was ended")]
    Ended,
}

/// Carries groups out, one after the other.
pub(super) trait Carrier<I, O>: Send + 'static {
    /// Answers one for each, in their order.
    fn carry_out(&self, group: Vec<I>) -> impl Future<Output = Vec<O>> + Send;
}

impl<I: Send + 'static, O: Send + 'static> Combine<I, O> {
    pub(super) fn new(turns: usize, most: usize) -> Self {
        Self::with_gap(turns, most, Duration::ZERO)
    }

    /// The same one after the other and no more often than once in `gap`.
    pub(super) fn paced(gap: Duration, most: usize) -> Self {
        Self::with_gap(1, most, gap)
    }

    fn with_gap(turns: usize, most: usize, gap: Duration) -> Self {
        let waiting = Mutex::new(Waiting { calls: VecDeque::new(), next: 0, carriers: 0 });
        Self(Arc::new(Shared { waiting, turns, most, gap }))
    }

    /// Hands `item` in and waits for its answer: for `patience` until it is begun, and then as long as it takes. Groups are
    /// carried out in tasks of their own, so that nobody's ends with a caller that goes away; what that one handed in is
    /// carried out, too.
    ///
    /// # Errors
    /// [`Unanswered`].
    pub(super) async fn call<C: Carrier<I, O>>(
        &self,
        item: I,
        patience: Option<Duration>,
        carrier: impl FnOnce() -> C,
    ) -> Result<O, Unanswered> {
        let (sender, mut answer) = oneshot::channel();
        let number = self.0.hand_in(item, sender, |shared| tokio::spawn(shared.carry(carrier())));
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
    /// Answers the call's number. `start` makes one more carrier, if all are busy and there may be more.
    fn hand_in<T>(self: &Arc<Self>, item: I, answer: oneshot::Sender<O>, start: impl FnOnce(Arc<Self>) -> T) -> u64 {
        let mut waiting = self.waiting();
        let number = waiting.next;
        waiting.next += 1;
        waiting.calls.push_back(Call { number, item, answer });
        if waiting.carriers < self.turns {
            waiting.carriers += 1;
            start(self.clone());
        }
        number
    }

    /// `false` if it is under way already.
    fn take_back(&self, number: u64) -> bool {
        let mut waiting = self.waiting();
        let place = waiting.calls.iter().position(|call| call.number == number);
        place.and_then(|place| waiting.calls.remove(place)).is_some()
    }

    /// Carries out what there is, and goes when nobody comes any more.
    async fn carry(self: Arc<Self>, carrier: impl Carrier<I, O>) {
        while let Some((items, senders)) = self.next_group() {
            let next = Instant::now() + self.gap;
            // What panics answers nobody, and is not to stop those who come after it.
            if let Ok(answers) = AssertUnwindSafe(carrier.carry_out(items)).catch_unwind().await {
                for (sender, answer) in senders.into_iter().zip(answers) {
                    // Who went away needs none.
                    let _ = sender.send(answer);
                }
            }
            // Sleeping takes its millisecond even if it is for nothing.
            if !self.gap.is_zero() {
                sleep_until(next).await;
            }
        }
    }

    /// `None` if nobody waits: then there is one carrier less.
    fn next_group(&self) -> Option<(Vec<I>, Vec<oneshot::Sender<O>>)> {
        let mut waiting = self.waiting();
        if waiting.calls.is_empty() {
            waiting.carriers -= 1;
            return None;
        }
        let group = waiting.calls.len().min(self.most);
        Some(waiting.calls.drain(..group).map(|call| (call.item, call.answer)).unzip())
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting<I, O>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<I, O> fmt::Debug for Combine<I, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Combine").field("most", &self.0.most).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
