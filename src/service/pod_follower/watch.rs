//! Passes observations of the watch to the service, and stores the position of the watch.

use std::time::Duration;

use futures::{StreamExt, future::join_all};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use tokio_util::sync::CancellationToken;

use super::singleton::singleton;
use crate::{
    cluster::Seen,
    service::{ALL, Gateway, chain},
};

/// Maximum number of observations that are processed together.
const BATCH: usize = 256;
/// Maximum interval between two writes of executors.
const FLUSH: Duration = Duration::from_millis(500);
/// Interval at which the position of the watch is stored.
const KEEP: Duration = Duration::from_secs(1);
/// A replica whose watch was broken for this long leaves it to another one.
const GIVE_UP: Duration = Duration::from_secs(10);

/// Watches each namespace, or all together, while this replica holds the lease of the watch; runs until `stop`.
pub async fn watcher(gateway: Gateway, stop: CancellationToken) {
    let each = gateway.watch_scopes().into_iter().map(async |scope| {
        let scope = scope.as_deref();
        let name = format!("watch/{}", scope.unwrap_or(ALL));
        let is_able = || gateway.may_watch(scope, &name);
        singleton(&gateway, &name, &stop, is_able, || watch(&gateway, scope)).await;
    });
    join_all(each).await;
}

async fn watch(gateway: &Gateway, scope: Option<&str>) {
    gateway.begin_watch(scope);
    let position = loop {
        match gateway.watch_position(scope).await {
            Ok(position) => break position,
            Err(error) => tracing::warn!("starting the watch failed: {}", chain(&error)),
        }
        sleep(KEEP).await;
    };
    let _begun = gateway.executors.begin(scope);
    let _set_aside = gateway.set_aside.begin(scope);
    let mut observations = gateway.watch_pods(scope, position).ready_chunks(BATCH);
    let mut flush = interval(FLUSH);
    flush.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut position, mut kept) = (None, Instant::now());
    let mut broken = None;
    loop {
        tokio::select! {
            batch = observations.next() => {
                let Some(batch) = batch else { return };
                position = batch.iter().rev().find_map(|shown| shown.resource_version.clone()).or(position);
                for shown in &batch {
                    let is_broken = matches!(shown.seen, Some(Seen::Broken { .. }));
                    broken = is_broken.then(|| broken.unwrap_or_else(Instant::now));
                }
                gateway.take_in(scope, batch.into_iter().map(|shown| shown.seen)).await;
                if !gateway.executors.batch_is_full(scope) {
                    continue;
                }
            }
            _ = flush.tick() => {
                if broken.is_some_and(|since| since.elapsed() >= GIVE_UP) {
                    return gateway.give_watch_up(scope);
                }
            }
        }
        if let Err(error) = gateway.flush_executors(scope).await {
            tracing::warn!("writing executors failed: {}", chain(&error));
            continue;
        }
        // A position that is slightly old only means that some observations are processed twice.
        if kept.elapsed() < KEEP || !gateway.is_taken_in(scope) {
            continue;
        }
        let Some(reached) = position.take() else { continue };
        match gateway.keep_watch_position(scope, &reached).await {
            Ok(()) => kept = Instant::now(),
            Err(error) => tracing::warn!("storing the position of the watch failed: {}", chain(&error)),
        }
    }
}
