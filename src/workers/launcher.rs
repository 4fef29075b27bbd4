//! Launches and kills what is due, woken by this process's own requests and by a slow clock for everybody else's.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::service::{Gateway, chain};

/// How long a request of another replica, or a claim that ran out, may wait.
const POLL: Duration = Duration::from_secs(1);

/// Runs until `stop`; work that has begun is finished.
pub async fn launcher(gateway: Gateway, stop: CancellationToken) {
    while !stop.is_cancelled() {
        match gateway.work().await {
            Ok(0) => {}
            // There may be more.
            Ok(_) => continue,
            Err(error) => tracing::warn!("looking for work: {}", chain(&error)),
        }
        tokio::select! {
            () = stop.cancelled() => {}
            () = gateway.work_may_be_due() => {}
            () = tokio::time::sleep(POLL) => {}
        }
    }
}
