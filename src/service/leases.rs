//! What this replica holds, and until when it may believe it.

use std::{collections::HashSet, time::Duration};

use tokio::{
    sync::{Mutex, watch},
    time::Instant,
};
use uuid::Uuid;

use super::{Error, error::chain};
use crate::store::{Store, replica};

/// How long a lease lasts without being renewed.
const TTL: Duration = Duration::from_secs(3);
/// How often all leases are renewed.
pub(super) const RENEWAL: Duration = Duration::from_millis(750);
/// We stop believing in a lease a little before the database does: a write may still be on its way.
const MARGIN: Duration = Duration::from_millis(250);
/// A renewal may fail twice before the lease is lost.
const _: () = assert!(RENEWAL.as_millis() * 3 < (TTL.as_millis() - MARGIN.as_millis()));

/// The leases of this process. All belong to one session; when it is lost, another begins, and what was claimed under the
/// old one is anybody's.
#[derive(Debug)]
pub(super) struct Leases {
    store: Store,
    now: watch::Sender<Session>,
    /// One renewal at a time: two could each begin a session.
    renewing: Mutex<()>,
}

#[derive(Debug, Clone)]
struct Session {
    id: Uuid,
    /// By this machine's monotonic clock, counted from before the renewal was sent.
    until: Instant,
    /// What is held beside the session's own lease.
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

    /// Begins a session or extends it, with everything it holds. If it was lost (the database was away, this process was
    /// stopped for too long) another begins.
    ///
    /// # Errors
    /// The database doesn't answer: what is held runs out by itself.
    pub(super) async fn renew(&self) -> Result<(), Error> {
        let _one = self.renewing.lock().await;
        self.renew_now().await
    }

    /// Begins a session if there is none.
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
            // A lease doesn't wait for it.
            let store = self.store.clone();
            tokio::spawn(async move {
                if let Err(error) = store.forget_sessions().await {
                    tracing::debug!("old sessions are left to the next replica that starts: {}", chain(&error));
                }
            });
        }
        Ok(())
    }

    /// The session, if it may be believed in just now.
    pub(super) fn session(&self) -> Option<Uuid> {
        let now = self.now.borrow();
        (Instant::now() < now.until).then_some(now.id)
    }

    /// Whether a session still holds.
    pub(super) fn holds(&self, session: Uuid) -> bool {
        self.session() == Some(session)
    }

    /// Waits until a session no longer holds.
    pub(super) async fn lost(&self, session: Uuid) {
        self.no_longer(|now| now.id == session).await;
    }

    /// Tries to get what only one replica has. `false` says that another one has it, so a session is begun first if there
    /// is none.
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

    /// Whether another session has it.
    pub(super) async fn is_elsewhere(&self, name: &str) -> Result<bool, Error> {
        let session = self.now.borrow().id;
        Ok(self.store.lease_is_held_by_another(name, session).await?)
    }

    /// Gives one lease back.
    pub(super) async fn end_one(&self, name: &str) -> Result<(), Error> {
        let session = self.now.borrow().id;
        self.now.send_modify(|now| {
            now.held.remove(name);
        });
        Ok(self.store.end_lease(name, session).await?)
    }

    /// Waits until a lease that was got is lost.
    pub(super) async fn gone(&self, name: &str) {
        self.no_longer(|now| now.held.contains(name)).await;
    }

    /// Gives everything back.
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
            // The time-out is looked at above, and the sender lives as long as we do.
            let _ = tokio::time::timeout_at(until, now.changed()).await;
        }
    }
}
