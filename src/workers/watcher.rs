//! Carries what the watch sees to the service, and keeps how far it got.

use std::time::Duration;

use futures::{StreamExt, future::join_all};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::singleton::singleton;
use crate::service::{ALL, Gateway, chain};

/// What is taken in together at most.
const BATCH: usize = 256;
/// How often it is kept how far the watch got.
const KEEP: Duration = Duration::from_secs(1);

/// Watches each namespace, or all together, if no other replica does; runs until `stop`.
pub async fn watcher(gateway: Gateway, stop: CancellationToken) {
    let each = gateway.watch_scopes().into_iter().map(async |scope| {
        let scope = scope.as_deref();
        let name = format!("watch/{}", scope.unwrap_or(ALL));
        let elsewhere = || gateway.watches_here(scope, false);
        singleton(&gateway, &name, &stop, elsewhere, || watch(&gateway, scope)).await;
    });
    join_all(each).await;
}

async fn watch(gateway: &Gateway, scope: Option<&str>) {
    gateway.watches_here(scope, true);
    let position = loop {
        match gateway.watch_position(scope).await {
            Ok(position) => break position,
            Err(error) => tracing::warn!("beginning to watch: {}", chain(&error)),
        }
        sleep(KEEP).await;
    };
    let mut told = gateway.watch_pods(scope, position).ready_chunks(BATCH);
    let mut kept = Instant::now();
    while let Some(batch) = told.next().await {
        let position = batch.iter().rev().find_map(|shown| shown.resource_version.clone());
        gateway.take_in(scope, batch.into_iter().filter_map(|shown| shown.seen)).await;
        // One that is a little old only means that some things are taken in twice.
        let Some(position) = position.filter(|_| kept.elapsed() >= KEEP) else { continue };
        match gateway.keep_watch_position(scope, &position).await {
            Ok(()) => kept = Instant::now(),
            Err(error) => tracing::warn!("keeping how far the watch got: {}", chain(&error)),
        }
    }
}
