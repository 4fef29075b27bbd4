//! The watch of pods: passes its observations on, and stores its position.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures::{Stream, StreamExt, future::join_all};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::{ALL, PodFollower, label};
use sparkgate_cluster::{self, WatchItem, WatchReport};
use sparkgate_common::error::{Error, error_chain};
use sparkgate_metrics::metrics;

/// Maximum number of observations that are processed together.
const BATCH: usize = 256;
/// Maximum interval between two writes of executors.
const FLUSH: Duration = Duration::from_millis(500);
/// Interval at which the position of the watch is stored.
const KEEP: Duration = Duration::from_secs(1);
/// A replica whose watch was broken for this long leaves it to another one.
const GIVE_UP: Duration = Duration::from_secs(10);
/// Interval at which a replica checks whether to leave its watch to another one.
const CHECK: Duration = Duration::from_millis(500);
/// Pause after a check that the API server answers, while a batch takes long.
const AGAIN: Duration = Duration::from_secs(3);
/// Pause before a replica that doesn't reach the API server tries again.
const UNREACHED: Duration = Duration::from_secs(1);

/// What a watch is doing, for the check whether this replica leaves it to another one.
#[derive(Debug, Default)]
struct Doing(Mutex<Since>);

#[derive(Debug, Default, Clone, Copy)]
struct Since {
    /// The watch is broken.
    broken: Option<Instant>,
    /// The same observations are being processed or written.
    busy: Option<Instant>,
}

