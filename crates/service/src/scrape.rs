//! The answer to a scrape of the metrics: what is a state and not an event is read right before.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use chrono::Utc;
use tokio::{sync::Mutex, time::timeout};

use sparkgate_common::error::error_chain;
use sparkgate_connect::Connect;
use sparkgate_core::{event_feed::EventFeed, health::Health, launcher::Launcher};
use sparkgate_logs::DriverLogs;
use sparkgate_metrics::{exposition, metrics, text};
use sparkgate_queues::Queues;
use sparkgate_spark::SparkVersion;
use sparkgate_store::{LiveCount, PoolUse, Store};
use sparkgate_tenancy::boundaries::Boundaries;

/// How old what was read from the database may be.
const FRESH: Duration = Duration::from_secs(10);
/// Timeouts of the two statements: of one that the database answers at once, and of one that reads all live rows.
const SIGN_OF_LIFE: Duration = Duration::from_secs(1);
const COUNT: Duration = Duration::from_secs(2);

/// The parts whose state the metrics report.
pub(crate) struct Parts {
    pub(crate) launcher: Arc<Launcher>,
    pub(crate) health: Arc<Health>,
    pub(crate) events: Arc<EventFeed>,
    pub(crate) logs: Arc<DriverLogs>,
    pub(crate) boundaries: Arc<Boundaries>,
    pub(crate) queues: Arc<Queues>,
    pub(crate) connect: Arc<Connect>,
}

/// Reads the states that the metrics report.
pub struct Scrape {
    store: Store,
    parts: Parts,
    /// When the database was last asked. Locked during a scrape, so that no other sees gauges that are being replaced.
    asked: Mutex<Option<Instant>>,
}

impl Scrape {
    pub(crate) fn new(store: Store, parts: Parts, version: SparkVersion) -> Self {
        metrics().build_info.with([text(env!("CARGO_PKG_VERSION")), text(&version.to_string())]).set(1.0);
        Self { store, parts, asked: Mutex::default() }
    }

    /// Returns all metrics. The database is asked at most once in ten seconds, and delays the answer by three seconds at most.
    ///
    /// # Errors
    /// As for [`exposition`].
    pub async fn text(&self) -> Result<String, fmt::Error> {
        let mut asked = self.asked.lock().await;
        if asked.is_none_or(|at| at.elapsed() >= FRESH) {
            self.ask_the_database().await;
            *asked = Some(Instant::now());
        }
        self.read_parts();
        exposition()
    }

    async fn ask_the_database(&self) {
        let metrics = metrics();
        let clock = timeout(SIGN_OF_LIFE, self.store.clock()).await;
        metrics.submissions.clear();
        metrics.oldest_queued.clear();
        let Ok(Ok(clock)) = clock else {
            metrics.database_up.set(0.0);
            return;
        };
        metrics.database_up.set(1.0);
        metrics.clock_ahead.set((clock - Utc::now()).as_seconds_f64());
        let read = async {
            let (counts, backlogs) = self.store.figures().await?;
            counts.iter().for_each(show);
            self.parts.queues.measure(&backlogs).await?;
            self.parts.connect.measure().await
        };
        match timeout(COUNT, read).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!("metrics without the live submissions: {}", error_chain(&error)),
            Err(_) => tracing::debug!("metrics without the live submissions: counting them took over {COUNT:?}"),
        }
    }

    fn read_parts(&self) {
        let metrics = metrics();
        let Parts { launcher, health, events, logs, boundaries, connect, .. } = &self.parts;
        metrics.breaker_open.clear();
        for namespace in launcher.open_breakers() {
            metrics.breaker_open.with([text(&namespace)]).set(1.0);
        }
        health.watch.for_each(|namespace, is_active, behind| {
            let name = namespace.unwrap_or("*");
            // The last that is known of a watch whose lease is lost says nothing.
            let is_held = metrics.lease_held.with([text(&format!("watch/{name}"))]).get() > 0.0;
            let namespace = text(name);
            metrics.watch_active.with([namespace.clone()]).set(f64::from(u8::from(is_active && is_held)));
            metrics.watch_lag.with([namespace]).set(behind.as_secs_f64());
        });
        for PoolUse { name, busy, idle, most } in self.store.pools() {
            metrics.connections.with([name, "busy"]).set(busy as f64);
            metrics.connections.with([name, "idle"]).set(idle as f64);
            metrics.connections_max.with([name]).set(most as f64);
        }
        metrics.connect_streams.set(connect.streams() as f64);
        metrics.subscribers.set(events.subscribers() as f64);
        metrics.log_readers.set(logs.readers() as f64);
        let (streams, waiting) = logs.streams();
        metrics.log_streams.set(streams as f64);
        metrics.log_streams_waiting.set(waiting as f64);
        metrics.boundary_findings.set(boundaries.findings().len() as f64);
    }
}

/// Sets the gauges of one tenant and state.
fn show(LiveCount { tenant, state, count, oldest }: &LiveCount) {
    let tenant = text(tenant);
    metrics().submissions.with([tenant.clone(), text(state)]).set(*count as f64);
    if let Some(oldest) = oldest {
        let gauge = metrics().oldest_queued.with([tenant]);
        // QUEUED and LAUNCHING both wait.
        gauge.set(gauge.get().max(*oldest));
    }
}
