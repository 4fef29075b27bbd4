//! The clean-up of files, by one replica for all.

use std::{future::ready, sync::Arc, time::Duration};

use chrono::Utc;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::Leadership;
use crate::service::{
    error::{Error, error_chain},
    files::clean_up::SweptFiles,
};

/// Pause between two rounds, unless more is due right now.
const PERIOD: Duration = Duration::from_secs(30);
/// Pause between two sweeps, which list all objects.
const SWEEP: Duration = Duration::from_secs(3600);

impl Leadership {
    /// Runs rounds of the clean-up of files while this replica holds the lease, until `stop`.
    pub async fn run_clean_up_of_files(self: Arc<Self>, stop: CancellationToken) {
        if !self.files.are_kept() {
            return stop.cancelled().await;
        }
        self.leases.while_held("files", &stop, || ready(Ok(true)), || self.rounds_of_files()).await;
    }

    async fn rounds_of_files(&self) {
        let mut last_sweep: Option<Instant> = None;
        loop {
            let is_sweep = last_sweep.is_none_or(|at| at.elapsed() >= SWEEP);
            let round = self.round_of_files(is_sweep).await;
            if is_sweep && round.is_ok() {
                last_sweep = Some(Instant::now());
            }
            let more = match round {
                Ok(SweptFiles { files: 0, uploads: 0, orphans: 0, more }) => more,
                Ok(SweptFiles { files, uploads, orphans, more }) => {
                    tracing::info!(files, uploads, orphans, "unused files deleted");
                    more
                }
                Err(error) => {
                    tracing::warn!(retry_in = ?PERIOD, "clean-up of files failed: {}", error_chain(&error));
                    false
                }
            };
            if !more {
                sleep(PERIOD).await;
            }
        }
    }

    /// Runs one round. Nothing is deleted while the clock of the database is doubted.
    async fn round_of_files(&self, is_sweep: bool) -> Result<SweptFiles, Error> {
        let Some(until) = self.clock.believed_until("clean-up of files").await? else {
            return Ok(SweptFiles::default());
        };
        let mut swept = self.files.clean_up(Some(until)).await?;
        if is_sweep {
            swept.orphans = self.files.sweep(Utc::now()).await?.orphans;
        }
        Ok(swept)
    }
}
