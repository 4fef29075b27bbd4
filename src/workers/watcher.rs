//! Carries what the watch sees to the service.

use futures::StreamExt;
use tokio_util::sync::CancellationToken;

use crate::{cluster::Cluster, service::Gateway};

/// Runs until `stop`.
pub async fn watcher(gateway: Gateway, cluster: Cluster, stop: CancellationToken) {
    let mut stream = std::pin::pin!(cluster.watch_drivers());
    while let Some(Some(seen)) = stop.run_until_cancelled(stream.next()).await {
        gateway.seen(seen).await;
    }
}
