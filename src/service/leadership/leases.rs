//! The leases of this replica, and how long it may rely on them.

use std::{collections::HashSet, sync::PoisonError, time::Duration};

use tokio::{
    sync::{Mutex, watch},
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{
    metrics::{metrics, text},
    service::error::{Error, error_chain},
    store::{Store, replica},
};

/// How long a lease lasts if it isn't renewed.
const TTL: Duration = Duration::from_secs(3);
/// Interval of the renewal of all leases.
pub(super) const RENEWAL: Duration = Duration::from_millis(750);
/// This process stops relying on a lease a little before the database does: a write may still be in flight.
const MARGIN: Duration = Duration::from_millis(250);
/// Interval of attempts to acquire a lease that another replica holds. After a crash of its holder, the time until the lease
/// expires is added.
const TRY: Duration = Duration::from_millis(500);
/// A renewal may fail twice before the lease is lost.
const _: () = assert!(RENEWAL.as_millis() * 3 < (TTL.as_millis() - MARGIN.as_millis()));

/// The leases of this process. All belong to one session. When the session is lost, the process starts another one, and the
/// claims of the old session become free.
#[derive(Debug)]
pub(in crate::service) struct Leases {
    store: Store,
    now: watch::Sender<Session>,
    /// Allows one renewal at a time: two could each start a session.
    renewing: Mutex<()>,
    /// The keys that this replica can verify. Each session has published them before it begins.
    keys: std::sync::Mutex<Vec<String>>,
}

#[derive(Debug, Clone)]
struct Session {
    id: Uuid,
    /// Expiry by this machine's monotonic clock, counted from before the renewal was sent.
    until: Instant,
    /// Leases that are held in addition to the session's own.
    held: HashSet<String>,
}

impl Session {
    fn new() -> Self {
        Self { id: Uuid::new_v4(), until: Instant::now(), held: HashSet::new() }
    }
}

impl Leases {
    pub(in crate::service) fn new(store: Store) -> Self {
        Self {
            store,
            now: watch::Sender::new(Session::new()),
            renewing: Mutex::default(),
            keys: std::sync::Mutex::default(),
        }
    }

    /// Starts a session or renews it, with all its leases. If the session was lost (the database was unavailable, or this
    /// process was stopped for too long), starts another one.
    ///
    /// # Errors
    /// The database doesn't answer: the leases expire by themselves.
    pub(super) async fn renew(&self) -> Result<(), Error> {
        let _one = self.renewing.lock().await;
        self.renew_now().await
    }

    /// Starts a session if there is none.
    pub(in crate::service) async fn begin(&self) -> Result<(), Error> {
        if self.session().is_some() {
            return Ok(());
        }
        let _one = self.renewing.lock().await;
        if self.session().is_some() { Ok(()) } else { self.renew_now().await }
    }

    async fn renew_now(&self) -> Result<(), Error> {
        let id = self.now.borrow().id;
        let sent = Instant::now();
        let renewed = self.store.renew_leases(id, TTL).await?;
        let own = replica(id);
        if renewed.contains(&own) {
            self.now.send_modify(|now| {
                now.until = sent + TTL - MARGIN;
                now.held.retain(|name| renewed.contains(name));
            });
            return Ok(());
        }
        let mut next = Session::new();
        let keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Err(error) = self.store.publish_keys(next.id, &keys).await {
            // Until the next look, others take this replica for one of an older release.
            tracing::debug!("the keys of a session aren't published: {}", error_chain(&error));
        }
        let sent = Instant::now();
        if self.store.acquire_lease(&replica(next.id), next.id, TTL).await? {
            next.until = sent + TTL - MARGIN;
            self.now.send_replace(next);
            metrics().sessions.inc();
            // In the background, so that no lease waits for it.
            let store = self.store.clone();
            tokio::spawn(async move {
                if let Err(error) = store.forget_sessions().await {
                    tracing::debug!("old sessions are left to the next replica that starts: {}", error_chain(&error));
                }
            });
        }
        Ok(())
    }

    /// Returns the id of the present session, or of the last one.
    pub(in crate::service) fn current(&self) -> Uuid {
        self.now.borrow().id
    }

    /// Publishes the keys that this replica can verify, now and for later sessions.
    pub(in crate::service) async fn publish(&self, keys: Vec<String>) -> Result<(), Error> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&keys);
        match self.session() {
            Some(session) => Ok(self.store.publish_keys(session, &keys).await?),
            None => Ok(()),
        }
    }

    /// Returns the session, if this process may still rely on it.
    pub(in crate::service) fn session(&self) -> Option<Uuid> {
        let now = self.now.borrow();
        (Instant::now() < now.until).then_some(now.id)
    }

    /// Returns whether a session is still valid.
    pub(in crate::service) fn holds(&self, session: Uuid) -> bool {
        self.session() == Some(session)
    }

    /// Waits until a session is no longer valid.
    pub(in crate::service) async fn lost(&self, session: Uuid) {
        self.no_longer(|now| now.id == session).await;
    }

    /// Tries to acquire a lease, and starts a session first if there is none. `false` means that another replica holds the
    /// lease, or that there is no session.
    pub(in crate::service) async fn acquire(&self, name: &str) -> Result<bool, Error> {
        self.begin().await?;
        let Some(session) = self.session() else { return Ok(false) };
        let taken = self.store.acquire_lease(name, session, TTL).await?;
        if taken {
            self.now.send_modify(|now| {
                if now.id == session {
                    now.held.insert(name.to_owned());
                }
            });
        }
        Ok(taken)
    }

    /// Returns whether another session holds the lease.
    pub(in crate::service) async fn is_elsewhere(&self, name: &str) -> Result<bool, Error> {
        let session = self.now.borrow().id;
        Ok(self.store.lease_is_held_by_another(name, session).await?)
    }

    /// Releases one lease.
    async fn resign(&self, name: &str) -> Result<(), Error> {
        let session = self.now.borrow().id;
        self.now.send_modify(|now| {
            now.held.remove(name);
        });
        Ok(self.store.end_lease(name, session).await?)
    }

    /// Waits until a lease that this replica holds is lost.
    async fn until_lost(&self, name: &str) {
        self.no_longer(|now| now.held.contains(name)).await;
    }

    /// Releases all leases.
    pub(super) async fn resign_all(&self) -> Result<(), Error> {
        let id = self.now.borrow().id;
        self.now.send_replace(Session::new());
        Ok(self.store.end_leases(id).await?)
    }

    /// Runs `task` while this replica holds the lease `name`, until `stop`. The task is dropped when the lease is lost, so it
    /// must be cancel-safe. The replica tries to acquire the lease only while it `is_able` to do the task.
    pub(in crate::service) async fn while_held<A: Future<Output = Result<bool, Error>>, F: Future<Output = ()>>(
        &self,
        name: &str,
        stop: &CancellationToken,
        is_able: impl Fn() -> A,
        task: impl Fn() -> F,
    ) {
        while !stop.is_cancelled() {
            let taken = async { Ok(is_able().await? && self.acquire(name).await?) };
            match stop.run_until_cancelled(taken).await.unwrap_or(Ok(false)) {
                Ok(true) => {
                    tracing::info!(lease = name, "lease acquired");
                    metrics().lease_held.with([text(name)]).set(1.0);
                    tokio::select! {
                        () = task() => tracing::warn!(lease = name, "lease resigned"),
                        () = self.until_lost(name) => {
                            metrics().leases_lost.with([text(name)]).inc();
                            tracing::warn!(lease = name, "lease lost");
                        }
                        () = stop.cancelled() => {}
                    }
                    metrics().lease_held.with([text(name)]).set(0.0);
                    // Released in every case, so that the next holder needn't wait until the lease expires.
                    if let Err(error) = self.resign(name).await {
                        tracing::debug!(lease = name, "lease not released: {}", error_chain(&error));
                    }
                }
                Ok(false) => {}
                Err::<_, Error>(error) => tracing::debug!(lease = name, "lease not acquired: {}", error_chain(&error)),
            }
            tokio::select! {
                () = sleep(TRY) => {}
                () = stop.cancelled() => {}
            }
        }
    }

    async fn no_longer(&self, is_so: impl Fn(&Session) -> bool) {
        let mut now = self.now.subscribe();
        loop {
            let until = {
                let now = now.borrow_and_update();
                if !is_so(&now) || Instant::now() >= now.until {
                    return;
                }
                now.until
            };
            // The expiry is checked above, and the sender exists as long as `self`.
            let _ = tokio::time::timeout_at(until, now.changed()).await;
        }
    }
}
