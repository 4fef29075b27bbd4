//! `sparkgate serve`: one database, one cluster, HTTP and the workers, until a signal.

use std::{io::IsTerminal, net::SocketAddr, time::Duration};

use anyhow::{Context, anyhow};
use tokio::{
    net::TcpListener,
    signal::unix::{Signal, SignalKind, signal},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

use super::settings::Serve;
use crate::{
    api::{self, HttpSettings},
    cluster::Cluster,
    service::{CleanUpSettings, Gateway, Settings, chain},
    store::{ConnectError, DatabaseSettings, Store},
    workers,
};

/// What is under way when a signal comes has this long: a launch or a kill takes 25 s at most.
const DRAIN: Duration = Duration::from_secs(26);

const DATABASE_RETRY: Duration = Duration::from_secs(1);

/// Runs the gateway until SIGINT or SIGTERM, then drains.
///
/// # Errors
/// A setting, the database, the cluster or the listening address that can't be used; a part that ended by itself.
pub(super) async fn serve(settings: Serve) -> anyhow::Result<()> {
    let parts = Parts::connect(&settings).await?;
    let listener = listen(settings.http.listen).await?;
    let signals = Signals::listen()?;
    let signalled = async {
        signals.received().await;
        Ok(())
    };
    parts.run(listener, signalled).await
}

/// A gateway with its database and its cluster, before it does anything.
pub(super) struct Parts {
    store: Store,
    gateway: Gateway,
    http: HttpSettings,
    clean_up: CleanUpSettings,
}

impl Parts {
    pub(super) async fn connect(settings: &Serve) -> anyhow::Result<Self> {
        settings.http.check()?;
        let spark = settings.spark.settings()?;
        let store = database(&settings.database.settings()?).await?;
        let cluster = Cluster::connect(&settings.kubernetes.place.settings()).await?;
        let http = HttpSettings { max_request_body_bytes: settings.http.max_request_body, ..HttpSettings::default() };
        let clean_up = settings.clean_up.settings();
        let settings = Settings { spark, outcome_finalizer: settings.kubernetes.outcome_finalizer };
        let gateway =
            Gateway::new(store.clone(), cluster, settings).await.context("reading which installation this is")?;
        Ok(Self { store, gateway, http, clean_up })
    }

    /// Serves and works until `until` says that it is time, or why it has to end; then drains.
    pub(super) async fn run(
        self,
        listener: TcpListener,
        until: impl Future<Output = anyhow::Result<()>>,
    ) -> anyhow::Result<()> {
        let Self { store, gateway, http, clean_up } = self;
        let address = listener.local_addr().context("asking for the listening address")?;
        let (stop, last) = (CancellationToken::new(), CancellationToken::new());
        // Work that is under way needs its leases to the end.
        let keeper = tokio::spawn(workers::lease_keeper(gateway.clone(), last.clone()));
        let mut parts = JoinSet::new();
        parts.spawn(named("launcher", workers::launcher(gateway.clone(), stop.clone())));
        parts.spawn(named("watcher", workers::watcher(gateway.clone(), stop.clone())));
        parts.spawn(named("clean-up", workers::clean_up(gateway.clone(), clean_up, stop.clone())));
        let router = api::router(gateway.clone(), http);
        let stopped = stop.clone().cancelled_owned();
        parts.spawn(named("http", async move {
            if let Err(error) = axum::serve(listener, router).with_graceful_shutdown(stopped).await {
                tracing::error!(%error, "the HTTP server ended");
            }
        }));
        announce(address);

        let ended = tokio::select! {
            name = parts.join_next() => Err(anyhow!("the {} ended by itself", name.and_then(Result::ok).unwrap_or("process"))),
            ended = until => ended,
        };
        gateway.drain();
        stop.cancel();
        tracing::info!("shutting down");
        let drained = tokio::time::timeout(DRAIN, async { while parts.join_next().await.is_some() {} }).await;
        if drained.is_err() {
            tracing::warn!("what was still under way after {DRAIN:?} is left to the next process");
            parts.shutdown().await;
        }
        last.cancel();
        let _ = keeper.await;
        // A server that is gone never says goodbye.
        let _ = tokio::time::timeout(Duration::from_secs(2), store.close()).await;
        ended
    }
}

/// Connects to the database, for as long as it takes if nothing is wrong but that it doesn't answer: after an outage
/// nobody has to start us again.
async fn database(settings: &DatabaseSettings) -> Result<Store, ConnectError> {
    loop {
        match Store::connect(settings).await {
            Err(error) if error.may_pass() => {
                tracing::warn!(retry_in = ?DATABASE_RETRY, "waiting for the database: {}", chain(&error));
            }
            connected => return connected,
        }
        tokio::time::sleep(DATABASE_RETRY).await;
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

/// SIGINT and SIGTERM: kept from the first moment on, and told when asked.
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    pub(super) fn listen() -> anyhow::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate()).context("listening for SIGTERM")?,
            interrupt: signal(SignalKind::interrupt()).context("listening for SIGINT")?,
        })
    }

    /// Waits for one of them.
    pub(super) async fn received(mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

fn announce(address: SocketAddr) {
    tracing::info!("listening on http://{address}");
    if std::io::stderr().is_terminal() {
        eprintln!("\n  curl http://{address}/readyz\n");
    }
}
