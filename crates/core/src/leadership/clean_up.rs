//! Clean-up of submissions that ended long enough ago: first in the cluster, then in the database.

use std::{future::ready, sync::Arc, time::Duration};

use futures::future::join;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::{
    Leadership,
    batch::ROUND,
    ended_pods::{Ended, PodsUnderWay},
};
use sparkgate_common::error::{Error, error_chain};
use sparkgate_store::EndedWithTenants;

/// Pause between two rounds, unless more is due right now.
const PERIOD: Duration = Duration::from_secs(30);
/// How many changes of the bytes of records a round adds up.
const ADDED_UP: u32 = 10_000;

/// Retention times after the end of a submission; `None` means forever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CleanUpSettings {
    /// For the driver pod, with its log and all objects that it owns.
    pub finished_pod_ttl: Option<Duration>,
    /// For the row, its events and its executors; the pod is deleted before the row.
    pub retention: Option<Duration>,
}

impl CleanUpSettings {
    /// Returns how long a pod is kept: it is deleted before its row.
    fn pod_age(&self) -> Option<Duration> {
        self.finished_pod_ttl.into_iter().chain(self.retention).min()
    }
}

/// The result of one round.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CleanedUp {
    /// Driver pods that were deleted, or already gone.
    pub pods: usize,
    /// Driver pods that could not be deleted; the clean-up retries them later.
    pub put_off: usize,
    pub submissions: u64,
    /// More may be due right now.
    pub more: bool,
}

impl CleanedUp {
    fn log(self) {
        let Self { pods, put_off, submissions, .. } = self;
        if pods > 0 || put_off > 0 || submissions > 0 {
            tracing::info!(pods, put_off, submissions, "clean-up round finished");
        }
    }
}

/// The results of a round of the rows.
struct RowRound {
    /// Whether more may be settled.
    settled: Result<bool, Error>,
    /// How many submissions were deleted, and whether there may be more.
    deleted: Result<(u64, bool), Error>,
}

impl Leadership {
    /// Runs one bounded round: usage and rows, and the pods that are due now. None of them waits for another one to succeed. Concurrent
    /// rounds, also of several processes, are safe. Deletes nothing while the clock of the database is doubted.
    ///
    /// # Errors
    /// The database fails, or the cluster answers no call.
    pub async fn clean_up(self: &Arc<Self>, settings: &CleanUpSettings) -> Result<CleanedUp, Error> {
        let RowRound { settled, deleted } = self.row_round(*settings).await;
        let pods = self.pod_round(*settings).await;
        let (settled, (submissions, more), pods) = (settled?, deleted?, pods?);
        Ok(CleanedUp { submissions, more: settled || more || pods.more, ..pods })
    }

    /// Runs rounds while this replica holds the lease, until `stop`.
    pub async fn run_clean_up(self: Arc<Self>, settings: CleanUpSettings, stop: CancellationToken) {
        self.leases.while_held("clean-up", &stop, || ready(Ok(true)), || self.clean_up_rounds(settings)).await;
    }

    async fn clean_up_rounds(self: &Arc<Self>, settings: CleanUpSettings) {
        join(self.row_rounds(settings), self.pod_rounds(settings)).await;
    }

    async fn row_rounds(&self, settings: CleanUpSettings) {
        loop {
            let RowRound { settled, deleted } = self.row_round(settings).await;
            if let Ok((submissions, _)) = deleted {
                CleanedUp { submissions, ..CleanedUp::default() }.log();
            }
            let mut more = false;
            for round in [settled, deleted.map(|(_, more)| more)] {
                match round {
                    Ok(is_more) => more |= is_more,
                    Err(error) => failed(&error),
                }
            }
            if !more {
                sleep(PERIOD).await;
            }
        }
    }

