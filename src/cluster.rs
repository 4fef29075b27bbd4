//! Kubernetes: the layer that says kube. Creates, looks up and deletes a driver's objects and watches driver pods.

mod connect;
mod create;
mod driver_pod;
mod error;
mod http;
pub mod labels;
mod observe;
mod pods;
mod pre_resource;
mod watch;

pub use connect::{ClusterSettings, ConnectError};
pub use error::Error;
pub use pods::Found;
pub use watch::{PodKey, Seen};

/// A Kubernetes cluster. Cheap to clone.
#[derive(Clone)]
pub struct Cluster {
    client: kube::Client,
    /// For watches alone: however many there are, and however much they have to tell, other calls don't wait for them.
    watching: std::sync::Arc<[kube::Client]>,
    /// The namespaces that are watched; empty means all.
    namespaces: std::sync::Arc<[String]>,
}

impl Cluster {
    /// The cluster behind a client. Drivers are watched in `namespaces`, everywhere if there are none.
    pub fn new(client: kube::Client, namespaces: &[String]) -> Self {
        Self { watching: [client.clone()].into(), client, namespaces: namespaces.into() }
    }

    /// Whether the end of a driver in this namespace would be seen.
    pub fn watches(&self, namespace: &str) -> bool {
        self.namespaces.is_empty() || self.namespaces.iter().any(|watched| watched == namespace)
    }

    /// The watched namespaces; none means all.
    pub fn namespaces(&self) -> &[String] {
        &self.namespaces
    }
}
