//! Work that only one replica does at a time.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::service::{Error, Gateway, chain};

/// Interval of attempts to acquire the lease. After a crash of its holder, the time until the lease expires is added.
const TRY: Duration = Duration::from_millis(500);

/// Runs `task` while this replica holds the lease `name`, until `stop`. The task is dropped when the lease is lost, so it must
/// be cancel-safe. The replica tries to acquire the lease only while it `is_able` to do the task.
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
                tracing::info!(lease = name, "lease acquired");
                tokio::select! {
                    () = task() => tracing::warn!(lease = name, "lease resigned"),
                    () = gateway.no_longer_the_one(name) => tracing::warn!(lease = name, "lease lost"),
                    () = stop.cancelled() => {}
                }
                // Released in every case, so that the next holder needn't wait until the lease expires.
                if let Err(error) = gateway.leave_it_to_another(name).await {
                    tracing::debug!(lease = name, "lease not released: {}", chain(&error));
                }
            }
            Ok(false) => {}
            Err::<_, Error>(error) => tracing::debug!(lease = name, "lease not acquired: {}", chain(&error)),
        }
        tokio::select! {
            () = tokio::time::sleep(TRY) => {}
            () = stop.cancelled() => {}
        }
    }
}
