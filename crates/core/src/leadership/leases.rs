//! The leases of this replica, and how long it may rely on them.

use std::{
    collections::{HashMap, HashSet},
    sync::PoisonError,
    time::Duration,
};

use tokio::{
    sync::{Mutex, watch},
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use sparkgate_common::error::{Error, error_chain};
use sparkgate_metrics::{metrics, text};
use sparkgate_store::{Renewed, Store, replica};

/// How long a lease lasts if it isn't renewed.
const TTL: Duration = Duration::from_secs(3);
/// Interval of the renewal of all leases.
pub(super) const RENEWAL: Duration = Duration::from_millis(750);
/// This process stops relying on a lease a little before the database does: a write may still be in flight.
const MARGIN: Duration = Duration::from_millis(250);
const _: () = assert!(MARGIN.as_millis() >= 200);
/// Interval of attempts to acquire a lease that no other replica holds.
const TRY: Duration = Duration::from_millis(500);
/// A renewal may fail twice before the lease is lost.
const _: () = assert!(RENEWAL.as_millis() * 3 < (TTL.as_millis() - MARGIN.as_millis()));

/// The leases of this process. All belong to one session. When the session is lost, the process starts another one, and the
/// claims of the old session become free.
///
/// A lease lives only as long as this process knows that it holds it: only `held` leases are renewed. One that was acquired or
/// resigned by a call without an answer expires.
#[derive(Debug)]
pub struct Leases {
    store: Store,
    now: watch::Sender<Session>,
    /// The leases that other replicas hold, as the last renewal found them. So the traffic of a replica that waits for leases
    /// doesn't grow with their number.
    elsewhere: watch::Sender<HashSet<String>>,
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
    /// Leases that are held in addition to the session's own, and their expiry.
    held: HashMap<String, Instant>,
    /// The history of the database in which it began.
    history: u64,
}

/// Returns the name of this host, which is that of the pod in Kubernetes.
fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

impl Session {
    fn new(store: &Store) -> Self {
        Self { id: Uuid::new_v4(), until: Instant::now(), held: HashMap::new(), history: store.history() }
    }
}

impl Leases {
    pub fn new(store: Store) -> Self {
        Self {
            now: watch::Sender::new(Session::new(&store)),
            store,
            elsewhere: watch::Sender::default(),
            renewing: Mutex::default(),
            keys: std::sync::Mutex::default(),
        }
    }

    /// Starts a session or renews it, with all its leases. If the session was lost (the database was unavailable, or this
    /// process was stopped for too long), or if the database has another history than when it began, starts another one: what
    /// this process read and claimed before may never have happened. So its watches list again, too.
    ///
    /// # Errors
    /// The database doesn't answer: the leases expire by themselves.
    pub(super) async fn renew(&self) -> Result<(), Error> {
        let _one = self.renewing.lock().await;
        self.renew_now().await
    }

    /// Starts a session if there is none.
    pub async fn begin(&self) -> Result<(), Error> {
        if self.session().is_some() {
            return Ok(());
        }
        let _one = self.renewing.lock().await;
        if self.session().is_some() { Ok(()) } else { self.renew_now().await }
    }

    async fn renew_now(&self) -> Result<(), Error> {
        let (id, mut names, history) = {
            let now = self.now.borrow();
            (now.id, now.held.keys().cloned().collect::<Vec<_>>(), now.history)
        };
        if history != self.store.history() {
            self.resign_all().await?;
            return Box::pin(self.renew_now()).await;
        }
        let own = replica(id);
        names.push(own.clone());
        let sent = Instant::now();
        let Renewed { names: renewed, elsewhere } = self.store.renew_leases(id, &names, TTL).await?;
        self.elsewhere.send_if_modified(|known| {
            let is_news = *known != elsewhere;
            *known = elsewhere;
            is_news
        });
        if renewed.contains(&own) {
            self.now.send_modify(|now| {
                now.until = sent + TTL - MARGIN;
                // A lease that was acquired in the meantime was not among those to be renewed.
                for name in names.iter().filter(|name| !renewed.contains(*name)) {
                    now.held.remove(name);
                }
                for (_, until) in now.held.iter_mut().filter(|(name, _)| renewed.contains(*name)) {
                    *until = sent + TTL - MARGIN;
                }
            });
            return Ok(());
        }
        let mut next = Session::new(&self.store);
        let keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Err(error) = self.store.publish_keys(next.id, &host(), &keys).await {
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
    pub fn current(&self) -> Uuid {
        self.now.borrow().id
    }

    /// Publishes the keys that this replica can verify, now and for later sessions.
    pub async fn publish(&self, keys: Vec<String>) -> Result<(), Error> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&keys);
        match self.session() {
            Some(session) => Ok(self.store.publish_keys(session, &host(), &keys).await?),
            None => Ok(()),
        }
    }

    /// Returns the session, if this process may still rely on it.
    pub fn session(&self) -> Option<Uuid> {
        let now = self.now.borrow();
        (Instant::now() < now.until).then_some(now.id)
    }

    /// Returns whether a session is still valid.
    pub fn holds(&self, session: Uuid) -> bool {
        self.session() == Some(session)
    }

    /// Waits until a session is no longer valid.
    pub async fn lost(&self, session: Uuid) {
        self.no_longer(|now| (now.id == session).then_some(now.until)).await;
    }

    /// Returns the names of the leases that this process relies on, besides that of its session.
    pub(super) fn held(&self) -> Vec<String> {
        let (now, clock) = (self.now.borrow(), Instant::now());
        now.held.iter().filter(|(_, until)| clock < **until).map(|(name, _)| name.clone()).collect()
    }

    /// Tries to acquire a lease, and starts a session first if there is none. `false` means that another replica holds the
    /// lease, or that there is no session.
    pub async fn acquire(&self, name: &str) -> Result<bool, Error> {
        self.begin().await?;
        let Some(session) = self.session() else { return Ok(false) };
        let sent = Instant::now();
        let taken = self.store.acquire_lease(name, session, TTL).await?;
        Ok(taken
            && self.now.send_if_modified(|now| {
                let is_current = now.id == session;
                if is_current {
                    now.held.insert(name.to_owned(), sent + TTL - MARGIN);
                }
                is_current
            }))
    }

    /// Returns whether another session holds the lease, as the last renewal found it.
    ///
    /// # Errors
    /// The database doesn't answer, so that this is not known.
    pub async fn is_elsewhere(&self, name: &str) -> Result<bool, Error> {
        // A session is as new as the renewal.
        self.begin().await?;
        Ok(self.elsewhere.borrow().contains(name))
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
        self.no_longer(|now| now.held.get(name).copied()).await;
    }

    /// Releases all leases.
    pub(super) async fn resign_all(&self) -> Result<(), Error> {
        let id = self.now.borrow().id;
        self.now.send_replace(Session::new(&self.store));
        Ok(self.store.end_leases(id).await?)
    }

    /// Runs `task` while this replica holds the lease `name`, until `stop`. The task is dropped when the lease is lost, so it
    /// must be cancel-safe. The replica tries to acquire the lease only while it `is_able` to do the task.
    pub async fn while_held<A: Future<Output = Result<bool, Error>>, F: Future<Output = ()>>(
        &self,
        name: &str,
        stop: &CancellationToken,
        is_able: impl Fn() -> A,
        task: impl Fn() -> F,
    ) {
        let mut elsewhere = self.elsewhere.subscribe();
        let mut resigned = true;
        while !stop.is_cancelled() {
            if !resigned {
                // It expires by itself, too. Tried again here, before the lease may be acquired again.
                resigned = self.resign(name).await.is_ok();
            }
            let taken = async { Ok(is_able().await? && !self.is_elsewhere(name).await? && self.acquire(name).await?) };
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
                    let released = self.resign(name).await;
                    resigned = released.is_ok();
                    if let Err(error) = released {
                        tracing::debug!(lease = name, "lease not released: {}", error_chain(&error));
                    }
                }
                Ok(false) => {}
                Err::<_, Error>(error) => tracing::debug!(lease = name, "lease not acquired: {}", error_chain(&error)),
            }
            tokio::select! {
                () = sleep(TRY) => {}
                // Another replica has released or acquired a lease. The sender exists as long as `self`.
                _ = elsewhere.changed() => {}
                () = stop.cancelled() => {}
            }
        }
    }

    /// Waits until `until` returns no time, or one that has passed.
    async fn no_longer(&self, until: impl Fn(&Session) -> Option<Instant>) {
        let mut now = self.now.subscribe();
        loop {
            let Some(until) = until(&now.borrow_and_update()).filter(|until| Instant::now() < *until) else { return };
            // The expiry is checked above, and the sender exists as long as `self`.
            let _ = tokio::time::timeout_at(until, now.changed()).await;
        }
    }
}
