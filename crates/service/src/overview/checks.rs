//! The checks of `sparkgate doctor` that a gateway can make while it serves: what it needs of the cluster, and its keys. Pages show
//! the last results; one round at a time runs beside the requests, and not more often than every few minutes.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use chrono::{DateTime, Utc};
use tokio::time::{Instant, timeout};

use crate::doctor::{
    Defaults, Finding, check_admission, check_api_server, check_encryption, check_home, check_kueue, check_namespaces,
    check_pods, check_service_accounts,
};
use sparkgate_cluster::Cluster;
use sparkgate_core::encryption::EncryptionKeys;
use sparkgate_kueue::KueueQueues;
use sparkgate_store::Store;
use sparkgate_tenancy::access_file::AccessFile;

/// How long results are shown before the next round.
const FRESH: Duration = Duration::from_secs(300);
/// The longest time of a round.
const LONGEST: Duration = Duration::from_secs(60);

/// The results of a round of checks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    pub at: DateTime<Utc>,
    pub findings: Vec<Finding>,
    /// Whether the round ended in time. If not, some checks are missing.
    pub is_whole: bool,
}

/// The checks with their last results.
pub(super) struct Checks {
    store: Store,
    cluster: Cluster,
    access: Arc<AccessFile>,
    keys: Arc<EncryptionKeys>,
    kueue: KueueQueues,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    last: Option<(Instant, Arc<Checked>)>,
    is_running: bool,
}

impl Checks {
    pub(super) fn new(
        store: Store,
        cluster: Cluster,
        access: Arc<AccessFile>,
        keys: Arc<EncryptionKeys>,
        kueue: KueueQueues,
    ) -> Self {
        Self { store, cluster, access, keys, kueue, state: Mutex::default() }
    }

    /// Returns the last results, if there are any yet, and begins another round if they are old.
    pub(super) fn last(self: &Arc<Self>) -> Option<Arc<Checked>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let is_fresh = state.last.as_ref().is_some_and(|(at, _)| at.elapsed() < FRESH);
        if !is_fresh && !state.is_running {
            state.is_running = true;
            let round = Round(self.clone());
            tokio::spawn(async move { round.run().await });
        }
        state.last.as_ref().map(|(_, checked)| checked.clone())
    }

    async fn run(&self, findings: &mut Vec<Finding>) {
        findings.push(check_encryption(&self.store, &self.keys).await);
        let defaults = Defaults::new(&self.access);
        findings.extend(defaults.check_images());
        if !check_api_server(&self.cluster, "the configured address", findings).await {
            return;
        }
        check_namespaces(&self.cluster, findings).await;
        check_service_accounts(&self.cluster, &defaults, findings).await;
        check_kueue(&self.cluster, self.access.current().access(), &self.kueue, findings).await;
        check_admission(&self.cluster, self.access.clone(), findings).await;
        findings.push(check_home(&self.store, &self.cluster).await);
        check_pods(&self.store, &self.cluster, findings).await;
    }
}

/// A round, which ends for others however it ends.
struct Round(Arc<Checks>);

impl Round {
    async fn run(self) {
        let mut findings = Vec::new();
        let is_whole = timeout(LONGEST, self.0.run(&mut findings)).await.is_ok();
        let checked = Arc::new(Checked { at: Utc::now(), findings, is_whole });
        let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.last = Some((Instant::now(), checked));
    }
}

impl Drop for Round {
    fn drop(&mut self) {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner).is_running = false;
    }
}
