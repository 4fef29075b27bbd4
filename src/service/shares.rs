//! Concurrency limits that no namespace can use up alone.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A semaphore with 1.5 times as many permits as one namespace may hold.
#[derive(Debug)]
pub(super) struct Shares {
    of_one: usize,
    all: Arc<Semaphore>,
    /// Semaphores of the namespaces that hold permits.
    namespaces: Mutex<HashMap<String, Arc<Semaphore>>>,
}

/// A permit that is returned on drop.
#[derive(Debug)]
pub(super) struct Place {
    _all: OwnedSemaphorePermit,
    _own: OwnedSemaphorePermit,
}

impl Shares {
    /// Creates a limit of `of_one` permits for one namespace.
    pub(super) fn new(of_one: usize) -> Self {
        Self { of_one, all: Arc::new(Semaphore::new(of_one + of_one.div_ceil(2))), namespaces: Mutex::default() }
    }

    /// Waits for a permit. Returns `None` if the semaphores are closed because this process ends.
    pub(super) async fn acquire(&self, namespace: &str) -> Option<Place> {
        let own = self.own(namespace).acquire_owned().await.ok()?;
        let all = self.all.clone().acquire_owned().await.ok()?;
        Some(Place { _all: all, _own: own })
    }

    /// Returns a permit, if one is free.
    pub(super) fn try_acquire(&self, namespace: &str) -> Option<Place> {
        let own = self.own(namespace).try_acquire_owned().ok()?;
        let all = self.all.clone().try_acquire_owned().ok()?;
        Some(Place { _all: all, _own: own })
    }

    /// Returns how many permits are held.
    pub(super) fn held(&self) -> usize {
        let most = self.of_one + self.of_one.div_ceil(2);
        most.saturating_sub(self.all.available_permits())
    }

    fn own(&self, namespace: &str) -> Arc<Semaphore> {
        let mut namespaces = self.namespaces.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = namespaces.get(namespace) {
            return own.clone();
        }
        // A permit that is held, or waited for, holds a reference to its semaphore.
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
    async fn one_namespace_never_holds_all_permits() {
        let shares = Shares::new(2);
        let mut a: Vec<_> = (0..2).map(|_| shares.try_acquire("a").unwrap()).collect();
        assert!(shares.try_acquire("a").is_none());
        assert!(shares.acquire("a").now_or_never().is_none());
        let b = shares.acquire("b").now_or_never().flatten().unwrap();
        assert!(shares.try_acquire("b").is_none(), "b holds the last permit");
        drop(b);
        assert!(shares.try_acquire("b").is_some());
        a.pop();
        assert!(shares.try_acquire("a").is_some());
        assert_eq!(shares.namespaces.lock().unwrap().len(), 2);
        drop(a);
        assert!(shares.try_acquire("c").is_some());
        assert_eq!(shares.namespaces.lock().unwrap().len(), 1, "namespaces without permits are removed");
    }
}
