//! Carries out launches and kills that are due. This process's own requests wake the loop; a slow poll finds those of others.

mod attempts;
mod rights;
mod under_way;
pub mod work;

use std::{sync::Arc, time::Duration};

use tokio::{sync::Mutex, task::JoinSet, time::sleep};
use tokio_util::sync::CancellationToken;

use self::under_way::UnderWay;
use crate::{
    effects::{Effects, circuit_breaker::Restricted},
    encryption::EncryptionKeys,
    health::Health,
    ports::Attachments,
    wakeups::Wakeups,
};
use sparkgate_cluster::Cluster;
use sparkgate_common::error::error_chain;
use sparkgate_metrics::metrics;
use sparkgate_store::Store;
use sparkgate_submission::Installation;

/// Maximum number of submissions that are worked on concurrently.
const SLOTS: usize = 192;
/// Under load, claims wait until this many slots are free, so that one statement claims for all of them.
const BATCH: usize = 32;
/// How long a request of another replica, or an expired claim, may wait.
const POLL: Duration = Duration::from_secs(1);

/// Claims launches and kills, and carries them out.
pub struct Launcher {
    store: Store,
    cluster: Cluster,
    /// The installation that owns the pods of this database.
    installation: Arc<Installation>,
    health: Arc<Health>,
    wakeups: Arc<Wakeups>,
    effects: Arc<Effects>,
    keys: Arc<EncryptionKeys>,
    attachments: Arc<Attachments>,
    /// The submissions that this process works on under a claim.
    busy: Mutex<UnderWay>,
}

impl Launcher {
    #[expect(clippy::too_many_arguments, reason = "each is a part of its own")]
    pub fn new(
        store: Store,
        cluster: Cluster,
        installation: Arc<Installation>,
        health: Arc<Health>,
        wakeups: Arc<Wakeups>,
        effects: Arc<Effects>,
        keys: Arc<EncryptionKeys>,
        attachments: Arc<Attachments>,
    ) -> Self {
        Self { store, cluster, installation, health, wakeups, effects, keys, attachments, busy: Mutex::default() }
    }

    /// Returns the namespaces whose circuit breaker is not closed.
    pub fn open_breakers(&self) -> Vec<String> {
        let Restricted { open, half_open } = self.effects.breakers.restricted();
        open.into_iter().chain(half_open.into_iter().map(|(namespace, _)| namespace)).collect()
    }

    /// Runs until `stop`, then finishes the work that has started.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        let mut under_way = JoinSet::new();
        while !stop.is_cancelled() {
            metrics().launches_in_progress.set(under_way.len() as f64);
            let free = SLOTS - under_way.len();
            if free >= BATCH {
                match self.claim(free).await {
                    Ok(claimed) => {
                        for work in claimed {
                            let launcher = self.clone();
                            // Boxed, because Tokio moves a future about a dozen times, and this one has many kilobytes.
                            under_way.spawn(Box::pin(async move { launcher.carry_out(work).await }));
                        }
                    }
                    Err(error) => tracing::warn!("claiming work failed: {}", error_chain(&error)),
                }
            }
            tokio::select! {
                () = stop.cancelled() => {}
                Some(_) = under_way.join_next() => {}
                () = self.wakeups.work_may_be_due() => {}
                () = sleep(POLL) => {}
            }
        }
        while under_way.join_next().await.is_some() {}
    }
}
