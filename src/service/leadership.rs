//! One of several replicas: its leases, and the work that only one replica does.

use std::time::Duration;

use futures::Stream;
use tokio::time::sleep;

use super::{Error, Gateway, error::chain, leases};
use crate::cluster::{self, Shown};

/// Pause before a replica that doesn't reach the API server tries again.
const UNREACHED: Duration = Duration::from_secs(1);

impl Gateway {
    /// Interval at which [`Gateway::keep_leases`] has to be called.
    pub const RENEWAL: Duration = leases::RENEWAL;

    /// Renews all leases of this replica.
    pub async fn keep_leases(&self) -> Result<(), Error> {
        self.leases.renew().await
    }

    /// Releases all claims and leases, so that other replicas needn't wait until they expire.
    pub async fn leave(&self) -> Result<(), Error> {
        self.leases.end().await
    }

    /// Tries to acquire the lease `name`, which one replica holds at a time.
    pub async fn become_the_one(&self, name: &str) -> Result<bool, Error> {
        self.leases.acquire(name).await
    }

    /// Releases the lease `name`.
    pub async fn leave_it_to_another(&self, name: &str) -> Result<(), Error> {
        self.leases.end_one(name).await
    }

    /// Waits until this replica no longer holds the lease `name`.
    pub async fn no_longer_the_one(&self, name: &str) {
        self.leases.gone(name).await;
    }

    /// Returns the namespaces to be watched; `None` stands for one watch of all namespaces.
    pub fn watch_scopes(&self) -> Vec<Option<String>> {
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
    pub async fn may_watch(&self, scope: Option<&str>, lease: &str) -> Result<bool, Error> {
        if self.leases.is_elsewhere(lease).await? {
            self.watch.is_elsewhere(scope);
            if self.watch.is_look_due() {
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
        match self.cluster.can_watch(scope).await {
            Ok(()) => {
                self.watch.reached();
                true
            }
            Err(error) => {
                let refused = !matches!(error, cluster::Error::Unavailable { .. }) || error.is_unauthorized();
                let reason = chain(&error);
                tracing::warn!("this replica can't watch the pods: {reason}");
                self.watch.unreached(scope, reason, refused);
                false
            }
        }
    }

    /// Records that this replica starts to watch a namespace (`None`: all).
    pub fn begin_watch(&self, scope: Option<&str>) {
        self.watch.begins(scope);
    }

    /// Records that this replica gives up the watch of a namespace, because it was broken for too long.
    pub fn give_watch_up(&self, scope: Option<&str>) {
        self.watch.gives_up(scope);
    }

    /// Watches the pods of this installation: see [`crate::cluster::Cluster::watch`].
    pub fn watch_pods(
        &self,
        scope: Option<&str>,
        resume: Option<String>,
    ) -> impl Stream<Item = Shown> + Send + Unpin + 'static {
        self.cluster.watch(scope.map(str::to_owned), resume)
    }

    /// Returns the resource version at which the watch of a namespace (`None`: of all) can be resumed.
    pub async fn watch_position(&self, scope: Option<&str>) -> Result<Option<String>, Error> {
        Ok(self.store.watch_position(scope.unwrap_or(ALL)).await?)
    }

    /// Stores that everything up to this resource version was processed.
    pub async fn keep_watch_position(&self, scope: Option<&str>, resource_version: &str) -> Result<(), Error> {
        Ok(self.store.keep_watch_position(scope.unwrap_or(ALL), resource_version).await?)
    }
}

/// Stands for all namespaces in one watch.
pub const ALL: &str = "*";
