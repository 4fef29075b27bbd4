//! Carries what the watch sees to the service, and lets go of nothing that wasn't taken.

use std::time::Duration;

use futures::{StreamExt, stream};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::{
    cluster::{Cluster, Seen},
    service::{Gateway, chain},
};

/// Runs until `stop`.
pub async fn watcher(gateway: Gateway, cluster: Cluster, stop: CancellationToken) {
    let scopes = match cluster.namespaces() {
        [] => vec![None],
        named => named.iter().cloned().map(Some).collect(),
    };
    let streams = scopes
        .into_iter()
        .map(|scope| cluster.watch(scope.clone(), None).map(move |shown| (scope.clone(), shown.seen)));
    let mut stream = stream::select_all(streams);
    while let Some(Some((scope, seen))) = stop.run_until_cancelled(stream.next()).await {
        let Some(seen) = seen else { continue };
        if stop.run_until_cancelled(take(&gateway, scope.as_deref(), &seen)).await.is_none() {
            return;
        }
    }
}

/// Takes one thing in, again and again while the database or the cluster is away: it isn't shown a second time.
async fn take(gateway: &Gateway, namespace: Option<&str>, seen: &Seen) {
    let mut pause = Duration::from_millis(100);
    while let Err(error) = gateway.seen(namespace, seen).await {
        tracing::warn!(retry_in = ?pause, "taking in what the watch saw: {}", chain(&error));
        sleep(pause).await;
        pause = (pause * 2).min(Duration::from_secs(5));
    }
}
