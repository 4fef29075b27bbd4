//! Numbers new events and reads them into memory for subscribers of this replica.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::service::{Gateway, chain};

/// Pause after a failed round.
const RETRY: Duration = Duration::from_secs(1);

/// Runs rounds until `stop`. Unnumbered events are left to another replica or the next process.
pub async fn publisher(gateway: Gateway, stop: CancellationToken) {
    stop.run_until_cancelled(Box::pin(rounds(&gateway))).await;
}

async fn rounds(gateway: &Gateway) {
    loop {
        match gateway.publish().await {
            Ok(published) => gateway.publication_due(published).await,
            Err(error) => {
                tracing::warn!(retry_in = ?RETRY, "publishing events failed: {}", chain(&error));
                tokio::time::sleep(RETRY).await;
            }
        }
    }
}
