//! One of several replicas: its leases, and the work that one replica does for all.

mod batch;
pub mod clean_up;
pub mod clock;
mod deadlines;
mod ended_pods;
pub mod leases;
mod silent_namespaces;

use std::{future::ready, sync::Arc, time::Duration};

use futures::future::join_all;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;

use self::{
    batch::{Batch, ROUND, SETTLED_AT_ONCE},
    clock::DatabaseClock,
    leases::{Leases, RENEWAL},
    silent_namespaces::SilentNamespaces,
};
use crate::{ports::Sweep, wakeups::Wakeups};
use sparkgate_cluster::Cluster;
use sparkgate_common::error::{Error, error_chain};
use sparkgate_store::Store;
use sparkgate_tenancy::access_file::AccessFile;

/// A renewal that takes longer is canceled, so that there is time for another before the leases expire.
const LIMIT: Duration = Duration::from_secs(1);

/// The leases of this replica, and the work under them that concerns all submissions: deadlines and clean-up.
pub struct Leadership {
    store: Store,
    cluster: Cluster,
    leases: Arc<Leases>,
    clock: DatabaseClock,
    wakeups: Arc<Wakeups>,
    sweeps: Vec<Arc<dyn Sweep>>,
    access: Arc<AccessFile>,
    /// Namespaces in which no pods can be deleted.
    silent: SilentNamespaces,
    settled_at_once: Batch,
    deleted_at_once: Batch,
}

impl Leadership {
    pub fn new(
        store: Store,
        cluster: Cluster,
        leases: Arc<Leases>,
        wakeups: Arc<Wakeups>,
        sweeps: Vec<Arc<dyn Sweep>>,
        access: Arc<AccessFile>,
    ) -> Self {
        let (clock, silent) = (DatabaseClock::new(store.clone()), SilentNamespaces::default());
        let (settled_at_once, deleted_at_once) = (Batch::new(SETTLED_AT_ONCE), Batch::new(ROUND));
        Self { clock, store, cluster, leases, wakeups, sweeps, access, silent, settled_at_once, deleted_at_once }
    }

    /// Renews all leases of this replica, or starts a session if there is none.
    pub async fn renew(&self) -> Result<(), Error> {
        self.leases.renew().await
    }

    /// Releases all claims and leases, so that other replicas needn't wait until they expire.
    pub async fn resign_all(&self) -> Result<(), Error> {
        self.leases.resign_all().await
    }

    /// Tries to acquire the lease `name`, which one replica holds at a time.
    pub async fn acquire(&self, name: &str) -> Result<bool, Error> {
        self.leases.acquire(name).await
    }

    /// Returns the names of the leases that this replica holds, apart from the one of its session.
    pub fn held(&self) -> Vec<String> {
        self.leases.held()
    }

    /// Runs the sweeps of features, each while this replica holds its lease, until `stop`.
    pub async fn run_sweeps(self: Arc<Self>, stop: CancellationToken) {
        let each = self.sweeps.iter().map(|sweep| {
            let is_needed = || ready(Ok(sweep.is_needed()));
            self.leases.while_held(sweep.lease(), &stop, is_needed, || sweep.rounds(&self.clock))
        });
        join_all(each).await;
        stop.cancelled().await;
    }

    /// Renews the leases until `stop`, then releases them.
    pub async fn run_renewal(self: Arc<Self>, stop: CancellationToken) {
        let mut due = interval(RENEWAL);
        due.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while stop.run_until_cancelled(due.tick()).await.is_some() {
            match timeout(LIMIT, self.renew()).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::warn!("renewing this replica's leases failed: {}", error_chain(&error)),
                Err(_) => tracing::warn!("renewing this replica's leases failed: no answer within {LIMIT:?}"),
            }
        }
        if let Ok(Err(error)) = timeout(LIMIT, self.resign_all()).await {
            tracing::warn!("releasing this replica's leases failed: {}", error_chain(&error));
        }
    }
}
