//! Remembers for a short time what a credential stands for, so that not each request asks the database or the API server.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use chrono::Utc;
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

use sparkgate_access::Principal;

/// The most credentials that are remembered.
pub(super) const CAPACITY: usize = 10_000;

/// Principals by the digest of their credential.
#[derive(Debug, Default)]
pub(super) struct Cache(Mutex<HashMap<Digest, Known>>);

/// The key of a credential (SHA-256). The credential itself isn't kept.
pub(super) type Digest = [u8; 32];

/// When a credential was checked, and whose it is.
type Known = (Instant, Arc<Principal>);

pub(super) fn digest(credential: &str) -> Digest {
    Sha256::digest(credential).into()
}

impl Cache {
    /// Returns the principal of a credential that was checked at most `age` ago, and hasn't expired.
    pub(super) fn get(&self, credential: &Digest, age: Duration) -> Option<Arc<Principal>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, principal) = known.get(credential).filter(|(at, _)| at.elapsed() <= age)?;
        // Whatever else is away: a credential never counts beyond its end.
        (!principal.is_expired(Utc::now())).then(|| principal.clone())
    }

    /// Remembers a principal. A full cache forgets what is older than `keep`.
    pub(super) fn put(&self, credential: Digest, principal: Arc<Principal>, keep: Duration) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= CAPACITY {
            known.retain(|_, (at, _)| at.elapsed() <= keep);
        }
        if known.len() < CAPACITY {
            known.insert(credential, (Instant::now(), principal));
        }
    }

    pub(super) fn forget(&self, credential: &Digest) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(credential);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_principal_is_remembered_for_a_while() {
        let cache = Cache::default();
        let (key, age) = (digest("token"), Duration::from_secs(5));
        cache.put(key, Arc::new(Principal::anonymous()), age);
        tokio::time::advance(age).await;
        assert!(cache.get(&key, age).is_some() && cache.get(&digest("other"), age).is_none());
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(cache.get(&key, age).is_none());
        assert!(cache.get(&key, 2 * age).is_some(), "a caller may accept an older one");
        cache.forget(&key);
        assert!(cache.get(&key, 2 * age).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_principal_is_not_remembered_beyond_its_end() {
        let (cache, age) = (Cache::default(), Duration::from_secs(5));
        let until = |end| Arc::new(Principal::anonymous().with_expiry(Some(end)));
        cache.put(digest("past"), until(Utc::now()), age);
        cache.put(digest("future"), until(Utc::now() + age), age);
        assert!(cache.get(&digest("past"), age).is_none() && cache.get(&digest("future"), age).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_full_cache_makes_room_by_what_is_old() {
        let cache = Cache::default();
        let age = Duration::from_secs(5);
        let principal = Arc::new(Principal::anonymous());
        for number in 0..CAPACITY + 10 {
            cache.put(digest(&number.to_string()), principal.clone(), age);
        }
        assert!(cache.get(&digest(&(CAPACITY + 9).to_string()), age).is_none());
        tokio::time::advance(2 * age).await;
        cache.put(digest("new"), principal, age);
        assert!(cache.get(&digest("new"), age).is_some());
        assert_eq!(cache.0.lock().unwrap().len(), 1);
    }
}
