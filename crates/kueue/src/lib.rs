//! Queues of Kueue: an attempt is launched when Kueue has admitted the `Workload` that the gateway creates for it.
//!
//! | part | work |
//! |---|---|
//! | `launch` | under the claim of an attempt: creates its `Workload`, holds the launch until it is admitted, places the pods as Kueue says, and deletes it while the namespace has no room for the driver |
//! | `follow` | one replica for all: asks again when Kueue has decided, tells it that pods run, ends drivers whose quota it takes back, deletes `Workload`s without pods |
//!
//! A `Workload` starts no driver: an attempt is launched only under its claim, which reads the `Workload` again. So one that is created
//! too late, or twice, or is lost, costs time or quota and never a second driver. `follow` works by what it finds in the cluster and in
//! the database, and remembers nothing that matters.
//!
//! A queue of the access file names its queue of Kueue, and so does the setting for all other submissions of a namespace. The file changes
//! while the gateway runs, so each launch and each round asks it again.

mod follow;
mod launch;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, Mutex},
    time::Instant,
};

use futures::{FutureExt, future::BoxFuture};
use tokio::sync::RwLock;

use sparkgate_access::{KueueQueue, Queue};
use sparkgate_cluster::{Cluster, Error as ClusterError, Manifest, kueue::Kueue as KueueApi};
use sparkgate_core::{
    leadership::clock::DatabaseClock,
    ports::{Attachment, Attempt, Resolution, Step, Sweep},
    wakeups::Wakeups,
};
use sparkgate_store::Store;
use sparkgate_submission::SubmissionId;
use sparkgate_tenancy::access_file::AccessFile;

/// The queues of Kueue that the setting names, by namespace.
pub type KueueQueues = BTreeMap<String, KueueQueue>;

/// Kueue, as an attachment of launches.
pub struct Kueue {
    store: Store,
    cluster: Cluster,
    access: Arc<AccessFile>,
    wakeups: Arc<Wakeups>,
    queues: KueueQueues,
    /// Kueue's API, once the API server has said that it serves it.
    api: RwLock<Option<KueueApi>>,
    /// When launches were lately asked to create another `Workload`, because theirs was deleted.
    asked: Mutex<HashMap<SubmissionId, Instant>>,
}

impl Kueue {
    /// Creates the attachment for these queues, and those of the access file.
    pub fn new(
        store: Store,
        cluster: Cluster,
        access: Arc<AccessFile>,
        wakeups: Arc<Wakeups>,
        queues: KueueQueues,
    ) -> Self {
        Self { store, cluster, access, wakeups, queues, api: RwLock::default(), asked: Mutex::default() }
    }

    /// Returns the queue of Kueue of an attempt: the one that its own queue names, or that of its namespace.
    fn queue_of(&self, attempt: &Attempt<'_>) -> Option<KueueQueue> {
        let tenancy = self.access.current();
        let own = attempt.queue.and_then(|name| tenancy.access().queues().get(name)?.kueue.clone());
        own.or_else(|| self.queues.get(attempt.namespace).cloned())
    }

    /// Returns the namespaces whose drivers may need a `Workload`.
    fn namespaces(&self) -> BTreeSet<String> {
        let tenancy = self.access.current();
        let of_file = |queue: &Queue| queue.kueue.is_some();
        let mut namespaces = tenancy.access().namespaces_of_queues(self.cluster.namespaces(), of_file);
        namespaces.retain(|namespace| self.cluster.watches(namespace));
        namespaces.extend(self.queues.keys().cloned());
        namespaces
    }

    /// Returns Kueue's API; `None` if the cluster doesn't serve it.
    async fn api(&self) -> Result<Option<KueueApi>, ClusterError> {
        if let Some(api) = &*self.api.read().await {
            return Ok(Some(api.clone()));
        }
        let found = self.cluster.kueue().await?;
        *self.api.write().await = found.clone();
        Ok(found)
    }

    /// Asks the API server again which version it serves, since a call failed.
    async fn forget_api(&self) {
        *self.api.write().await = None;
    }
}

impl Attachment for Kueue {
    fn resolve<'a>(&'a self, attempt: &'a Attempt<'a>, manifest: &'a mut Manifest) -> Step<'a, Resolution> {
        let queue = self.queue_of(attempt)?;
        Some(async move { Ok(self.admit(&queue, attempt, manifest).await) }.boxed())
    }

    fn withdraw<'a>(&'a self, attempt: &'a Attempt<'a>) -> Step<'a, ()> {
        self.queue_of(attempt)?;
        Some(async move { Ok(self.give_back(attempt).await?) }.boxed())
    }
}

impl Sweep for Kueue {
    fn lease(&self) -> &'static str {
        "kueue"
    }

    fn is_needed(&self) -> bool {
        !self.namespaces().is_empty()
    }

    fn rounds<'a>(&'a self, _: &'a DatabaseClock) -> BoxFuture<'a, ()> {
        self.follow().boxed()
    }
}
