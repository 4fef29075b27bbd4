//! Kubernetes: the layer that uses kube. It creates, reads and deletes a driver's objects, and watches the pods of
//! drivers and executors.

mod answer;
mod call;
mod connect;
mod container_state;
mod create;
mod dependants;
mod driver_http;
mod error;
mod executor_pod;
mod http;
mod inspect;
pub mod kueue;
pub mod labels;
mod logs;
mod manifest;
mod manifest_object;
mod measured;
mod namespaces;
mod objects;
mod observe;
mod pod_events;
mod pod_requests;
mod pods;
mod pre_resource;
mod quota;
mod release;
mod restarts;
mod retry_after;
mod rights;
mod slim_pod;
mod token_review;
mod watch;

pub use connect::{ClusterSettings, ConnectError};
pub use dependants::{Dependant, Drivers};
pub use driver_http::{DriverBytes, DriverHttpError};
pub use error::Error;
pub use inspect::{ApiServer, MarkedPod, QuotaUse};
pub use logs::{LogAnswer, LogBytes, LogOf, LogPart};
pub use manifest::{Manifest, Overlay, OverlayError, OwnershipLabels, Placement, is_executor_property};
pub use namespaces::SYSTEM;
pub use objects::right_to_read;
pub use release::Released;
pub use rights::MissingRight;
pub use token_review::TokenUser;
pub use watch::{PodKey, WatchItem, WatchPace, WatchReport};

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use sparkgate_submission::Installation;

/// A Kubernetes cluster. Cheap to clone.
#[derive(Clone)]
pub struct Cluster {
    client: kube::Client,
    /// Clients for watches only: other calls don't wait for watches, however many there are and however much data they
    /// deliver.
    watching: Arc<[kube::Client]>,
    /// Clients for logs only, because a log stream lasts as long as its reader reads. They are used in turn.
    reading: Arc<[kube::Client]>,
    turn: Arc<AtomicUsize>,
    /// The same for logs that are stored: readers don't wait for them.
    storing: Arc<[kube::Client]>,
    /// For drivers themselves.
    drivers: driver_http::DriverClient,
    /// The watched namespaces; empty means all.
    namespaces: Arc<[String]>,
    /// The label selector of the watched pods.
    selector: Arc<str>,
    /// The installation that owns the watched pods; `None` for those of every installation.
    installation: Option<Arc<Installation>>,
    pace: WatchPace,
}

impl Cluster {
    /// Creates the cluster behind a client. Drivers are watched in `namespaces`, or everywhere if that is empty.
    pub fn new(client: kube::Client, namespaces: &[String]) -> Self {
        Self {
            watching: [client.clone()].into(),
            reading: [client.clone()].into(),
            storing: [client.clone()].into(),
            turn: Arc::default(),
            drivers: driver_http::client(),
            client,
            namespaces: namespaces.into(),
            selector: labels::SUBMISSION_ID.into(),
            installation: None,
            pace: WatchPace::default(),
        }
    }

    /// Returns the same cluster, restricted to one installation: only its pods are watched and recognized.
    #[must_use]
    pub fn of_installation(self, installation: Installation) -> Self {
        let selector = format!("{}={}", labels::INSTANCE, installation.id).into();
        Self { selector, installation: Some(installation.into()), ..self }
    }

    /// Returns the same cluster, whose logs are read over the connections for logs that are stored.
    #[must_use]
    pub fn for_stored_logs(&self) -> Self {
        Self { reading: self.storing.clone(), turn: Arc::default(), ..self.clone() }
    }

    /// Returns the same cluster, watched at another pace.
    #[must_use]
    pub fn with_pace(self, pace: WatchPace) -> Self {
        Self { pace, ..self }
    }

    /// Returns whether this namespace is watched, so that the end of a driver in it is seen.
    pub fn watches(&self, namespace: &str) -> bool {
        self.namespaces.is_empty() || self.namespaces.iter().any(|watched| watched == namespace)
    }

    /// Returns the client for the watch of a namespace.
    fn watching(&self, namespace: Option<&str>) -> &kube::Client {
        let place = namespace.and_then(|name| self.namespaces.iter().position(|watched| watched == name));
        let connection = place.unwrap_or_default() / connect::WATCHES_PER_CONNECTION;
        self.watching.get(connection).unwrap_or(&self.client)
    }

    /// Returns the client for the next log.
    fn reading(&self) -> &kube::Client {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % self.reading.len().max(1);
        self.reading.get(turn).unwrap_or(&self.client)
    }

    /// The watched namespaces; none means all.
    pub fn namespaces(&self) -> &[String] {
        &self.namespaces
    }
}
