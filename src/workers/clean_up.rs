//! Deletes submissions that ended long enough ago, round by round.

use std::{future::ready, time::Duration};

use tokio_util::sync::CancellationToken;

use super::singleton::singleton;
use crate::service::{CleanUpSettings, CleanedUp, Gateway, chain};

/// Pause between two rounds, unless more is due right now.
const PERIOD: Duration = Duration::from_secs(30);

/// Runs rounds while this replica holds the lease, until `stop`.
pub async fn clean_up(gateway: Gateway, settings: CleanUpSettings, stop: CancellationToken) {
    if settings.finished_pod_ttl.is_none() && settings.retention.is_none() {
        return stop.cancelled().await;
    }
    singleton(&gateway, "clean-up", &stop, || ready(Ok(true)), || rounds(&gateway, &settings)).await;
}

async fn rounds(gateway: &Gateway, settings: &CleanUpSettings) {
    loop {
        let more = match gateway.clean_up(settings).await {
            Ok(CleanedUp { pods: 0, put_off: 0, submissions: 0, .. }) => false,
            Ok(CleanedUp { pods, put_off, submissions, more }) => {
                tracing::info!(pods, put_off, submissions, "clean-up round finished");
                more
            }
            Err(error) => {
                tracing::warn!(retry_in = ?PERIOD, "clean-up failed: {}", chain(&error));
                false
            }
        };
        if !more {
            tokio::time::sleep(PERIOD).await;
        }
    }
}
