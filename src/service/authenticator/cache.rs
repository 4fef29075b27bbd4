//! Remembers for a short time what a credential stands for, so that not each request asks the database or the API server.

use std::{
    collections::HashMap,
    error::Error,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

use super::Unauthenticated;
use crate::{access::Principal, service::error::error_chain};

/// The most credentials that are remembered.
const CAPACITY: usize = 10_000;

/// How long a check counts while it can't be made again.
const STALE: Duration = Duration::from_secs(300);

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
    /// Returns the principal of a credential: that of a check at most `fresh` ago, else what `check` returns. While it can't be
    /// checked because of an error, a check of the last minutes counts; without one, the caller learns that `what` is away.
    pub(super) async fn principal<E: Error>(
        &self,
        credential: &str,
        fresh: Duration,
        what: &'static str,
        check: impl Future<Output = Result<Result<Principal, Unauthenticated>, E>>,
    ) -> Result<Arc<Principal>, Unauthenticated> {
        let key = digest(credential);
        if let Some(known) = self.get(&key, fresh) {
            return Ok(known);
        }
        match check.await {
            Ok(Ok(principal)) => {
                let principal = Arc::new(principal);
                self.put(key, principal.clone(), STALE);
                Ok(principal)
            }
            Ok(Err(why)) => {
                self.forget(&key);
                Err(why)
            }
            Err(error) => self.get(&key, STALE).ok_or_else(|| {
                tracing::warn!("a caller's credentials can't be checked: {}", error_chain(&error));
                Unauthenticated::Unavailable(format!("{what} is not available"))
            }),
        }
    }

    /// Returns the principal of a credential that was checked at most `age` ago.
    pub(super) fn get(&self, credential: &Digest, age: Duration) -> Option<Arc<Principal>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(credential).filter(|(at, _)| at.elapsed() <= age).map(|(_, principal)| principal.clone())
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

    fn forget(&self, credential: &Digest) {
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
