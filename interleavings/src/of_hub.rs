use std::{
    ops::RangeInclusive,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
};

use shuttle::{
    future::{spawn, yield_now},
    rand::{Rng, thread_rng},
};
use sparkgate_store::{Event, LostNumbers};

use super::{
    check::Check,
    hub::{Hub, Lost},
    ring::Next,
};

fn publish(hub: &Hub, numbers: RangeInclusive<i64>) {
    publish_of(hub, 0, numbers);
}

fn publish_of(hub: &Hub, history: u8, numbers: RangeInclusive<i64>) {
    let last = *numbers.end();
    hub.push_page(numbers.map(|number| Event { sequence: Some(number), history }).collect(), Some(last));
}

/// Follows the hub as a subscription does, until the number `last`. Returns the numbers that it got, and whether it was interrupted.
async fn follow(hub: Arc<Hub>, last: i64) -> (Vec<i64>, bool) {
    let (got, interrupted) = follow_histories(hub, last).await;
    (got.into_iter().map(|(number, _)| number).collect(), interrupted)
}

/// Does the same. Each number has its history.
async fn follow_histories(hub: Arc<Hub>, last: i64) -> (Vec<(i64, u8)>, bool) {
    let mut newest = hub.follow();
    let history = newest.borrow().history;
    let (mut cursor, mut got) = (newest.borrow().sequence, Vec::new());
    while cursor < last {
        match hub.look(&mut cursor, history, 2) {
            Err(Lost) => return (got, true),
            Ok(Next::Here(events)) => {
                got.extend(events.iter().map(|event| (event.sequence, event.event.history)));
                cursor = got.last().map_or(cursor, |(number, _)| *number);
            }
            // The database has them.
            Ok(Next::Older(end)) => {
                got.extend((cursor + 1..=end).map(|number| (number, 1)));
                cursor = end;
            }
            Ok(Next::Nothing) => {
                let more = newest.wait_for(|newest| newest.sequence > cursor || newest.history != history);
                assert!(more.await.is_ok());
            }
        }
    }
    (got, false)
}

pub(super) fn check(check: &Check) {
    check.all("each reader gets each event once and in order", || async {
        let hub = Arc::new(Hub::default());
        publish(&hub, 1..=1);
        let readers = [0; 2].map(|_| spawn(follow(hub.clone(), 5)));
        for page in [2..=3, 4..=4, 5..=5] {
            publish(&hub, page);
        }
        for reader in readers {
            let (got, interrupted) = reader.await.unwrap();
            let first = got.first().copied().unwrap_or(6);
            assert!(!interrupted && got == (first..=5).collect::<Vec<_>>(), "{got:?}");
        }
    });
    // Numbers above 3 were given in a history that is lost: up to 5 by the hub, and it continues with 8.
    check.all("a reader of lost numbers is interrupted and no other", || async {
        let hub = Arc::new(Hub::default());
        publish(&hub, 1..=3);
        let lost = LostNumbers { after: 3, until: 7 };
        let readers = [0; 2].map(|_| spawn(follow(hub.clone(), 8)));
        let read_some = thread_rng().r#gen::<bool>();
        if read_some {
            publish(&hub, 4..=5);
            yield_now().await;
        }
        hub.lose(lost);
        publish(&hub, 8..=8);
        for reader in readers {
            let (got, interrupted) = reader.await.unwrap();
            let of_lost = got.iter().any(|number| lost.contain(*number));
            assert!(got.is_sorted_by(|one, next| one < next), "{got:?}");
            assert!(interrupted || !of_lost, "{got:?}: numbers that were lost, and then others");
            if !read_some {
                assert!(!interrupted && got.last().is_none_or(|last| *last == 8), "{got:?}");
            }
        }
    });
    check.all("after an older backup no reader gets changes of both histories", || async {
        let hub = Arc::new(Hub::default());
        publish(&hub, 1..=3);
        let reader = spawn(follow_histories(hub.clone(), 9));
        yield_now().await;
        publish(&hub, 4..=4);
        hub.went_back(2);
        publish_of(&hub, 1, 3..=9);
        let (got, _) = reader.await.unwrap();
        assert!(got.is_sorted_by(|one, next| one.0 + 1 == next.0 && one.1 == next.1), "{got:?}");
    });
    check.all("no more subscribers than permitted", || async {
        let hub = Arc::new(Hub::default());
        let inside = Arc::new(AtomicUsize::new(0));
        let entered = [0; 4].map(|_| {
            let (hub, inside) = (hub.clone(), inside.clone());
            spawn(async move {
                let place = hub.enter(2);
                if place.is_some() {
                    assert!(inside.fetch_add(1, SeqCst) < 2, "more than permitted");
                    yield_now().await;
                    inside.fetch_sub(1, SeqCst);
                }
                place.is_some()
            })
        });
        let mut some = false;
        for one in entered {
            some |= one.await.unwrap();
        }
        assert!(some, "all were refused");
        assert_eq!(hub.subscribers(), 0);
    });
}
