use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::SeqCst},
};

use futures::FutureExt;
use shuttle::{
    future::{spawn, yield_now},
    rand::{Rng, thread_rng},
};

use super::{
    check::Check,
    shares::{Place, Shares},
};

/// Polls the request for a place a few times at most. `None`: it is given up.
async fn impatient(shares: &Shares, tenant: &str, member: &str) -> Option<Place> {
    let mut request = Box::pin(shares.acquire(tenant, member));
    for _ in 0..thread_rng().gen_range(0..3) {
        if let Some(place) = (&mut request).now_or_never() {
            return Some(place);
        }
        yield_now().await;
    }
    None
}

pub(super) fn check(check: &Check) {
    check.all("no place is lost or given twice", || async {
        let shares = Shares::new(1);
        let busy = Arc::new(AtomicUsize::new(0));
        let callers =
            [("red", "a", true), ("red", "a", false), ("red", "b", true), ("blue", "c", true), ("blue", "c", false)];
        let callers = callers.map(|(tenant, member, waits)| {
            let (shares, busy) = (shares.clone(), busy.clone());
            spawn(async move {
                let place = match waits {
                    true => Some(shares.acquire(tenant, member).await),
                    false => impatient(&shares, tenant, member).await,
                };
                if place.is_some() {
                    assert!(busy.fetch_add(1, SeqCst) < 2, "more than there are");
                    yield_now().await;
                    busy.fetch_sub(1, SeqCst);
                }
            })
        });
        // A caller that waits for ever is a deadlock, which shuttle reports.
        for caller in callers {
            caller.await.unwrap();
        }
        assert_eq!(shares.held(), 0, "a place is lost");
        // All places can be had again.
        assert!(shares.try_acquire("red", "a").is_some());
    });
}
