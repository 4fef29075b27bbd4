//! Carries out launches and kills that are due. This process's own requests wake the worker; a slow poll finds those of others.

use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::service::{Gateway, chain};

/// Maximum number of submissions that are worked on concurrently.
const SLOTS: usize = 192;
/// Under load, claims wait until this many slots are free, so that one statement claims for all of them.
const BATCH: usize = 16;
/// How long a request of another replica, or an expired claim, may wait.
const POLL: Duration = Duration::from_secs(1);

/// Runs until `stop`, then finishes the work that has started.
pub async fn launcher(gateway: Gateway, stop: CancellationToken) {
    let mut under_way = JoinSet::new();
    while !stop.is_cancelled() {
        let free = SLOTS - under_way.len();
        if free >= BATCH {
            match gateway.claim(free).await {
                Ok(claimed) => {
                    for work in claimed {
                        let gateway = gateway.clone();
                        // Boxed, because Tokio moves a future about a dozen times, and this one has many kilobytes.
                        under_way.spawn(Box::pin(async move { gateway.carry_out(work).await }));
                    }
                }
                Err(error) => tracing::warn!("claiming work failed: {}", chain(&error)),
            }
        }
        tokio::select! {
            () = stop.cancelled() => {}
            Some(_) = under_way.join_next() => {}
            () = gateway.work_may_be_due() => {}
            () = tokio::time::sleep(POLL) => {}
        }
    }
    while under_way.join_next().await.is_some() {}
}
