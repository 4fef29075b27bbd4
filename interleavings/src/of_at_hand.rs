use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
};
use std::time::Duration;

use shuttle::{
    future::{spawn, yield_now},
    rand::{Rng, thread_rng},
};

use super::{
    at_hand::{AtHand, Held},
    check::Check,
};

const MOST: usize = 2;

/// One of those that are open.
struct Connection {
    open: Arc<AtomicUsize>,
    in_use: AtomicBool,
}

impl Connection {
    fn open(open: &Arc<AtomicUsize>) -> Self {
        assert!(open.fetch_add(1, SeqCst) < MOST, "more connections than turns");
        Self { open: open.clone(), in_use: AtomicBool::new(false) }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.open.fetch_sub(1, SeqCst);
    }
}

async fn play(closes: bool) {
    let (open, at_hand) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtHand::new(MOST, Duration::MAX)));
    let callers = [true, true, false, true].map(|completes| {
        let (open, at_hand) = (open.clone(), at_hand.clone());
        spawn(async move {
            let Ok(turn) = at_hand.turn().await else { return };
            let mut held = turn.last().unwrap_or_else(|| Held::new(Connection::open(&open)));
            assert!(!held.get_mut().in_use.swap(true, SeqCst), "two callers have one connection");
            yield_now().await;
            held.get_mut().in_use.store(false, SeqCst);
            match completes {
                true => turn.leave(held),
                // As when a statement is dropped: its connection isn't used again.
                false => drop((held, turn)),
            }
        })
    });
    if closes {
        for _ in 0..thread_rng().gen_range(0..20) {
            yield_now().await;
        }
        at_hand.close();
    }
    for caller in callers {
        caller.await.unwrap();
    }
    assert_eq!(at_hand.busy(), 0);
    if closes {
        assert_eq!(open.load(SeqCst), 0, "a connection is kept after the end");
    }
}

pub(super) fn check(check: &Check) {
    check.all("a connection has one caller", || play(false));
    check.all("nothing is kept after the end", || play(true));
}
