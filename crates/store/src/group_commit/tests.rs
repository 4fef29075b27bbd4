use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use futures::future::join_all;
use tokio::{sync::Notify, task::yield_now, time::sleep};

use super::*;

impl<I, O, C, F> BatchWriter<I, O> for C
where
    C: Fn(Vec<I>) -> F + Send + Sync + 'static,
    F: Future<Output = Vec<O>> + Send,
{
    fn write(&self, group: Vec<I>) -> impl Future<Output = Vec<O>> + Send {
        self(group)
    }
}

/// Returns ten times its input once `open` is notified, and counts its groups.
#[derive(Clone, Default)]
struct Tens {
    open: Arc<Notify>,
    groups: Arc<AtomicUsize>,
}

impl BatchWriter<usize, usize> for Tens {
    async fn write(&self, group: Vec<usize>) -> Vec<usize> {
        self.groups.fetch_add(1, SeqCst);
        self.open.notified().await;
        self.open.notify_one();
        group.into_iter().map(|item| item * 10).collect()
    }
}

impl Tens {
    async fn begun(&self) {
        while self.groups.load(SeqCst) == 0 {
            yield_now().await;
        }
    }
}

#[tokio::test]
async fn calls_during_a_group_share_the_next_one_and_each_gets_its_own_answer() {
    let (group, tens) = (GroupCommit::new(1, 64), Tens::default());
    let mut first = Box::pin(group.call(0, None, || tens.clone()));
    assert!(futures::poll!(&mut first).is_pending());
    tens.begun().await;
    let others = join_all((1..50).map(|n| group.call(n, None, || tens.clone())));
    let (first, others, ()) = tokio::join!(first, others, async { tens.open.notify_one() });
    assert_eq!(first.unwrap(), 0);
    let others: Vec<_> = others.into_iter().map(Result::unwrap).collect();
    assert_eq!(others, (1..50).map(|n| n * 10).collect::<Vec<_>>());
    assert_eq!(tens.groups.load(SeqCst), 2, "the first alone, all others together");
}

#[tokio::test]
async fn no_group_exceeds_its_maximum_and_every_call_is_answered() {
    let group: GroupCommit<usize, usize> = GroupCommit::new(2, 8);
    let together = |items: Vec<usize>| async move {
        assert!(items.len() <= 8);
        yield_now().await;
        items
    };
    let answers = join_all((0..100).map(|n| group.call(n, None, || together))).await;
    assert!(answers.into_iter().map(Result::unwrap).eq(0..100));
}

#[tokio::test]
async fn a_dropped_caller_cancels_no_other_call() {
    let (group, tens) = (GroupCommit::new(1, 64), Tens::default());
    let mut gone = Box::pin(group.call(1, None, || tens.clone()));
    assert!(futures::poll!(&mut gone).is_pending());
    tens.begun().await;
    let mut stays = Box::pin(group.call(2, None, || tens.clone()));
    assert!(futures::poll!(&mut stays).is_pending());
    drop(gone);
    tens.open.notify_one();
    assert_eq!(stays.await.unwrap(), 20);
    assert_eq!(tens.groups.load(SeqCst), 2, "the call of the dropped caller was carried out");
}

#[tokio::test(start_paused = true)]
async fn a_call_times_out_in_the_queue_but_not_once_it_is_started() {
    let group: GroupCommit<usize, usize> = GroupCommit::new(1, 1);
    let slow = |items: Vec<usize>| async move {
        sleep(Duration::from_secs(3)).await;
        items
    };
    let patience = Some(Duration::from_secs(1));
    let (first, second) = tokio::join!(group.call(1, patience, || slow), group.call(2, patience, || slow));
    assert_eq!(first.unwrap(), 1);
    assert!(matches!(second, Err(Unanswered::Late)), "{second:?}");
    assert_eq!(group.call(3, patience, || slow).await.unwrap(), 3);
}

#[tokio::test]
async fn a_group_that_panics_leaves_only_its_own_callers_in_doubt() {
    let group: GroupCommit<bool, ()> = GroupCommit::new(1, 64);
    let together = |items: Vec<bool>| async move {
        assert!(items.iter().all(|well| *well), "fails on purpose");
        vec![(); items.len()]
    };
    assert!(group.call(false, None, || together).await.is_err());
    assert!(group.call(true, None, || together).await.is_ok());
}
