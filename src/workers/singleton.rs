//! What only one of all replicas does at a time.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::service::{Error, Gateway, chain};

/// How often it is tried to become the one; how long a lease outlives its holder comes on top.
const TRY: Duration = Duration::from_millis(500);

/// Runs `task` whenever this replica holds the lease `name`, until `stop`. The task is dropped when the lease is lost, so
/// it has to be one that may be dropped anywhere. The lease is tried for only while the replica `is_able` to do the task.
pub(super) async fn singleton<A: Future<Output = Result<bool, Error>>, F: Future<Output = ()>>(
    gateway: &Gateway,
    name: &str,
    stop: &CancellationToken,
    is_able: impl Fn() -> A,
    task: impl Fn() -> F,
) {
    while !stop.is_cancelled() {
        let taken = async { Ok(is_able().await? && gateway.become_the_one(name).await?) };
        match stop.run_until_cancelled(taken).await.unwrap_or(Ok(false)) {
            Ok(true) => {
                tracing::info!(lease = name, "taken");
                tokio::select! {
                    () = task() => tracing::warn!(lease = name, "given up"),
                    () = gateway.no_longer_the_one(name) => tracing::warn!(lease = name, "lost"),
                    () = stop.cancelled() => {}
                }
                // Whatever ended it: the next one needn't wait for the lease to run out.
                if let Err(error) = gateway.leave_it_to_another(name).await {
                    tracing::debug!(lease = name, "not given back: {}", chain(&error));
                }
            }
            Ok(false) => {}
            Err::<_, Error>(error) => tracing::debug!(lease = name, "not taken: {}", chain(&error)),
        }
        tokio::select! {
            () = tokio::time::sleep(TRY) => {}
            () = stop.cancelled() => {}
        }
    }
}
