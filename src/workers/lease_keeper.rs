//! Renews this replica's leases while the process runs.

use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;

use crate::service::{Gateway, chain};

/// A renewal that takes longer is canceled, so that there is time for another before the leases expire.
const LIMIT: Duration = Duration::from_secs(1);

/// Runs until `stop`, then releases all leases.
pub async fn lease_keeper(gateway: Gateway, stop: CancellationToken) {
    let mut due = interval(Gateway::RENEWAL);
    due.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while stop.run_until_cancelled(due.tick()).await.is_some() {
        match timeout(LIMIT, gateway.keep_leases()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!("renewing this replica's leases failed: {}", chain(&error)),
            Err(_) => tracing::warn!("renewing this replica's leases failed: no answer within {LIMIT:?}"),
        }
    }
    if let Ok(Err(error)) = timeout(LIMIT, gateway.leave()).await {
        tracing::warn!("releasing this replica's leases failed: {}", chain(&error));
    }
}