    /// Deletes the pods of each namespace on its own: one that answers late delays no other.
    async fn pod_rounds(self: &Arc<Self>, settings: CleanUpSettings) {
        let mut pods = PodsUnderWay::new(self, settings.pod_age());
        loop {
            if let Err(error) = pods.begin_due().await {
                failed(&error);
            }
            // Another round finds what is due then.
            let ended = timeout(PERIOD, pods.next_ended()).await;
            match ended {
                Ok(Some(Ok(Ended { deleted, put_off, .. }))) => {
                    CleanedUp { pods: deleted, put_off, ..CleanedUp::default() }.log();
                }
                Ok(Some(Err(error))) => {
                    failed(&error);
                    sleep(PERIOD).await;
                }
                Ok(None) => sleep(PERIOD).await,
                Err(_) => {}
            }
        }
    }

    /// Settles usage and deletes rows in turns: both advance the version of what is settled, and the later of two concurrent ones changes
    /// nothing.
    async fn row_round(&self, settings: CleanUpSettings) -> RowRound {
        let settled = self.settle_ended().await;
        let deleted = self.delete_ended_rows(settings).await;
        if let Err(error) = self.store.add_up_record_bytes(ADDED_UP).await {
            failed(&error.into());
        }
        if let Err(error) = self.end_with_tenants().await {
            failed(&error);
        }
        RowRound { settled, deleted }
    }

    /// Ends what belongs to tenants that the access file has no more.
    async fn end_with_tenants(&self) -> Result<(), Error> {
        let tenancy = self.access.current();
        // Without a file, callers aren't authenticated, and nothing says which tenants there are.
        if tenancy.access().authentication().is_none() {
            return Ok(());
        }
        let Some(until) = self.clock.believed_until("clean-up").await? else { return Ok(()) };
        let tenants: Vec<_> = tenancy.access().tenants().map(|tenant| tenant.name.as_str()).collect();
        let EndedWithTenants { webhooks, keys } = self.store.end_with_tenants(&tenants, Some(until)).await?;
        if webhooks > 0 || keys > 0 {
            tracing::info!(webhooks, keys, "webhooks deleted and API keys revoked with their tenants");
        }
        Ok(())
    }

    /// Deletes the pods that are due, of all namespaces concurrently.
    async fn pod_round(self: &Arc<Self>, settings: CleanUpSettings) -> Result<CleanedUp, Error> {
        let mut pods = PodsUnderWay::new(self, settings.pod_age());
        let due = pods.begin_due().await?;
        let (mut done, mut unanswered) = (CleanedUp { more: due >= ROUND as usize, ..CleanedUp::default() }, None);
        // A namespace may be at fault itself; if none answers, the cluster is down.
        let mut any_answered = false;
        let mut namespaces = Vec::new();
        while let Some(ended) = pods.next_ended().await {
            namespaces.push(ended);
        }
        for ended in namespaces {
            let ended = ended?;
            done.pods += ended.deleted;
            done.put_off += ended.put_off;
            any_answered |= ended.deleted > 0 || ended.unanswered.is_none();
            unanswered = unanswered.or(ended.unanswered);
        }
        match unanswered {
            Some(error) if !any_answered => Err(error.into()),
            _ => Ok(done),
        }
    }

    /// Settles the usage of ended submissions. Returns whether there may be more.
    async fn settle_ended(&self) -> Result<bool, Error> {
        let Some(until) = self.clock.believed_until("clean-up").await? else { return Ok(false) };
        let (_, more) = self.settled_at_once.run(|limit| self.store.settle_usage(limit, Some(until))).await?;
        Ok(more)
    }

    /// Deletes the rows of submissions that ended long ago. Returns how many, and whether there may be more.
    async fn delete_ended_rows(&self, settings: CleanUpSettings) -> Result<(u64, bool), Error> {
        let Some(age) = settings.retention else { return Ok((0, false)) };
        let Some(until) = self.clock.believed_until("clean-up").await? else { return Ok((0, false)) };
        Ok(self.deleted_at_once.run(|limit| self.store.delete_ended(age, limit, Some(until))).await?)
    }
}

fn failed(error: &Error) {
    tracing::warn!(retry_in = ?PERIOD, "clean-up failed: {}", error_chain(error));
}
