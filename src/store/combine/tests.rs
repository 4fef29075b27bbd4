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
    let calls = join_all((0..50).map(|n| combine.call(n, None, together)));
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
    let answers = join_all((0..100).map(|n| combine.call(n, None, together))).await;
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
    let mut gone = Box::pin(combine.call(1, None, together));
    let mut stays = Box::pin(combine.call(2, None, together));
    assert!(futures::poll!(&mut gone).is_pending() && futures::poll!(&mut stays).is_pending());
    drop(gone);
    open.notify_one();
    assert_eq!(stays.await.unwrap(), 2);
}

#[tokio::test(start_paused = true)]
async fn who_waits_too_long_for_others_goes_and_who_is_under_way_stays() {
    let combine: Combine<usize, usize> = Combine::new(1, 1);
    let slow = |items: Vec<usize>| async move {
        sleep(Duration::from_secs(3)).await;
        items
    };
    let patience = Some(Duration::from_secs(1));
    let (first, second) = tokio::join!(combine.call(1, patience, slow), combine.call(2, patience, slow));
    assert_eq!(first.unwrap(), 1);
    assert!(matches!(second, Err(Unanswered::Late)), "{second:?}");
    assert_eq!(combine.call(3, patience, slow).await.unwrap(), 3);
}

#[tokio::test]
async fn a_group_that_breaks_leaves_its_callers_in_doubt_and_not_the_next_ones() {
    let combine: Combine<bool, ()> = Combine::new(1, 64);
    let together = |items: Vec<bool>| async move {
        assert!(items.iter().all(|well| *well), "breaks on purpose");
        vec![(); items.len()]
    };
    assert!(combine.call(false, None, together).await.is_err());
    assert!(combine.call(true, None, together).await.is_ok());
}
