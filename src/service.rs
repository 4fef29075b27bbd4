//! What Sparkgate does: the only layer that decides. HTTP and the workers call it; it calls the store, the cluster and
//! Spark's contract.

mod clean_up;
mod create;
mod error;
mod executors;
mod health;
mod kill;
mod launch;
mod limits;
mod observe;
mod settings;
mod status;
mod submitter;
mod work;

use std::sync::Arc;

use tokio::sync::Notify;
use uuid::Uuid;

use crate::{cluster::Cluster, spark::SparkVersion, store::Store};

pub use clean_up::{CleanUpSettings, CleanedUp};
pub use error::{Error, chain};
pub use executors::Executors;
pub use health::{Readiness, WatchHealth};
pub use settings::SparkSettings;
pub use status::{Status, Worker};
pub use submitter::{Submitter, SubmitterError};
pub use work::Work;

/// The gateway's use cases on one database and one cluster. Cheap to clone.
#[derive(Clone)]
pub struct Gateway {
    store: Store,
    cluster: Cluster,
    spark: Arc<SparkSettings>,
    /// Names this process in claims.
    worker: Uuid,
    /// Rung when there may be something to launch or to kill.
    wake: Arc<Notify>,
    watch: Arc<WatchHealth>,
    /// What the watch shows of executors, on its way to the database.
    pub executors: Arc<Executors>,
}

impl Gateway {
    pub fn new(store: Store, cluster: Cluster, spark: SparkSettings) -> Self {
        let watch = WatchHealth::new(cluster.namespaces().len().max(1));
        Self {
            store,
            cluster,
            spark: Arc::new(spark),
            worker: Uuid::new_v4(),
            wake: Arc::new(Notify::new()),
            watch: Arc::new(watch),
            executors: Arc::default(),
        }
    }

    /// The release whose contract drivers follow and that replies name.
    pub fn spark_version(&self) -> SparkVersion {
        self.spark.version
    }

    /// Waits until there may be work to claim. A ring that comes between two calls isn't lost.
    pub async fn work_may_be_due(&self) {
        self.wake.notified().await;
    }
}
