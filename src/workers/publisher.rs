//! Numbers new events and takes them in for those who follow them here.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::service::{Gateway, chain};

/// After a round that failed.
const RETRY: Duration = Duration::from_secs(1);

/// Goes round until `stop`. What it leaves, another replica or the next process finds.
pub async fn publisher(gateway: Gateway, stop: CancellationToken) {
    stop.run_until_cancelled(Box::pin(rounds(&gateway))).await;
}

async fn rounds(gateway: &Gateway) {
    loop {
        match gateway.publish().await {
            Ok(published) => gateway.publication_due(published).await,
            Err(error) => {
                tracing::warn!(retry_in = ?RETRY, "telling what has changed: {}", chain(&error));
                tokio::time::sleep(RETRY).await;
            }
        }
    }
}
