//! What the tasks of all pods share.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tokio::sync::Semaphore;

use crate::stored::Stored;
use sparkgate_cluster::Cluster;
use sparkgate_common::shares::Shares;
use sparkgate_store::Store;
use sparkgate_submission::SubmissionId;

/// Maximum number of containers of one namespace whose logs are followed; of all, twice as many. Each holds a stream of
/// the API server on connections of their own (`Cluster::for_stored_logs`), and a part of a log in memory. Others wait.
const STREAMS: usize = 300;
/// The same for containers that have ended, or are about to: what they wrote is read at once.
const ENDED: usize = 16;
/// Parts that are stored at the same time.
const PUTS: usize = 32;
/// Pods whose submission is looked for at the same time.
const CHECKS: usize = 4;

/// How far a container is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    Running,
    /// It is being stopped.
    Ending,
    /// Its pod is gone, and its end was not observed: its node may have been lost.
    Gone,
    /// Its end was observed: it writes nothing more.
    Ended,
}

/// A container whose log is stored.
#[derive(Debug, Clone)]
pub(super) struct Source {
    pub(super) submission: SubmissionId,
    pub(super) attempt: i32,
    /// `None` for the driver.
    pub(super) executor: Option<i64>,
    pub(super) pod: String,
    pub(super) uid: String,
}

/// The database, the cluster, the store, and the limits of their use.
pub(super) struct Parts {
    pub(super) store: Store,
    pub(super) cluster: Cluster,
    pub(super) stored: Arc<Stored>,
    pub(super) streams: Shares,
    pub(super) ended: Shares,
    pub(super) puts: Semaphore,
    pub(super) checks: Semaphore,
    waiting: AtomicUsize,
}

/// Counts a log that waits, until it is dropped.
pub(super) struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Parts {
    pub(super) fn new(store: Store, cluster: Cluster, stored: Arc<Stored>) -> Self {
        let (streams, ended) = (Shares::new(STREAMS), Shares::new(ENDED));
        let (puts, checks, waiting) = (Semaphore::new(PUTS), Semaphore::new(CHECKS), AtomicUsize::new(0));
        Self { store, cluster, stored, streams, ended, puts, checks, waiting }
    }

    pub(super) fn wait(&self) -> Waiting<'_> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        Waiting(&self.waiting)
    }

    /// Returns how many logs are followed, and how many wait for that.
    pub(super) fn streams(&self) -> (usize, usize) {
        (self.streams.held() + self.ended.held(), self.waiting.load(Ordering::Relaxed))
    }
}
