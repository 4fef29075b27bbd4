//! Deletes what ended long enough ago, round by round.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::service::{CleanUpSettings, CleanedUp, Gateway, chain};

/// Between two rounds, unless there is more to do at once.
const PERIOD: Duration = Duration::from_secs(30);

/// Runs until `stop`.
pub async fn clean_up(gateway: Gateway, settings: CleanUpSettings, stop: CancellationToken) {
    if settings.finished_pod_ttl.is_none() && settings.retention.is_none() {
        return stop.cancelled().await;
    }
    loop {
        let Some(round) = stop.run_until_cancelled(gateway.clean_up(&settings)).await else { return };
        let more = match round {
            Ok(CleanedUp { pods: 0, put_off: 0, submissions: 0, .. }) => false,
            Ok(CleanedUp { pods, put_off, submissions, more }) => {
                tracing::info!(pods, put_off, submissions, "cleaned up");
                more
            }
            Err(error) => {
                tracing::warn!(retry_in = ?PERIOD, "cleaning up: {}", chain(&error));
                false
            }
        };
        if !more && stop.run_until_cancelled(tokio::time::sleep(PERIOD)).await.is_none() {
            return;
        }
    }
}
