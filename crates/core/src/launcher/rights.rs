//! Reports rights that the gateway's account lacks, before a submission fails because of them.

use std::{sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;

use super::Launcher;
use sparkgate_cluster::Cluster;
use sparkgate_common::error::error_chain;

/// Pause between two checks, while rights are missing.
const PERIOD: Duration = Duration::from_secs(180);

impl Launcher {
    /// Checks the rights at start, and again until none is missing. Then waits for `stop`.
    pub async fn check_rights(self: Arc<Self>, stop: CancellationToken) {
        tokio::select! {
            () = stop.cancelled() => {}
            () = look(&self.cluster) => stop.cancelled().await,
        }
    }
}

async fn look(cluster: &Cluster) {
    let named = cluster.namespaces().iter().map(|name| Some(name.as_str()));
    let mut places: Vec<Option<&str>> = if cluster.namespaces().is_empty() { vec![None] } else { named.collect() };
    loop {
        let mut incomplete = Vec::new();
        for place in places {
            let namespace = place.unwrap_or("all namespaces");
            match cluster.missing_rights(place).await {
                Ok(missing) if missing.is_empty() => tracing::debug!(namespace, "the account has all rights"),
                Ok(missing) => {
                    let missing: Vec<_> = missing.iter().map(ToString::to_string).collect();
                    tracing::warn!(
                        namespace,
                        missing = missing.join(", "),
                        "the account lacks rights: bind it to a Role with the rules of deploy/kubernetes.yaml in this namespace"
                    );
                    incomplete.push(place);
                }
                Err(error) => {
                    tracing::warn!(namespace, "the account's rights can't be checked: {}", error_chain(&error));
                    incomplete.push(place);
                }
            }
        }
        if incomplete.is_empty() {
            tracing::info!("the account has all rights that the gateway needs");
            return;
        }
        places = incomplete;
        tokio::time::sleep(PERIOD).await;
    }
}
