//! What only one of all replicas does at a time.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::service::{Gateway, chain};

/// How often it is tried to become the one; how long a lease outlives its holder comes on top.
const TRY: Duration = Duration::from_millis(500);

/// Runs `task` whenever this replica holds the lease `name`, until `stop`. The task is dropped when the lease is lost, so
/// it has to be one that may be dropped anywhere. `elsewhere` is told each time that another replica has it.
pub(super) async fn singleton<F: Future<Output = ()>>(
    gateway: &Gateway,
    name: &str,
    stop: &CancellationToken,
    elsewhere: impl Fn(),
    task: impl Fn() -> F,
) {
    while !stop.is_cancelled() {
        match gateway.become_the_one(name).await {
            Ok(true) => {
                tracing::info!(lease = name, "taken");
                tokio::select! {
                    () = task() => tracing::error!(lease = name, "what it stands for ended by itself"),
                    () = gateway.no_longer_the_one(name) => tracing::warn!(lease = name, "lost"),
                    () = stop.cancelled() => {}
                }
                // Whatever ended it: the next one needn't wait for the lease to run out.
                if let Err(error) = gateway.leave_it_to_another(name).await {
                    tracing::debug!(lease = name, "not given back: {}", chain(&error));
                }
            }
            Ok(false) => elsewhere(),
            Err(error) => tracing::debug!(lease = name, "not taken: {}", chain(&error)),
        }
        tokio::select! {
            () = tokio::time::sleep(TRY) => {}
            () = stop.cancelled() => {}
        }
    }
}
