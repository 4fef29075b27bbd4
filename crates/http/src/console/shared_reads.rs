//! Reads that many requests need at the same time, made once.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
};

use futures::{
    FutureExt,
    future::{BoxFuture, Shared, WeakShared},
};

/// Reads by what they read. A read serves all requests that came before it began: each of them gets what a read of its own could have
/// found, and nothing older. Of one key, one read is under way at a time, so that the requests that come meanwhile share the next one.
pub(super) struct SharedReads<Key, Found> {
    /// The newest read of each key.
    newest: Mutex<HashMap<Key, Newest<Found>>>,
}

struct Newest<Found> {
    read: WeakShared<BoxFuture<'static, Found>>,
    has_begun: Arc<AtomicBool>,
    /// Held by the read that is under way.
    turn: Arc<tokio::sync::Mutex<()>>,
}

impl<Key, Found> Default for SharedReads<Key, Found> {
    fn default() -> Self {
        Self { newest: Mutex::default() }
    }
}

impl<Key: Eq + Hash, Found: Clone + Send + Sync + 'static> SharedReads<Key, Found> {
    /// Returns what is found by a read that begins after this call. `read` is run if none of this key waits to begin.
    pub(super) async fn get(&self, key: Key, read: impl Future<Output = Found> + Send + 'static) -> Found {
        self.join(key, read).await
    }

    fn join(&self, key: Key, read: impl Future<Output = Found> + Send + 'static) -> Shared<BoxFuture<'static, Found>> {
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        let last = newest.get(&key).and_then(|last| Some((last.read.upgrade()?, last)));
        if let Some((waiting, last)) = &last
            && !last.has_begun.load(SeqCst)
        {
            return waiting.clone();
        }
        let turn = last.map(|(_, last)| last.turn.clone()).unwrap_or_default();
        let has_begun = Arc::new(AtomicBool::new(false));
        let (ours, begun) = (turn.clone(), has_begun.clone());
        let read = async move {
            let _turn = ours.lock().await;
            begun.store(true, SeqCst);
            read.await
        };
        let read = read.boxed().shared();
        // Those without a request that waits for them.
        newest.retain(|_, other| other.read.upgrade().is_some());
        if let Some(weak) = read.downgrade() {
            newest.insert(key, Newest { read: weak, has_begun, turn });
        }
        read
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use futures::future::join_all;
    use tokio::sync::{Semaphore, oneshot};

    use super::*;

    /// What is read: the number of the read. Each takes a permit.
    #[derive(Default)]
    struct Source {
        begun: AtomicUsize,
        permits: Option<Semaphore>,
    }

    impl Source {
        fn gated() -> Arc<Self> {
            Arc::new(Self { permits: Some(Semaphore::new(0)), ..Self::default() })
        }

        fn read(self: &Arc<Self>) -> impl Future<Output = usize> + Send + 'static {
            let source = self.clone();
            async move {
                let number = source.begun.fetch_add(1, SeqCst) + 1;
                if let Some(permits) = &source.permits {
                    permits.acquire().await.unwrap().forget();
                }
                number
            }
        }

        fn permit(&self) {
            self.permits.as_ref().unwrap().add_permits(1);
        }
    }

    #[tokio::test]
    async fn requests_of_the_same_time_share_a_read_that_begins_after_all_of_them() {
        let (reads, source) = (SharedReads::default(), Source::gated());
        let mut first = reads.join("a", source.read());
        assert!(futures::poll!(&mut first).is_pending());
        assert_eq!(source.begun.load(SeqCst), 1);
        // The first has begun, so it may have missed what these come for.
        let mut later: Vec<_> = (0..5).map(|_| reads.join("a", source.read())).collect();
        for one in &mut later {
            assert!(futures::poll!(one).is_pending());
        }
        assert_eq!(source.begun.load(SeqCst), 1, "one at a time");
        source.permit();
        assert_eq!(first.await, 1);
        source.permit();
        assert_eq!(join_all(later).await, [2; 5]);
        source.permit();
        assert_eq!(reads.get("a", source.read()).await, 3, "nothing is kept");
        assert_eq!(reads.newest.lock().unwrap().len(), 1);
    }

    #[tokio::test]
    async fn other_keys_have_other_reads() {
        let (reads, source) = (SharedReads::default(), Source::gated());
        let mut one = reads.join("a", source.read());
        let mut other = reads.join("b", source.read());
        assert!(futures::poll!(&mut one).is_pending() && futures::poll!(&mut other).is_pending());
        assert_eq!(source.begun.load(SeqCst), 2);
        source.permit();
        source.permit();
        assert_eq!((one.await, other.await), (1, 2));
    }

    #[tokio::test]
    async fn a_read_goes_on_without_the_request_that_began_it() {
        let (reads, source) = (SharedReads::default(), Source::gated());
        let mut first = reads.join("a", source.read());
        let second = reads.join("a", source.read());
        assert!(futures::poll!(&mut first).is_pending());
        drop(first);
        source.permit();
        assert_eq!(second.await, 1);
        // Without any, it is dropped, and holds up no other.
        let mut left = reads.join("a", source.read());
        assert!(futures::poll!(&mut left).is_pending());
        let next = reads.join("a", source.read());
        drop(left);
        source.permit();
        assert_eq!(next.await, 3);
    }

    #[tokio::test]
    async fn a_read_that_panics_is_that_of_its_requests_only() {
        let reads = Arc::new(SharedReads::<_, usize>::default());
        let (begin, begun) = oneshot::channel::<()>();
        let broken = reads.join("a", async { begun.await.map(|()| panic!("broken")).unwrap_or(0) });
        let broken = tokio::spawn(broken);
        tokio::task::yield_now().await;
        let next = tokio::spawn(reads.join("a", async { 7 }));
        begin.send(()).unwrap();
        assert!(broken.await.unwrap_err().is_panic());
        assert_eq!(next.await.unwrap(), 7);
    }
}
