//! The last that a driver said of its jobs and stages, by Spark's REST API
//! (<https://spark.apache.org/docs/latest/monitoring.html#rest-api>). It is kept when the driver ends, and its UI with it.
//!
//! All of it is best effort. Drivers are asked rarely and few at a time, by whichever replica; nothing waits for an answer.

use std::{sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use chrono::{DateTime, Utc};
use futures::{StreamExt, stream};
use http::{Request, StatusCode, header};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::DeserializeOwned;
use tokio::{
    task::spawn_blocking,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    SparkUi,
    said::{Executors, FailedStages, Jobs, Said},
};
use sparkgate_common::error::{Error, error_chain};
use sparkgate_store::{AskedDriver, SparkSummary};

/// Pause between two rounds.
const ROUND: Duration = Duration::from_secs(5);
/// The most drivers of one round, and how many are asked at once.
const DRIVERS: u32 = 32;
const AT_ONCE: usize = 8;
/// How long a driver may take to answer, in all.
const ANSWER: Duration = Duration::from_secs(10);
/// The largest answer. A driver keeps a thousand jobs (`spark.ui.retainedJobs`), of some 600 bytes each.
const LARGEST: usize = 1 << 20;

/// What a driver said last.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// The attempt whose driver said it.
    pub attempt: i32,
    pub read_at: DateTime<Utc>,
    pub said: Said,
}

impl Summary {
    /// Returns what is stored; `None` if this release can't read it, because another one wrote it.
    pub fn stored(row: SparkSummary) -> Option<Self> {
        let said = serde_json::from_value(row.summary).ok()?;
        Some(Self { attempt: row.attempt, read_at: row.read_at, said })
    }
}

impl SparkUi {
    /// Asks drivers for their jobs until `stop`.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        let Some(period) = self.settings.summary_period else { return stop.cancelled().await };
        let rounds = async {
            loop {
                sleep(ROUND).await;
                if let Err(error) = self.ask_drivers(period).await {
                    tracing::warn!(retry_in = ?ROUND, "no driver was asked for its jobs: {}", error_chain(&error));
                }
            }
        };
        stop.run_until_cancelled(rounds).await;
    }

    /// Asks the drivers whose turn it is for their jobs, and records what they said. Returns how many were asked.
    ///
    /// # Errors
    /// The database doesn't answer. A driver that doesn't is asked again later.
    pub async fn ask_drivers(&self, period: Duration) -> Result<usize, Error> {
        let drivers = self.store.drivers_to_ask(period, DRIVERS).await?;
        let asked = drivers.len();
        stream::iter(drivers)
            .for_each_concurrent(AT_ONCE, async |driver| {
                let Ok(Some(said)) = timeout(ANSWER, self.asked(&driver)).await else { return };
                let Ok(said) = serde_json::to_value(&said) else { return };
                if let Err(error) = self.store.write_spark_summary(&driver.id, driver.attempt, &said).await {
                    tracing::debug!(submission = %driver.id, "a summary wasn't recorded: {}", error_chain(&error));
                }
            })
            .await;
        Ok(asked)
    }

    /// Returns what a driver says; `None` if it says nothing that can be used, as before its first job.
    async fn asked(&self, driver: &AskedDriver) -> Option<Said> {
        let app_id = utf8_percent_encode(&driver.names.app_id, NON_ALPHANUMERIC).to_string().replace("%2D", "-");
        let Jobs(mut said) = self.read(driver, &format!("/api/v1/applications/{app_id}/jobs")).await?;
        // Zeros would say that it has no jobs, and it may have ended with many.
        if said.latest.is_empty() {
            return None;
        }
        if said.stages.failed > 0 {
            let stages = format!("/api/v1/applications/{app_id}/stages?status=failed");
            said.failures = self.read(driver, &stages).await.map(|FailedStages(failures)| failures).unwrap_or_default();
        }
        let executors = format!("/api/v1/applications/{app_id}/allexecutors");
        said.executors = self.read(driver, &executors).await.map(|Executors(used)| used);
        Some(said)
    }

    async fn read<T: DeserializeOwned + Send + 'static>(&self, driver: &AskedDriver, path: &str) -> Option<T> {
        let AskedDriver { namespace, names, pod_uid, .. } = driver;
        let address = self.address(namespace, &names.driver_pod, pod_uid).await.ok()??;
        let request = Request::get(path).header(header::ACCEPT, "application/json").body(Bytes::new()).ok()?;
        let response = self.cluster.ask_driver(address, request).await.ok()?;
        let (parts, mut body) = response.into_parts();
        if parts.status != StatusCode::OK {
            return None;
        }
        let mut text = BytesMut::new();
        while let Some(part) = body.next().await {
            text.extend_from_slice(&part.ok()?);
            if text.len() > LARGEST {
                return None;
            }
        }
        // A mebibyte takes milliseconds, in which this thread would serve nothing else.
        spawn_blocking(move || serde_json::from_slice(&text).ok()).await.ok()?
    }
}
