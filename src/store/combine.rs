//! Group commit: what many ask for at the same moment is done together, because a statement and the disk take almost as long
//! for one row as for fifty. Whoever comes while nothing is under way goes at once.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, oneshot},
    time::{Instant, sleep_until},
};

/// Calls that wait to be carried out, a number of them at a time.
pub(super) struct Combine<I, O> {
    waiting: Mutex<Vec<(I, oneshot::Sender<O>)>>,
    /// How many groups may be under way.
    turns: Arc<Semaphore>,
    /// The most calls of a group.
    most: usize,
    /// From the beginning of a group to that of the next, at least: who can wait so long is spared company too small.
    gap: Duration,
}

/// Whoever carried the call out was ended half-way.
#[derive(Debug, thiserror::Error)]
#[error("the statement's task was ended")]
pub(super) struct Ended;

impl<I: Send + 'static, O: Send + 'static> Combine<I, O> {
    pub(super) fn new(turns: usize, most: usize) -> Self {
        Self { waiting: Mutex::default(), turns: Arc::new(Semaphore::new(turns)), most, gap: Duration::ZERO }
    }

    /// The same one after the other and no more often than once in `gap`.
    pub(super) fn paced(gap: Duration, most: usize) -> Self {
        Self { gap, ..Self::new(1, most) }
    }

    /// Hands `item` in and waits for its answer. `together` carries a group out and answers one for each, in their order;
    /// it runs in a task of its own, so that nobody's group ends with a caller that goes away.
    ///
    /// # Errors
    /// [`Ended`]: it is unknown what became of it.
    pub(super) async fn call<F>(&self, item: I, together: impl Fn(Vec<I>) -> F) -> Result<O, Ended>
    where
        F: Future<Output = Vec<O>> + Send + 'static,
    {
        let (sender, mut answer) = oneshot::channel();
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push((item, sender));
        loop {
            let turn = tokio::select! {
                biased;
                answer = &mut answer => return answer.map_err(|_| Ended),
                turn = self.turns.clone().acquire_owned() => turn.map_err(|_| Ended)?,
            };
            // With this turn we go, or those who came before us; with an earlier one somebody may have taken us along.
            if self.go(turn, &together) == 0 {
                return answer.await.map_err(|_| Ended);
            }
        }
    }

    /// Sets a group off, and tells how many are left.
    fn go<F>(&self, turn: OwnedSemaphorePermit, together: &impl Fn(Vec<I>) -> F) -> usize
    where
        F: Future<Output = Vec<O>> + Send + 'static,
    {
        let (items, senders, left): (Vec<I>, Vec<_>, _) = {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            let group = waiting.len().min(self.most);
            let (items, senders) = waiting.drain(..group).unzip();
            (items, senders, waiting.len())
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
}

impl<I, O> fmt::Debug for Combine<I, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Combine").field("most", &self.most).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    use futures::future::join_all;
    use tokio::sync::Notify;

    use super::*;

    #[tokio::test]
    async fn whoever_comes_meanwhile_goes_together_and_each_has_its_own_answer() {
        let combine: Combine<usize, usize> = Combine::new(1, 64);
        let (groups, open) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
        let together = |items: Vec<usize>| {
            let (groups, open) = (groups.clone(), open.clone());
            async move {
                if groups.fetch_add(1, SeqCst) == 0 {
                    open.notified().await;
                }
                items.into_iter().map(|item| item * 10).collect()
            }
        };
        let calls = join_all((0..50).map(|n| combine.call(n, together)));
        let (answers, ()) = tokio::join!(calls, async { open.notify_one() });
        let answers: Vec<_> = answers.into_iter().map(Result::unwrap).collect();
        assert_eq!(answers, (0..50).map(|n| n * 10).collect::<Vec<_>>());
        assert_eq!(groups.load(SeqCst), 2, "the first alone, all others together");
    }

    #[tokio::test]
    async fn no_group_is_larger_than_the_most_and_nobody_is_left() {
        let combine: Combine<usize, usize> = Combine::new(2, 8);
        let together = |items: Vec<usize>| async move {
            assert!(items.len() <= 8);
            tokio::task::yield_now().await;
            items
        };
        let answers = join_all((0..100).map(|n| combine.call(n, together))).await;
        assert!(answers.into_iter().map(Result::unwrap).eq(0..100));
    }

    #[tokio::test]
    async fn who_goes_away_takes_nobody_along() {
        let combine: Combine<usize, usize> = Combine::new(1, 64);
        let open = Arc::new(Notify::new());
        let together = |items: Vec<usize>| {
            let open = open.clone();
            async move {
                open.notified().await;
                open.notify_one();
                items
            }
        };
        let mut gone = Box::pin(combine.call(1, together));
        let mut stays = Box::pin(combine.call(2, together));
        assert!(futures::poll!(&mut gone).is_pending() && futures::poll!(&mut stays).is_pending());
        drop(gone);
        open.notify_one();
        assert_eq!(stays.await.unwrap(), 2);
    }

    #[tokio::test]
    async fn a_group_that_breaks_leaves_its_callers_in_doubt_and_not_the_next_ones() {
        let combine: Combine<bool, ()> = Combine::new(1, 64);
        let together = |items: Vec<bool>| async move {
            assert!(items.iter().all(|well| *well), "breaks on purpose");
            vec![(); items.len()]
        };
        assert!(combine.call(false, together).await.is_err());
        assert!(combine.call(true, together).await.is_ok());
    }
}
