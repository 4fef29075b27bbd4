//! Keeps this replica's leases, as long as it lives.

use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;

use crate::service::{Gateway, chain};

/// One that takes longer is given up, so that there is time for another before the leases run out.
const LIMIT: Duration = Duration::from_secs(1);

/// Runs until `stop`, then gives everything back.
pub async fn lease_keeper(gateway: Gateway, stop: CancellationToken) {
    let mut due = interval(Gateway::RENEWAL);
    due.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while stop.run_until_cancelled(due.tick()).await.is_some() {
        match timeout(LIMIT, gateway.keep_leases()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!("keeping this replica's leases: {}", chain(&error)),
            Err(_) => tracing::warn!("keeping this replica's leases: no answer within {LIMIT:?}"),
        }
    }
    if let Ok(Err(error)) = timeout(LIMIT, gateway.leave()).await {
        tracing::warn!("giving this replica's leases back: {}", chain(&error));
    }
}
