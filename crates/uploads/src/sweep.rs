//! The clean-up of files, by one replica for all.

use std::time::Duration;

use chrono::Utc;
use futures::{FutureExt, future::BoxFuture};
use tokio::time::{Instant, sleep};

use super::{Files, clean_up::SweptFiles};
use sparkgate_common::error::{Error, error_chain};
use sparkgate_core::{leadership::clock::DatabaseClock, ports::Sweep};

/// Pause between two rounds, unless more is due right now.
const PERIOD: Duration = Duration::from_secs(30);
/// Pause between two sweeps, which list all objects.
const SWEEP: Duration = Duration::from_secs(3600);

impl Sweep for Files {
    fn lease(&self) -> &'static str {
        "files"
    }

    fn is_needed(&self) -> bool {
        self.are_kept()
    }

    fn rounds<'a>(&'a self, clock: &'a DatabaseClock) -> BoxFuture<'a, ()> {
        self.clean_up_rounds(clock).boxed()
    }
}

impl Files {
    async fn clean_up_rounds(&self, clock: &DatabaseClock) {
        let mut last_sweep: Option<Instant> = None;
        loop {
            let is_sweep = last_sweep.is_none_or(|at| at.elapsed() >= SWEEP);
            let round = self.round(clock, is_sweep).await;
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
    async fn round(&self, clock: &DatabaseClock, is_sweep: bool) -> Result<SweptFiles, Error> {
        let Some(until) = clock.believed_until("clean-up of files").await? else {
            return Ok(SweptFiles::default());
        };
        let mut swept = self.clean_up(Some(until)).await?;
        if is_sweep {
            swept.orphans = self.sweep(Utc::now()).await?.orphans;
        }
        Ok(swept)
    }
}
