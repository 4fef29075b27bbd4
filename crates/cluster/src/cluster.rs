//! The cluster: its clients, and which pods are watched.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use super::{
    driver_client::{self, DriverClient},
    labels,
    watch::pace::WatchPace,
};
use sparkgate_submission::Installation;

/// Watches on one connection, half of the hundred streams that an API server allows (`MaxConcurrentStreams` of its secure
/// serving).
pub(super) const WATCHES_PER_CONNECTION: usize = 50;

/// A Kubernetes cluster. Cheap to clone.
#[derive(Clone)]
pub struct Cluster {
    pub(super) client: kube::Client,
    /// Clients for watches only: other calls don't wait for watches, however many there are and however much data they
    /// deliver.
    pub(super) watching: Arc<[kube::Client]>,
    /// Clients for logs only, because a log stream lasts as long as its reader reads. They are used in turn.
    pub(super) reading: Arc<[kube::Client]>,
    pub(super) turn: Arc<AtomicUsize>,
    /// The same for logs that are stored: readers don't wait for them.
    pub(super) storing: Arc<[kube::Client]>,
    /// For drivers themselves.
    pub(super) drivers: DriverClient,
    /// The watched namespaces; empty means all.
    pub(super) namespaces: Arc<[String]>,
    /// The label selector of the watched pods.
    pub(super) selector: Arc<str>,
    /// The installation that owns the watched pods; `None` for those of every installation.
    pub(super) installation: Option<Arc<Installation>>,
    pub(super) pace: WatchPace,
}

impl Cluster {
    /// Creates the cluster behind a client. Drivers are watched in `namespaces`, or everywhere if that is empty.
    pub fn new(client: kube::Client, namespaces: &[String]) -> Self {
        Self {
            watching: [client.clone()].into(),
            reading: [client.clone()].into(),
            storing: [client.clone()].into(),
            turn: Arc::default(),
            drivers: driver_client::client(),
            client,
            namespaces: namespaces.into(),
            selector: labels::SUBMISSION_ID.into(),
            installation: None,
            pace: WatchPace::default(),
        }
    }

    /// Returns the same cluster, restricted to one installation: only its pods are watched and recognized.
    #[must_use]
    pub fn for_installation(self, installation: Installation) -> Self {
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
    pub(super) fn watching(&self, namespace: Option<&str>) -> &kube::Client {
        let place = namespace.and_then(|name| self.namespaces.iter().position(|watched| watched == name));
        let connection = place.unwrap_or_default() / WATCHES_PER_CONNECTION;
        self.watching.get(connection).unwrap_or(&self.client)
    }

    /// Returns the client for the next log.
    pub(super) fn reading(&self) -> &kube::Client {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % self.reading.len().max(1);
        self.reading.get(turn).unwrap_or(&self.client)
    }

    /// The watched namespaces; none means all.
    pub fn namespaces(&self) -> &[String] {
        &self.namespaces
    }
}
