//! Places for what is done at once, of which one namespace never has all.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Half as many places again as one namespace may have.
#[derive(Debug)]
pub(super) struct Shares {
    of_one: usize,
    all: Arc<Semaphore>,
    /// Those that are in use.
    namespaces: Mutex<HashMap<String, Arc<Semaphore>>>,
}

/// A place, until it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    _all: OwnedSemaphorePermit,
    _own: OwnedSemaphorePermit,
}

impl Shares {
    /// One namespace may have `of_one` places.
    pub(super) fn new(of_one: usize) -> Self {
        Self { of_one, all: Arc::new(Semaphore::new(of_one + of_one.div_ceil(2))), namespaces: Mutex::default() }
    }

    /// Waits for a place. `None` if there are none any more, because this process ends.
    pub(super) async fn acquire(&self, namespace: &str) -> Option<Place> {
        let own = self.own(namespace).acquire_owned().await.ok()?;
        let all = self.all.clone().acquire_owned().await.ok()?;
        Some(Place { _all: all, _own: own })
    }

    /// A place, if one is free.
    pub(super) fn try_acquire(&self, namespace: &str) -> Option<Place> {
        let own = self.own(namespace).try_acquire_owned().ok()?;
        let all = self.all.clone().try_acquire_owned().ok()?;
        Some(Place { _all: all, _own: own })
    }

    fn own(&self, namespace: &str) -> Arc<Semaphore> {
        let mut namespaces = self.namespaces.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = namespaces.get(namespace) {
            return own.clone();
        }
        // A place that is in use, or waited for, holds its semaphore.
        namespaces.retain(|_, own| Arc::strong_count(own) > 1);
        let own = Arc::new(Semaphore::new(self.of_one));
        namespaces.insert(namespace.to_owned(), own.clone());
        own
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn one_namespace_never_has_all_places() {
        let shares = Shares::new(2);
        let mut a: Vec<_> = (0..2).map(|_| shares.try_acquire("a").unwrap()).collect();
        assert!(shares.try_acquire("a").is_none());
        assert!(shares.acquire("a").now_or_never().is_none());
        let b = shares.acquire("b").now_or_never().flatten().unwrap();
        assert!(shares.try_acquire("b").is_none(), "that was the last one");
        drop(b);
        assert!(shares.try_acquire("b").is_some());
        a.pop();
        assert!(shares.try_acquire("a").is_some());
        assert_eq!(shares.namespaces.lock().unwrap().len(), 2);
        drop(a);
        assert!(shares.try_acquire("c").is_some());
        assert_eq!(shares.namespaces.lock().unwrap().len(), 1, "those without places are forgotten");
    }
}
