//! `sparkgate serve`: runs HTTP and the service's loops on one database and one cluster until a signal.

mod connect;
pub(super) mod listener;
mod reload;
pub(super) mod signals;

use std::{io::IsTerminal, net::SocketAddr, pin::pin, time::Duration};

use anyhow::{Context, anyhow};
use tokio::{
    net::TcpListener,
    task::{JoinHandle, JoinSet},
    time::timeout,
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::{settings::Serve, traces::Traces};
use connect::Parts;
use sparkgate_http::{self, StartupRouter};
use sparkgate_server::ServerSettings;
use sparkgate_service::Service;
use sparkgate_spark::SecretPattern;

pub(super) use listener::listen;
pub(super) use reload::{Reload, ReloadSource};
pub(super) use signals::Signals;

/// How long work in progress may go on after a signal. A launch is several calls to the cluster. A call takes milliseconds,
/// or up to a minute if webhooks are slow. Another process completes launches that are unfinished by then; it determines
/// how far they got.
const DRAIN: Duration = Duration::from_secs(26);
/// How long releasing the leases, then closing the database connections, then writing the rest of the audit log, and then
/// exporting the last traces may take after the drain. It is limited because a database server that is gone never answers, nor
/// does a disk that hangs. All five together, after the `preStop` hook, fit into `terminationGracePeriodSeconds` of `deploy/kubernetes.yaml`.
const GOODBYE: Duration = Duration::from_secs(2);

/// Connections of the management port at the same time.
const PROBES: usize = 64;

/// Runs the gateway until SIGINT or SIGTERM, then drains.
///
/// # Errors
/// A setting, the database, the cluster or the listening address can't be used, or a part ended by itself.
pub(super) async fn serve(settings: Serve, source: Option<ReloadSource>) -> anyhow::Result<()> {
    settings.http.check()?;
    settings.database.settings()?;
    let reload = Reload::new(&settings, source).on_signal()?;
    let signals = Signals::listen()?;
    let listener = listen(settings.http.listen).await?;
    let signalled = async {
        signals.received().await;
        Ok(())
    };
    run(&settings, listener, reload, signalled).await
}

/// Listens at once and starts to work as soon as the database is available. Runs until `until` completes, and returns its
/// error if it fails; then drains.
///
/// # Errors
/// As [`serve`].
pub(super) async fn run(
    settings: &Serve,
    listener: TcpListener,
    reload: Reload,
    until: impl Future<Output = anyhow::Result<()>>,
) -> anyhow::Result<()> {
    let traces = Traces::begin(settings.traces.otlp_endpoint.as_deref())?;
    let ended = run_traced(settings, listener, reload, until).await;
    if let Some(traces) = traces {
        traces.end(GOODBYE).await;
    }
    ended
}

async fn run_traced(
    settings: &Serve,
    listener: TcpListener,
    reload: Reload,
    until: impl Future<Output = anyhow::Result<()>>,
) -> anyhow::Result<()> {
    settings.http.check()?;
    settings.spark.secret_pattern.clone().into_iter().for_each(SecretPattern::apply);
    let spark = settings.spark.settings(&settings.kubernetes.place.namespaces())?;
    let address = listener.local_addr().context("asking for the listening address")?;
    let mut until = pin!(until);
    let stop = CancellationToken::new();
    let startup = StartupRouter::new(spark.version);
    let mut tasks = JoinSet::new();
    // Probes are answered to the end of the process.
    let _management = match settings.http.management_listen {
        Some(address) => {
            let listener = listen(address).await?;
            tracing::info!("probes are answered on http://{}", listener.local_addr().unwrap_or(address));
            let settings = ServerSettings { max_connections: PROBES, ..ServerSettings::default() };
            let served = sparkgate_server::serve(listener, startup.management(), settings, CancellationToken::new());
            Some(AbortOnDropHandle::new(tokio::spawn(served)))
        }
        None => None,
    };
    let server = settings.http.server().await?;
    let tls = server.tls.clone();
    // Before any work: an address that is taken ends the process at once.
    let mut others = Vec::new();
    for (kind, address) in [
        (Other::Livy, settings.http.livy_listen),
        (Other::Files, settings.http.files_listen),
        (Other::Connect, settings.http.connect_listen),
    ] {
        if let Some(address) = address {
            others.push((kind, listen(address).await?, server.clone()));
        }
    }
    announce(address, tls.is_some());
    if let Some(tls) = tls {
        tasks.spawn(named("reload of TLS files", tls.run(stop.clone())));
    }
    tasks.spawn(named("http", sparkgate_server::serve(listener, startup.router(), server, stop.clone())));
    let parts = tokio::select! {
        connected = Parts::connect(settings, spark) => connected?,
        name = tasks.join_next() => return Err(by_itself(name)),
        ended = &mut until => return ended,
    };
    parts.run(&startup, tasks, others, reload, stop, until).await
}

/// An address beside the gateway's own, which serves a part of it.
#[derive(Clone, Copy)]
enum Other {
    Livy,
    Files,
    Connect,
}

impl Parts {
    async fn run(
        self,
        startup: &StartupRouter,
        mut tasks: JoinSet<&'static str>,
        others: Vec<(Other, TcpListener, ServerSettings)>,
        reload: Reload,
        stop: CancellationToken,
        until: impl Future<Output = anyhow::Result<()>>,
    ) -> anyhow::Result<()> {
        let Self { store, service, http, clean_up, audit_log } = self;
        let last = CancellationToken::new();
        // Work in progress needs its leases until the end of the drain.
        let mut keeper = tokio::spawn(service.leadership.clone().run_renewal(last.clone()));
        for (name, part) in service.loops(clean_up, &stop) {
            tasks.spawn(named(name, part));
        }
        tasks.spawn(named("reload of settings", reload.run(service.clone(), stop.clone())));
        if let Some(address) = spark_listener(&service) {
            let listener = listen(address).await?;
            tracing::info!("Spark's protocol without credentials is served on http://{address}");
            let router = sparkgate_http::spark_listener(service.clone(), http.clone())?;
            tasks.spawn(named(
                "spark listener",
                sparkgate_server::serve(listener, router, ServerSettings::default(), stop.clone()),
            ));
        }
        for (kind, listener, server) in others {
            let address = listener.local_addr()?;
            let (name, router) = match kind {
                Other::Livy => {
                    tracing::info!("Livy's batches are served on {address}");
                    ("livy listener", sparkgate_http::livy_listener(service.clone(), http.clone())?)
                }
                Other::Files => {
                    tracing::info!("signed URLs of files are served on {address}");
                    ("files listener", sparkgate_http::files_listener(service.clone(), http.clone()))
                }
                Other::Connect => {
                    tracing::info!("sessions of Spark Connect are served on {address}");
                    ("connect listener", sparkgate_http::connect_listener(service.clone()))
                }
            };
            tasks.spawn(named(name, sparkgate_server::serve(listener, router, server, stop.clone())));
        }
        startup
            .open(sparkgate_http::router(service.clone(), http)?, sparkgate_http::management_router(service.clone()));

        let ended = first_end(&mut tasks, &mut keeper, until).await;
        service.health.drain();
        stop.cancel();
        tracing::info!("shutting down");
        if timeout(DRAIN, async { while tasks.join_next().await.is_some() {} }).await.is_err() {
            tracing::warn!("work that was unfinished after {DRAIN:?} is left to the next process");
            tasks.shutdown().await;
        }
        last.cancel();
        if !keeper.is_finished() {
            let _ = timeout(GOODBYE, keeper).await;
        }
        let _ = timeout(GOODBYE, store.close()).await;
        if let Some(log) = audit_log {
            log.flush(GOODBYE).await;
        }
        ended
    }
}

/// Waits until a part ends, which none does by itself unless it failed, or until `until` completes. Without the renewal of leases,
/// this process would lose its session again and again.
async fn first_end(
    tasks: &mut JoinSet<&'static str>,
    renewal: &mut JoinHandle<()>,
    until: impl Future<Output = anyhow::Result<()>>,
) -> anyhow::Result<()> {
    tokio::select! {
        name = tasks.join_next() => Err(by_itself(name)),
        ended = renewal => Err(by_itself(Some(ended.map(|()| "renewal of leases")))),
        ended = until => ended,
    }
}

/// Returns the address for Spark's clients without credentials, as the access file has it at the start.
fn spark_listener(service: &Service) -> Option<SocketAddr> {
    let access = service.access.current();
    Some(access.access().authentication()?.spark_listener.as_ref()?.listen)
}

async fn named(name: &'static str, part: impl Future<Output = ()>) -> &'static str {
    part.await;
    name
}

fn by_itself(ended: Option<Result<&'static str, tokio::task::JoinError>>) -> anyhow::Error {
    anyhow!("the {} ended by itself", ended.and_then(Result::ok).unwrap_or("process"))
}

fn announce(address: SocketAddr, is_tls: bool) {
    let scheme = if is_tls { "https" } else { "http" };
    tracing::info!("listening on {scheme}://{address}");
    if std::io::stderr().is_terminal() {
        eprintln!("\n  curl {scheme}://{address}/readyz\n");
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    #[tokio::test]
    async fn a_renewal_of_leases_that_panics_ends_the_process() {
        let mut tasks = JoinSet::new();
        tasks.spawn(async { pending().await });
        let mut renewal = tokio::spawn(async { panic!("a fault of the test") });
        let ended = first_end(&mut tasks, &mut renewal, pending()).await.unwrap_err();
        assert!(ended.to_string().contains("ended by itself"), "{ended}");
    }

    #[test]
    fn termination_grace_period_exceeds_the_time_to_drain() {
        let manifests = include_str!("../../deploy/kubernetes.yaml");
        let seconds = |key: &str| {
            let value = manifests.lines().find_map(|line| line.trim().strip_prefix(key));
            Duration::from_secs(value.unwrap().parse().unwrap())
        };
        let ours = seconds("seconds: ") + DRAIN + 4 * GOODBYE;
        let grace = seconds("terminationGracePeriodSeconds: ");
        assert!(ours + Duration::from_secs(5) <= grace, "{ours:?} of {grace:?}");
    }
}
