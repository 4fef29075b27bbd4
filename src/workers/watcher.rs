//! Carries what the watch sees to the service, and lets go of nothing that wasn't taken.

use std::time::Duration;

use futures::StreamExt;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::{
    cluster::{Cluster, Seen},
    service::{Gateway, chain},
};

/// All pods are listed anew this often, which repairs what a watch or we may have missed.
const RELIST: Duration = Duration::from_secs(600);

/// Runs until `stop`.
pub async fn watcher(gateway: Gateway, cluster: Cluster, stop: CancellationToken) {
    while !stop.is_cancelled() {
        let mut stream = std::pin::pin!(cluster.watch_drivers());
        let relist = Instant::now() + RELIST;
        loop {
            let seen = tokio::select! {
                () = stop.cancelled() => return,
                () = sleep_until(relist) => break,
                seen = stream.next() => seen,
            };
            let Some(seen) = seen else { break };
            if stop.run_until_cancelled(take(&gateway, &seen)).await.is_none() {
                return;
            }
        }
    }
}

/// Takes one thing in, again and again while the database or the cluster is away: it isn't shown a second time.
async fn take(gateway: &Gateway, seen: &Seen) {
    let mut pause = Duration::from_millis(100);
    while let Err(error) = gateway.seen(seen).await {
        tracing::warn!(retry_in = ?pause, "taking in what the watch saw: {}", chain(&error));
        sleep(pause).await;
        pause = (pause * 2).min(Duration::from_secs(5));
    }
}
