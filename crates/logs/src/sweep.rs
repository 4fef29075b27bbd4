//! The clean-up of stored logs, by one replica for all.

use std::time::Duration;

use chrono::Utc;
use futures::{FutureExt, future::BoxFuture};
use tokio::time::sleep;

use super::DriverLogs;
use sparkgate_common::error::error_chain;
use sparkgate_core::{leadership::clock::DatabaseClock, ports::Sweep};

/// Pause between two comparisons of the store with the database.
const SWEEP: Duration = Duration::from_secs(3600);
/// Pause after one that failed.
const RETRY: Duration = Duration::from_secs(300);

/// The logs of deleted records go, whenever those were deleted: no clock decides.
impl Sweep for DriverLogs {
    fn lease(&self) -> &'static str {
        "logs"
    }

    fn is_needed(&self) -> bool {
        self.are_stored()
    }

    fn rounds<'a>(&'a self, _: &'a DatabaseClock) -> BoxFuture<'a, ()> {
        self.sweeps().boxed()
    }
}

impl DriverLogs {
    async fn sweeps(&self) {
        loop {
            let pause = match self.sweep(Utc::now()).await {
                Ok(0) => SWEEP,
                Ok(submissions) => {
                    tracing::info!(submissions, "logs of deleted submissions deleted");
                    SWEEP
                }
                Err(error) => {
                    tracing::warn!(retry_in = ?RETRY, "clean-up of logs failed: {}", error_chain(&error));
                    RETRY
                }
            };
            sleep(pause).await;
        }
    }
}
