//! Runs that take longer than expected: each is reported once, by one replica for all. The run goes on.

use std::{sync::Arc, time::Duration};

use futures::{FutureExt, future::BoxFuture};
use tokio::time::sleep;

use sparkgate_common::error::{Error, error_chain};
use sparkgate_core::{leadership::clock::DatabaseClock, ports::Sweep, wakeups::Wakeups};
use sparkgate_metrics::{metrics, text};
use sparkgate_store::Store;

/// Pause between two rounds, unless more is due right now.
const PERIOD: Duration = Duration::from_secs(10);
/// The most runs of one statement.
const ROUND: u32 = 500;

/// The feature.
pub struct Late {
    store: Store,
    wakeups: Arc<Wakeups>,
}

impl Late {
    pub fn new(store: Store, wakeups: Arc<Wakeups>) -> Self {
        Self { store, wakeups }
    }

    /// Finds out when runs become late, and reports those that are. Returns whether more may be due right now. Concurrent calls, also of
    /// several processes, are safe.
    ///
    /// # Errors
    /// Those of the database.
    async fn report(&self, clock: &DatabaseClock) -> Result<bool, Error> {
        let expected = self.store.expect_ends(ROUND).await?;
        let Some(until) = clock.believed_until("reports of late runs").await? else { return Ok(false) };
        let late = self.store.report_late(ROUND, until).await?;
        for run in &late {
            metrics().late.with([text(&run.tenant)]).inc();
        }
        if !late.is_empty() {
            self.wakeups.state_changed();
        }
        Ok(expected.max(late.len() as u64) >= u64::from(ROUND))
    }
}

impl Sweep for Late {
    fn lease(&self) -> &'static str {
        "late"
    }

    fn is_needed(&self) -> bool {
        true
    }

    fn rounds<'a>(&'a self, clock: &'a DatabaseClock) -> BoxFuture<'a, ()> {
        async move {
            loop {
                let more = self.report(clock).await.unwrap_or_else(|error| {
                    tracing::warn!(retry_in = ?PERIOD, "reporting late runs failed: {}", error_chain(&error));
                    false
                });
                if !more {
                    sleep(PERIOD).await;
                }
            }
        }
        .boxed()
    }
}
