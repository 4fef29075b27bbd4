//! Ends what takes too long, as its submitter or the operator said.

use std::{future::ready, time::Duration};

use tokio_util::sync::CancellationToken;

use super::singleton::singleton;
use crate::service::{Gateway, chain};

/// Between two looks, unless there is more to do at once.
const PERIOD: Duration = Duration::from_secs(1);

/// Looks if no other replica does, until `stop`.
pub async fn deadlines(gateway: Gateway, stop: CancellationToken) {
    singleton(&gateway, "deadlines", &stop, || ready(Ok(true)), || rounds(&gateway)).await;
}

async fn rounds(gateway: &Gateway) {
    loop {
        let more = gateway.kill_overdue().await.unwrap_or_else(|error| {
            tracing::warn!(retry_in = ?PERIOD, "looking for what is overdue: {}", chain(&error));
            false
        });
        if !more {
            tokio::time::sleep(PERIOD).await;
        }
    }
}
