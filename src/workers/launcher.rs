//! Launches and kills what is due, woken by this process's own requests and by a slow clock for everybody else's.

use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::service::{Gateway, chain};

/// Submissions that are worked on at once.
const SLOTS: usize = 192;
/// While there is plenty to do, claims wait until so many slots are free: one statement for all of them.
const BATCH: usize = 16;
/// How long a request of another replica, or a claim that ran out, may wait.
const POLL: Duration = Duration::from_secs(1);

/// Runs until `stop`; work that has begun is finished.
pub async fn launcher(gateway: Gateway, stop: CancellationToken) {
    let mut under_way = JoinSet::new();
    while !stop.is_cancelled() {
        let free = SLOTS - under_way.len();
        if free >= BATCH {
            match gateway.claim(free).await {
                Ok(claimed) => {
                    for work in claimed {
                        let gateway = gateway.clone();
                        // Tokio moves a future about a dozen times, and this one has many kilobytes.
                        under_way.spawn(Box::pin(async move { gateway.carry_out(work).await }));
                    }
                }
                Err(error) => tracing::warn!("looking for work: {}", chain(&error)),
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
