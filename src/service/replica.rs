//! One of several replicas: its leases, and what only one of all does.

use std::time::Duration;

use futures::Stream;
use tokio::time::sleep;

use super::{Error, Gateway, error::chain, leases};
use crate::cluster::{self, Shown};

/// Before the next look of a replica that doesn't reach the API server.
const UNREACHED: Duration = Duration::from_secs(1);

impl Gateway {
    /// How often [`Gateway::keep_leases`] has to be called.
    pub const RENEWAL: Duration = leases::RENEWAL;

    /// Extends all that this replica holds.
    pub async fn keep_leases(&self) -> Result<(), Error> {
        self.leases.renew().await
    }

    /// Gives all claims and leases back: the others needn't wait for them to run out.
    pub async fn leave(&self) -> Result<(), Error> {
        self.leases.end().await
    }

    /// Tries to become the one replica that does what `name` stands for.
    pub async fn become_the_one(&self, name: &str) -> Result<bool, Error> {
        self.leases.acquire(name).await
    }

    /// Lets another replica be the one.
    pub async fn leave_it_to_another(&self, name: &str) -> Result<(), Error> {
        self.leases.end_one(name).await
    }

    /// Waits until this replica isn't the one any more.
    pub async fn no_longer_the_one(&self, name: &str) {
        self.leases.gone(name).await;
    }

    /// The namespaces to be watched; `None` is all of them together.
    pub fn watch_scopes(&self) -> Vec<Option<String>> {
        match self.cluster.namespaces() {
            [] => vec![None],
            named => named.iter().cloned().map(Some).collect(),
        }
    }

    /// Whether this replica should try for the lease of this watch: no other has it, and the very list that the watch begins
    /// with works here. A replica that is cut off from the API server leaves it to the others.
    ///
    /// # Errors
    /// The database doesn't tell who has the lease.
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
                tracing::warn!("the pods can't be watched from here: {reason}");
                self.watch.unreached(scope, reason, refused);
                false
            }
        }
    }

    /// This replica begins to watch a namespace (`None`: all).
    pub fn begin_watch(&self, scope: Option<&str>) {
        self.watch.begins(scope);
    }

    /// This replica gives the watch of a namespace up, because it has been broken for too long.
    pub fn give_watch_up(&self, scope: Option<&str>) {
        self.watch.gives_up(scope);
    }

    /// What happens to this installation's pods: see [`crate::cluster::Cluster::watch`].
    pub fn watch_pods(
        &self,
        scope: Option<&str>,
        resume: Option<String>,
    ) -> impl Stream<Item = Shown> + Send + Unpin + 'static {
        self.cluster.watch(scope.map(str::to_owned), resume)
    }

    /// Where the watch of a namespace (`None`: of all) may be resumed.
    pub async fn watch_position(&self, scope: Option<&str>) -> Result<Option<String>, Error> {
        Ok(self.store.watch_position(scope.unwrap_or(ALL)).await?)
    }

    /// Everything up to this resource version was taken in.
    pub async fn keep_watch_position(&self, scope: Option<&str>, resource_version: &str) -> Result<(), Error> {
        Ok(self.store.keep_watch_position(scope.unwrap_or(ALL), resource_version).await?)
    }
}

/// The name of all namespaces together.
pub const ALL: &str = "*";