impl Doing {
    fn with<T>(&self, act: impl FnOnce(&mut Since) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl PodFollower {
    /// Watches each namespace, or all together, while this replica holds the lease of the watch; runs until `stop`.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        let each = self.watch_scopes().into_iter().map(async |scope| {
            let scope = scope.as_deref();
            let name = lease_of(scope);
            let is_able = || self.may_watch(scope, &name);
            self.leases.while_held(&name, &stop, is_able, || self.watch(scope)).await;
        });
        join_all(each).await;
    }

    /// Watches until this replica can't: beside the watch, because the processing of a batch may wait for an API server that
    /// this replica no longer reaches.
    async fn watch(self: &Arc<Self>, scope: Option<&str>) {
        let doing = Doing::default();
        tokio::select! {
            () = self.follow_watch(scope, &doing) => {}
            () = self.until_cut_off(scope, &doing) => {}
        }
    }

    /// Waits until the watch has been broken for too long, or until a batch takes so long while the API server isn't reached.
    async fn until_cut_off(&self, scope: Option<&str>, doing: &Doing) {
        let is_long = |since: Option<Instant>| since.is_some_and(|since| since.elapsed() >= GIVE_UP);
        loop {
            sleep(CHECK).await;
            let Since { broken, busy } = doing.with(|since| *since);
            if is_long(broken) {
                return self.health.watch.gives_up(scope);
            }
            if is_long(busy) {
                if !self.look(scope).await {
                    return;
                }
                // The database may be slow.
                sleep(AGAIN).await;
            }
        }
    }

    async fn follow_watch(self: &Arc<Self>, scope: Option<&str>, doing: &Doing) {
        self.health.watch.begins(scope);
        let position = loop {
            match self.watch_position(scope).await {
                Ok(position) => break position,
                Err(error) => tracing::warn!("starting the watch failed: {}", error_chain(&error)),
            }
            sleep(KEEP).await;
        };
        let _begun = self.executors.begin(scope);
        let _set_aside = self.set_aside.begin(scope);
        let _witness = self.witness.begin(scope);
        let _ended_drivers = self.ended_drivers.begin(scope);
        let (follower, namespace) = (self.clone(), scope.map(str::to_owned));
        let dependants = async move {
            let namespace = namespace.as_deref();
            tokio::join!(follower.keep_finishing_recent_ends(namespace), follower.keep_ending_dependants(namespace))
        };
        let _dependants = AbortOnDropHandle::new(tokio::spawn(dependants));
        let mut observations = self.watch_pods(scope, position).ready_chunks(BATCH);
        let mut flush = interval(FLUSH);
        flush.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut position, mut kept) = (None, Instant::now());
        loop {
            doing.with(|since| since.busy = None);
            tokio::select! {
                batch = observations.next() => {
                    let Some(batch) = batch else { return };
                    position = batch.iter().rev().find_map(|item| item.resource_version.clone()).or(position);
                    doing.with(|Since { broken, busy }| {
                        for item in &batch {
                            let is_broken = matches!(item.report, Some(WatchReport::Broken { .. }));
                            *broken = is_broken.then(|| broken.unwrap_or_else(Instant::now));
                        }
                        *busy = Some(Instant::now());
                    });
                    self.health.watch.falls_behind(scope);
                    self.process_reports(scope, batch.into_iter().map(|item| item.report)).await;
                    if !self.executors.batch_is_full(scope) {
                        continue;
                    }
                }
                _ = flush.tick() => doing.with(|since| since.busy = Some(Instant::now())),
            }
            if let Err(error) = self.flush_executors(scope).await {
                tracing::warn!("writing executors failed: {}", error_chain(&error));
                continue;
            }
            if !self.is_caught_up(scope) {
                continue;
            }
            if doing.with(|since| since.broken.is_none()) {
                self.health.watch.catches_up(scope);
            }
            // A position that is slightly old only means that some observations are processed twice.
            if kept.elapsed() < KEEP {
                continue;
            }
            let Some(reached) = position.take() else { continue };
            match self.keep_watch_position(scope, &reached).await {
                // Another replica has the lease by now, and this watch is about to end.
                Ok(false) => {}
                Ok(true) => {
                    kept = Instant::now();
                    // A version that is no number can't be shown.
                    if let Ok(at) = reached.parse() {
                        metrics().watch_position.with([label(scope)]).set(at);
                    }
                }
                Err(error) => tracing::warn!("storing the position of the watch failed: {}", error_chain(&error)),
            }
        }
    }

    /// Returns the namespaces to be watched; `None` stands for one watch of all namespaces.
    fn watch_scopes(&self) -> Vec<Option<String>> {
        match self.cluster.namespaces() {
            [] => vec![None],
            named => named.iter().cloned().map(Some).collect(),
        }
    }

    /// Returns whether this replica should try to acquire the lease of this watch: no other replica holds it, and the initial
    /// list of the watch works here. A replica that can't reach the API server leaves the watch to the others.
    ///
    /// # Errors
    /// The holder of the lease can't be read from the database.
    async fn may_watch(&self, scope: Option<&str>, lease: &str) -> Result<bool, Error> {
        if self.leases.is_elsewhere(lease).await? {
            self.health.watch.is_elsewhere(scope);
            if self.health.watch.is_look_due() {
                self.look(scope).await;
            }
            return Ok(false);
        }
        let reached = self.look(scope).await;
        if !reached {
            sleep(UNREACHED).await;
        }
        Ok(reached)
    }

    async fn look(&self, scope: Option<&str>) -> bool {
        // A start with many namespaces checks them in turn.
        let _turn = self.looks.acquire().await;
        match self.cluster.can_watch(scope).await {
            Ok(()) => {
                self.health.watch.reached();
                true
            }
            Err(error) => {
                let refused = !matches!(error, sparkgate_cluster::Error::Unavailable { .. }) || error.is_unauthorized();
                let reason = error_chain(&error);
                tracing::warn!("this replica can't watch the pods: {reason}");
                self.health.watch.unreached(scope, reason, refused);
                false
            }
        }
    }

    /// Watches the pods of this installation: see [`sparkgate_cluster::Cluster::watch`].
    pub fn watch_pods(
        &self,
        scope: Option<&str>,
        resume: Option<String>,
    ) -> impl Stream<Item = WatchItem> + Send + Unpin + 'static {
        self.cluster.watch(scope.map(str::to_owned), resume)
    }

    /// Returns the resource version at which the watch of a namespace (`None`: of all) can be resumed.
    pub async fn watch_position(&self, scope: Option<&str>) -> Result<Option<String>, Error> {
        Ok(self.store.watch_position(scope.unwrap_or(ALL)).await?)
    }

    /// Stores that everything up to this resource version was processed, unless this replica has lost the lease of the watch.
    pub async fn keep_watch_position(&self, scope: Option<&str>, resource_version: &str) -> Result<bool, Error> {
        let Some(session) = self.leases.session() else { return Ok(false) };
        let lease = (&*lease_of(scope), session);
        Ok(self.store.keep_watch_position(scope.unwrap_or(ALL), resource_version, lease).await?)
    }
}

/// Returns the name of the lease of a watch.
fn lease_of(scope: Option<&str>) -> String {
    format!("watch/{}", scope.unwrap_or(ALL))
}
