//! Use cases of Sparkgate: the only layer that makes decisions. HTTP and the workers call it; it calls the store, the cluster
//! and Spark's contract.

mod attempts;
mod capture;
mod circuit_breaker;
mod clean_up;
mod clock;
mod create;
mod deadlines;
mod detached;
mod error;
mod events;
mod executors;
mod health;
mod home_cluster;
mod kill;
mod leases;
mod limits;
mod logs;
mod observe;
mod options;
mod perform;
mod plan;
mod replica;
mod set_aside;
mod settings;
mod shares;
mod side_cars;
mod status;
mod submissions;
mod submitter;
mod why;
mod work;

use std::{ops::Deref, sync::Arc};

use tokio::sync::{Mutex, Notify};
use tokio_util::sync::CancellationToken;

use circuit_breaker::CircuitBreakers;
use clock::DatabaseClock;
use events::Hub;
use home_cluster::HomeCluster;
use leases::Leases;
use shares::Shares;

use crate::{cluster::Cluster, spark::SparkVersion, store::Store, submission::Installation};

pub use crate::store::{AttemptRecord, Filter, Found, KillAnswer, Page, Submission};

pub use clean_up::{CleanUpSettings, CleanedUp};
pub use create::Accepted;
pub use error::{Error, chain};
pub use events::{Change, ChangeFilter, Changes, Interrupted, Published, Subscription, Target, Told, Waited};
pub use executors::Executors;
pub use health::{Readiness, WatchHealth};
pub use home_cluster::{HomeClusterError, adopt_cluster};
pub use logs::{Log, LogRequest, LogSource, LogStream, NoLog};
pub use options::{Caps, Retries, SubmissionOptions};
pub use plan::{AppliedDefault, Plan};
pub use replica::ALL;
pub use set_aside::SetAside;
pub use settings::{Resolved, Settings, SparkSettings};
pub use status::{Status, Worker};
pub use submitter::{Submitter, SubmitterError};
pub use why::Why;
pub use work::Work;

/// The gateway's use cases on one database and one cluster. Cheap to clone.
#[derive(Clone)]
pub struct Gateway(Arc<Parts>);

/// State that all clones of a [`Gateway`] share.
pub struct Parts {
    store: Store,
    cluster: Cluster,
    spark: SparkSettings,
    /// The installation that owns the pods of this database.
    installation: Installation,
    /// Whether a finalizer keeps driver pods until their outcome is recorded.
    outcome_finalizer: bool,
    caps: Caps,
    leases: Leases,
    clock: DatabaseClock,
    /// The submissions that this process works on under a claim.
    busy: Mutex<work::UnderWay>,
    breakers: CircuitBreakers,
    home: HomeCluster,
    /// How much of the end of a driver's log is archived, in bytes.
    kept_log: usize,
    /// Limits the logs that are read concurrently.
    readers: Shares,
    /// Limits the concurrent lists of events.
    event_lists: Shares,
    /// Limits the logs that are read before the end of their driver is recorded.
    early: Shares,
    /// Cancelled when this process shuts down, to end the streams to clients.
    closing: CancellationToken,
    /// Limits concurrent writes to pods after their outcome is committed.
    finishing: Shares,
    /// Notified when there may be something to launch or to kill.
    wake: Notify,
    watch: WatchHealth,
    /// The subscribers of this replica.
    events: Hub,
    /// Observations of executors that are not written to the database yet.
    pub executors: Executors,
    /// Observations of submissions whose rows can't be written at the moment.
    pub set_aside: SetAside,
    /// Pods that wait for their sidecars to end.
    side_cars: side_cars::SideCars,
}

/// Maximum number of pods of one namespace that are written to concurrently after their outcome is committed.
const FINISHING: usize = 32;

impl Deref for Gateway {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

impl Gateway {
    /// Creates the gateway.
    ///
    /// # Errors
    /// The id of the installation can't be read from the database.
    pub async fn new(store: Store, cluster: Cluster, settings: Settings) -> Result<Self, Error> {
        let installation = store.installation().await?;
        let watch = WatchHealth::new(cluster.namespaces());
        Ok(Self(Arc::new(Parts {
            leases: Leases::new(store.clone()),
            clock: DatabaseClock::default(),
            store,
            cluster: cluster.of_installation(installation.clone()),
            spark: settings.spark,
            installation,
            outcome_finalizer: settings.outcome_finalizer,
            kept_log: settings.kept_log,
            readers: Shares::new(logs::READERS),
            event_lists: Shares::new(capture::EVENT_LISTS),
            early: Shares::new(capture::EARLY),
            closing: CancellationToken::new(),
            caps: settings.caps,
            busy: Mutex::default(),
            breakers: CircuitBreakers::default(),
            home: HomeCluster::default(),
            finishing: Shares::new(FINISHING),
            wake: Notify::new(),
            watch,
            events: Hub::default(),
            executors: Executors::default(),
            set_aside: SetAside::default(),
            side_cars: side_cars::SideCars::default(),
        })))
    }

    /// Returns the id in the label that marks this installation's pods.
    pub fn instance(&self) -> uuid::Uuid {
        self.installation.id
    }

    /// Returns the Spark release whose contract drivers follow and that replies name.
    pub fn spark_version(&self) -> SparkVersion {
        self.spark.version
    }

    /// Returns the cluster, for work that doesn't concern a submission.
    pub(crate) fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Waits until there may be work to claim. A notification between two calls isn't lost.
    pub async fn work_may_be_due(&self) {
        self.wake.notified().await;
    }
}
