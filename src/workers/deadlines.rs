//! Kills submissions that exceed their timeouts, set by the client or the operator.

use std::{future::ready, time::Duration};

use tokio_util::sync::CancellationToken;

use super::singleton::singleton;
use crate::service::{Gateway, chain};

/// Pause between two rounds, unless more is due right now.
const PERIOD: Duration = Duration::from_secs(1);

/// Runs rounds while this replica holds the lease, until `stop`.
pub async fn deadlines(gateway: Gateway, stop: CancellationToken) {
    singleton(&gateway, "deadlines", &stop, || ready(Ok(true)), || rounds(&gateway)).await;
}

async fn rounds(gateway: &Gateway) {
    loop {
        let more = gateway.kill_overdue().await.unwrap_or_else(|error| {
            tracing::warn!(retry_in = ?PERIOD, "killing overdue submissions failed: {}", chain(&error));
            false
        });
        if !more {
            tokio::time::sleep(PERIOD).await;
        }
    }
}
