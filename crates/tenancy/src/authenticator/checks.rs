//! Checks of credentials that cost a call of the database or of the API server: refuses before it spends. A credential that was
//! refused a moment ago isn't checked again, one credential is checked once at a time, few are checked at once, and none of an
//! address that had too many failed logins.
//!
//! Credentials that were accepted during the last hour are exempt, so that callers behind the address of an attacker go on.

use std::{
    collections::HashMap,
    error::Error,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{OwnedMutexGuard, Semaphore, SemaphorePermit},
    time::{Instant, timeout},
};

use super::{
    Unauthenticated,
    cache::{CAPACITY, Cache, Digest, digest},
};
use crate::tenancy::Tenancy;
use sparkgate_access::Principal;
use sparkgate_common::error::error_chain;

/// How long a check counts while it can't be made again.
const STALE: Duration = Duration::from_secs(300);
/// How long a credential is exempt after it was accepted.
const REMEMBERED: Duration = Duration::from_secs(3600);
/// How long a credential isn't checked again after it was refused.
const REFUSED: Duration = Duration::from_secs(10);
/// How many credentials are checked at once: those that were accepted before, and others.
const KNOWN_AT_ONCE: usize = 32;
const OTHERS_AT_ONCE: usize = 8;
/// How long a request waits for its check.
const PATIENCE: Duration = Duration::from_secs(5);

/// The address of a request, and what is counted for it.
#[derive(Clone, Copy)]
pub(super) struct Gate<'a>(Option<(&'a Tenancy, IpAddr)>);

impl<'a> Gate<'a> {
    pub(super) fn new(tenancy: &'a Tenancy, address: Option<IpAddr>) -> Self {
        Self(address.map(|address| (tenancy, address)))
    }

    /// Returns the gate of a credential that the gateway itself checks again.
    pub(super) fn open() -> Self {
        Self(None)
    }

    fn check(self) -> Result<(), Unauthenticated> {
        match self.0 {
            Some((tenancy, address)) => tenancy.check_logins(address).map_err(Unauthenticated::Limited),
            None => Ok(()),
        }
    }
}

/// The checks of one kind of credentials.
pub(super) struct Checks {
    known: Cache,
    refused: Mutex<HashMap<Digest, (Instant, Unauthenticated)>>,
    /// The credentials that are being checked.
    turns: Mutex<HashMap<Digest, Arc<tokio::sync::Mutex<()>>>>,
    places_of_known: Semaphore,
    places: Semaphore,
}

impl Default for Checks {
    fn default() -> Self {
        Self {
            known: Cache::default(),
            refused: Mutex::default(),
            turns: Mutex::default(),
            places_of_known: Semaphore::new(KNOWN_AT_ONCE),
            places: Semaphore::new(OTHERS_AT_ONCE),
        }
    }
}

impl Checks {
    /// Returns the principal of a credential: that of a check at most `fresh` ago, else what `check` returns. While it can't be
    /// checked because of an error, a check of the last minutes counts; without one, the caller learns that `what` is away.
    pub(super) async fn principal<E: Error>(
        &self,
        credential: &str,
        gate: Gate<'_>,
        fresh: Duration,
        what: &'static str,
        check: impl Future<Output = Result<Result<Principal, Unauthenticated>, E>>,
    ) -> Result<Arc<Principal>, Unauthenticated> {
        let key = digest(credential);
        if let Some(known) = self.known.get(&key, fresh) {
            return Ok(known);
        }
        let _turn = self.begin(key, gate).await?;
        // Another request has checked it meanwhile.
        if let Some(known) = self.known.get(&key, fresh) {
            return Ok(known);
        }
        match check.await {
            Ok(Ok(principal)) => {
                let principal = Arc::new(principal);
                self.accept(key, principal.clone());
                Ok(principal)
            }
            Ok(Err(why)) => {
                self.known.forget(&key);
                self.refuse(key, why.clone());
                Err(why)
            }
            Err(error) => self.known.get(&key, STALE).ok_or_else(|| {
                tracing::warn!("a caller's credentials can't be checked: {}", error_chain(&error));
                Unauthenticated::Unavailable(format!("{what} is not available"))
            }),
        }
    }

    /// Returns whether a credential was accepted during the last hour.
    pub(super) fn is_known(&self, credential: &Digest) -> bool {
        self.known.get(credential, REMEMBERED).is_some()
    }

