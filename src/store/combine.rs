//! Group commit: what many ask for at the same moment is done together, because a statement and the disk take almost as long
//! for one row as for fifty. Whoever comes while nothing is under way goes at once.

use std::{
    collections::VecDeque,
    fmt,
    future::pending,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, oneshot},
    time::{Instant, sleep, sleep_until},
};

/// Calls that wait to be carried out, a number of them at a time.
pub(super) struct Combine<I, O> {
    waiting: Mutex<Waiting<I, O>>,
    /// How many groups may be under way.
    turns: Arc<Semaphore>,
    /// The most calls of a group.
    most: usize,
    /// From the beginning of a group to that of the next, at least: who can wait so long is spared company too small.
    gap: Duration,
}

struct Waiting<I, O> {
    calls: VecDeque<Call<I, O>>,
    /// Tells calls apart.
    next: u64,
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

impl<I: Send + 'static, O: Send + 'static> Combine<I, O> {
    pub(super) fn new(turns: usize, most: usize) -> Self {
        let waiting = Mutex::new(Waiting { calls: VecDeque::new(), next: 0 });
        Self { waiting, turns: Arc::new(Semaphore::new(turns)), most, gap: Duration::ZERO }
    }

    /// The same one after the other and no more often than once in `gap`.
    pub(super) fn paced(gap: Duration, most: usize) -> Self {
        Self { gap, ..Self::new(1, most) }
    }

    /// Hands `item` in and waits for its answer: for `patience` until it is begun, and then as long as it takes. `together`
    /// carries a group out and answers one for each, in their order; it runs in a task of its own, so that nobody's group
    /// ends with a caller that goes away.
    ///
    /// # Errors
    /// [`Unanswered`].
    pub(super) async fn call<F>(
        &self,
        item: I,
        patience: Option<Duration>,
        together: impl Fn(Vec<I>) -> F,
    ) -> Result<O, Unanswered>
    where
        F: Future<Output = Vec<O>> + Send + 'static,
    {
        let (sender, mut answer) = oneshot::channel();
        let number = self.hand_in(item, sender);
        let late = async {
            match patience {
                Some(patience) => sleep(patience).await,
                None => pending().await,
            }
        };
        let mut late = pin!(late);
        loop {
            let turn = tokio::select! {
                biased;
                answer = &mut answer => return answer.map_err(|_| Unanswered::Ended),
                turn = self.turns.clone().acquire_owned() => turn.map_err(|_| Unanswered::Ended)?,
                () = &mut late => {
                    if self.take_back(number) {
                        return Err(Unanswered::Late);
                    }
                    return answer.await.map_err(|_| Unanswered::Ended);
                }
            };
            // With this turn we go, or those who came before us; with an earlier one somebody may have taken us along.
            if self.go(turn, &together) == 0 {
                return answer.await.map_err(|_| Unanswered::Ended);
            }
        }
    }

    fn hand_in(&self, item: I, answer: oneshot::Sender<O>) -> u64 {
        let mut waiting = self.waiting();
        let number = waiting.next;
        waiting.next += 1;
        waiting.calls.push_back(Call { number, item, answer });
        number
    }

    /// `false` if it is under way already.
    fn take_back(&self, number: u64) -> bool {
        let mut waiting = self.waiting();
        let place = waiting.calls.iter().position(|call| call.number == number);
        place.and_then(|place| waiting.calls.remove(place)).is_some()
    }

    /// Sets a group off, and tells how many are left.
    fn go<F>(&self, turn: OwnedSemaphorePermit, together: &impl Fn(Vec<I>) -> F) -> usize
    where
        F: Future<Output = Vec<O>> + Send + 'static,
    {
        let (items, senders, left): (Vec<I>, Vec<_>, _) = {
            let calls = &mut self.waiting().calls;
            let group = calls.len().min(self.most);
            let (items, senders) = calls.drain(..group).map(|call| (call.item, call.answer)).unzip();
            (items, senders, calls.len())
        };
        if items.is_empty() {
            return left;
        }
        let answers = together(items);
        let next = Instant::now() + self.gap;
        tokio::spawn(async move {
            for (sender, answer) in senders.into_iter().zip(answers.await) {
                // Who went away needs none.
                let _ = sender.send(answer);
            }
            sleep_until(next).await;
            drop(turn);
        });
        left
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting<I, O>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<I, O> fmt::Debug for Combine<I, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Combine").field("most", &self.most).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
