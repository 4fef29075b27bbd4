//! The leases of this replica, and how long it may rely on them.

use std::{collections::HashSet, time::Duration};

use tokio::{
    sync::{Mutex, watch},
    time::Instant,
};
use uuid::Uuid;

use super::{Error, error::chain};
use crate::store::{Store, replica};

/// How long a lease lasts if it isn't renewed.
const TTL: Duration = Duration::from_secs(3);
/// Interval of the renewal of all leases.
pub(super) const RENEWAL: Duration = Duration::from_millis(750);
/// This process stops relying on a lease a little before the database does: a write may still be in flight.
const MARGIN: Duration = Duration::from_millis(250);
/// A renewal may fail twice before the lease is lost.
const _: () = assert!(RENEWAL.as_millis() * 3 < (TTL.as_millis() - MARGIN.as_millis()));

/// The leases of this process. All belong to one session. When the session is lost, the process starts another one, and the
/// claims of the old session become free.
#[derive(Debug)]
pub(super) struct Leases {
    store: Store,
    now: watch::Sender<Session>,
    /// Allows one renewal at a time: two could each start a session.
    renewing: Mutex<()>,
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
    pub(super) fn new(store: Store) -> Self {
        Self { store, now: watch::Sender::new(Session::new()), renewing: Mutex::default() }
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
    pub(super) async fn begin(&self) -> Result<(), Error> {
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
        let sent = Instant::now();
        if self.store.acquire_lease(&replica(next.id), next.id, TTL).await? {
            next.until = sent + TTL - MARGIN;
            self.now.send_replace(next);
            // In the background, so that no lease waits for it.
            let store = self.store.clone();
            tokio::spawn(async move {
                if let Err(error) = store.forget_sessions().await {
                    tracing::debug!("old sessions are left to the next replica that starts: {}", chain(&error));
                }
            });
        }
        Ok(())
    }

    /// Returns the session, if this process may still rely on it.
    pub(super) fn session(&self) -> Option<Uuid> {
        let now = self.now.borrow();
        (Instant::now() < now.until).then_some(now.id)
    }

    /// Returns whether a session is still valid.
    pub(super) fn holds(&self, session: Uuid) -> bool {
        self.session() == Some(session)
    }

    /// Waits until a session is no longer valid.
    pub(super) async fn lost(&self, session: Uuid) {
        self.no_longer(|now| now.id == session).await;
    }

    /// Tries to acquire a lease, and starts a session first if there is none. `false` means that another replica holds the
    /// lease, or that there is no session.
    pub(super) async fn acquire(&self, name: &str) -> Result<bool, Error> {
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
    pub(super) async fn is_elsewhere(&self, name: &str) -> Result<bool, Error> {
        let session = self.now.borrow().id;
        Ok(self.store.lease_is_held_by_another(name, session).await?)
    }

    /// Releases one lease.
    pub(super) async fn end_one(&self, name: &str) -> Result<(), Error> {
        let session = self.now.borrow().id;
        self.now.send_modify(|now| {
            now.held.remove(name);
        });
        Ok(self.store.end_lease(name, session).await?)
    }

    /// Waits until a lease that this replica holds is lost.
    pub(super) async fn gone(&self, name: &str) {
        self.no_longer(|now| now.held.contains(name)).await;
    }

    /// Releases all leases.
    pub(super) async fn end(&self) -> Result<(), Error> {
        let id = self.now.borrow().id;
        self.now.send_replace(Session::new());
        Ok(self.store.end_leases(id).await?)
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
