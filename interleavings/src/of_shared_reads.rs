use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::SeqCst},
};

use shuttle::{
    future::{spawn, yield_now},
    rand::{Rng, thread_rng},
};

use super::{check::Check, shared_reads::SharedReads};

pub(super) fn check(check: &Check) {
    check.all("no request gets an older answer than its own read would have", || async {
        let (reads, value, busy) =
            (Arc::new(SharedReads::default()), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let requests = [0; 4].map(|_| {
            let (reads, value, busy) = (reads.clone(), value.clone(), busy.clone());
            spawn(async move {
                let before = value.load(SeqCst);
                let source = value.clone();
                let read = async move {
                    assert_eq!(busy.fetch_add(1, SeqCst), 0, "two reads of one key");
                    let found = source.load(SeqCst);
                    yield_now().await;
                    busy.fetch_sub(1, SeqCst);
                    found
                };
                let found = reads.get("key", read).await;
                assert!(found >= before, "{found} was read before the request, which saw {before}");
            })
        });
        for _ in 0..3 {
            value.fetch_add(1, SeqCst);
            for _ in 0..thread_rng().gen_range(0..3) {
                yield_now().await;
            }
        }
        for request in requests {
            request.await.unwrap();
        }
    });
}
