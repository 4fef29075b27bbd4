//! One of several replicas: its leases, and what only one of all does.

use futures::Stream;

use super::{Error, Gateway, leases};
use crate::cluster::Shown;

impl Gateway {
    /// How often [`Gateway::keep_leases`] has to be called.
    pub const RENEWAL: std::time::Duration = leases::RENEWAL;

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