    /// Waits until a credential may be checked, and holds its turn and its place until the check has ended.
    pub(super) async fn begin(&self, key: Digest, gate: Gate<'_>) -> Result<Turn<'_>, Unauthenticated> {
        self.not_refused(&key)?;
        let is_known = self.is_known(&key);
        if !is_known {
            gate.check()?;
        }
        let mut turn = Turn::new(self, key);
        let wait = async {
            turn.wait().await;
            let places = if is_known { &self.places_of_known } else { &self.places };
            turn.place = places.acquire().await.ok();
        };
        if timeout(PATIENCE, wait).await.is_err() {
            return Err(Unauthenticated::Unavailable("too many credentials are being checked: try again".to_owned()));
        }
        // What happened while this one waited.
        self.not_refused(&key)?;
        if !is_known {
            gate.check()?;
        }
        Ok(turn)
    }

    /// Returns why a credential was refused a moment ago, as an error.
    pub(super) fn not_refused(&self, credential: &Digest) -> Result<(), Unauthenticated> {
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        match refused.get(credential).filter(|(at, _)| at.elapsed() < REFUSED) {
            Some((_, why)) => Err(why.clone()),
            None => Ok(()),
        }
    }

    /// Remembers whose an accepted credential is.
    pub(super) fn accept(&self, credential: Digest, principal: Arc<Principal>) {
        self.known.put(credential, principal, REMEMBERED);
    }

    /// Remembers why a credential was refused.
    pub(super) fn refuse(&self, credential: Digest, why: Unauthenticated) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if refused.len() >= CAPACITY {
            refused.retain(|_, (at, _)| at.elapsed() < REFUSED);
        }
        if refused.len() < CAPACITY {
            refused.insert(credential, (Instant::now(), why));
        }
    }
}

/// The turn of one request to check a credential.
pub(super) struct Turn<'a> {
    checks: &'a Checks,
    key: Digest,
    lock: Option<Arc<tokio::sync::Mutex<()>>>,
    held: Option<OwnedMutexGuard<()>>,
    place: Option<SemaphorePermit<'a>>,
}

impl<'a> Turn<'a> {
    fn new(checks: &'a Checks, key: Digest) -> Self {
        let mut turns = checks.turns.lock().unwrap_or_else(PoisonError::into_inner);
        let lock = turns.entry(key).or_default().clone();
        Self { checks, key, lock: Some(lock), held: None, place: None }
    }

    async fn wait(&mut self) {
        if let Some(lock) = &self.lock {
            self.held = Some(lock.clone().lock_owned().await);
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut turns = self.checks.turns.lock().unwrap_or_else(PoisonError::into_inner);
        (self.held, self.lock) = (None, None);
        if turns.get(&self.key).is_some_and(|lock| Arc::strong_count(lock) == 1) {
            turns.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        sync::atomic::{AtomicUsize, Ordering::SeqCst},
    };

    use futures::future::join_all;
    use tokio::time::{advance, sleep};

    use super::*;

    const FRESH: Duration = Duration::from_secs(5);

    /// Checks that count how many there are, and how many at once.
    #[derive(Default)]
    struct Counted {
        checks: Checks,
        made: AtomicUsize,
        now: AtomicUsize,
        most: AtomicUsize,
    }

    impl Counted {
        async fn check(&self, credential: &str) -> Result<Arc<Principal>, Unauthenticated> {
            let check = async {
                self.made.fetch_add(1, SeqCst);
                self.most.fetch_max(self.now.fetch_add(1, SeqCst) + 1, SeqCst);
                sleep(Duration::from_millis(10)).await;
                self.now.fetch_sub(1, SeqCst);
                let is_good = credential.starts_with("good");
                let wrong = || Unauthenticated::Invalid("wrong".to_owned());
                Ok::<_, Infallible>(is_good.then(Principal::anonymous).ok_or_else(wrong))
            };
            self.checks.principal(credential, Gate(None), FRESH, "it", check).await
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_credential_is_checked_once_at_a_time_and_not_again_after_it_was_refused() {
        let counted = Counted::default();
        for credential in ["good", "bad"] {
            let answers = join_all((0..100).map(|_| counted.check(credential))).await;
            assert!(answers.iter().all(|answer| answer.is_ok() == (credential == "good")));
        }
        assert_eq!(counted.made.load(SeqCst), 2);
        advance(REFUSED).await;
        assert!(counted.check("bad").await.is_err() && counted.check("good").await.is_ok());
        assert_eq!(counted.made.load(SeqCst), 4);
        assert!(counted.checks.turns.lock().unwrap().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn few_credentials_are_checked_at_once_and_known_ones_have_places_of_their_own() {
        let counted = Counted::default();
        assert!(counted.check("good").await.is_ok());
        advance(FRESH * 2).await;
        let names: Vec<_> = (0..1000).map(|number| format!("bad {number}")).collect();
        let bad = join_all(names.iter().map(|name| counted.check(name)));
        let good = async {
            let began = Instant::now();
            assert!(counted.check("good").await.is_ok());
            began.elapsed()
        };
        let (_, waited) = tokio::join!(bad, good);
        assert!(waited <= Duration::from_millis(20), "{waited:?}");
        assert!(counted.most.load(SeqCst) <= OTHERS_AT_ONCE + 1, "{:?}", counted.most);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_leaves_gives_its_turn_to_the_next() {
        let counted = Counted::default();
        assert!(timeout(Duration::from_millis(1), counted.check("good")).await.is_err());
        assert!(counted.check("good").await.is_ok());
        assert!(counted.checks.turns.lock().unwrap().is_empty());
    }
}
