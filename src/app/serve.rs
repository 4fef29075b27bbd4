//! `sparkgate serve`: one database, one cluster, HTTP and the workers, until a signal.

use std::{io::IsTerminal, net::SocketAddr, time::Duration};

use anyhow::{Context, bail};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

use super::settings::Serve;
use crate::{
    api::{self, HttpSettings},
    cluster::Cluster,
    service::Gateway,
    store::Store,
    workers,
};

/// What may still be under way when a signal comes has this long.
const DRAIN: Duration = Duration::from_secs(20);

/// Runs the gateway until SIGINT or SIGTERM, then drains.
///
/// # Errors
/// A setting, the database, the cluster or the listening address that can't be used; a part that ended by itself.
pub(super) async fn serve(settings: Serve) -> anyhow::Result<()> {
    settings.http.check()?;
    let spark = settings.spark.settings()?;
    let store = Store::connect(&settings.database.settings()).await?;
    let cluster = Cluster::connect(&settings.kubernetes.settings()).await?;
    let gateway = Gateway::new(store.clone(), cluster.clone(), spark);
    let listener = listen(settings.http.listen).await?;
    let http = HttpSettings { max_request_body_bytes: settings.http.max_request_body, ..HttpSettings::default() };

    let stop = CancellationToken::new();
    let mut parts = JoinSet::new();
    parts.spawn(named("launcher", workers::launcher(gateway.clone(), stop.clone())));
    parts.spawn(named("watcher", workers::watcher(gateway.clone(), cluster, stop.clone())));
    let router = api::router(gateway.clone(), http);
    let until = stop.clone().cancelled_owned();
    parts.spawn(named("http", async move {
        if let Err(error) = axum::serve(listener, router).with_graceful_shutdown(until).await {
            tracing::error!(%error, "the HTTP server ended");
        }
    }));
    announce(settings.http.listen);

    let ended_early = tokio::select! {
        name = parts.join_next() => Some(name),
        signal = signalled() => { signal?; None }
    };
    gateway.drain();
    stop.cancel();
    tracing::info!("shutting down");
    let drained = tokio::time::timeout(DRAIN, async { while parts.join_next().await.is_some() {} }).await;
    if drained.is_err() {
        tracing::warn!("what was still under way after {DRAIN:?} is left to the next process");
    }
    store.close().await;
    match ended_early {
        None => Ok(()),
        Some(name) => bail!("the {} ended by itself", name.and_then(Result::ok).unwrap_or("process")),
    }
}

async fn named(name: &'static str, part: impl Future<Output = ()>) -> &'static str {
    part.await;
    name
}

pub(super) async fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address)
        .await
        .with_context(|| format!("listening on {address}: is something else there already?"))
}

/// Waits for SIGINT or SIGTERM.
pub(super) async fn signalled() -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("listening for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("listening for SIGINT")?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}

fn announce(address: SocketAddr) {
    tracing::info!("listening on http://{address}");
    if std::io::stderr().is_terminal() {
        eprintln!("\n  curl http://{address}/readyz\n");
    }
}
