//! How long the steps of starts take, by tenant: each attempt is measured once, by one replica for all.

use std::time::Duration;

use futures::{FutureExt, future::BoxFuture};
use tokio::time::sleep;

use sparkgate_common::error::{Error, error_chain};
use sparkgate_core::{leadership::clock::DatabaseClock, ports::Sweep, submissions::startup::durations};
use sparkgate_metrics::{metrics, text};
use sparkgate_store::Store;

/// Pause between two rounds, unless there may be more right now.
const PERIOD: Duration = Duration::from_secs(30);
/// The most events of one statement.
const ROUND: u32 = 1000;

/// The feature.
pub struct Starts {
    store: Store,
}

impl Starts {
    pub fn new(store: Store) -> Self {
        Self { store }
    }

    /// Measures starts that no call has measured yet. Returns whether there may be more right now.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn measure(&self) -> Result<bool, Error> {
        let found = self.store.new_starts(ROUND).await?;
        for start in &found.starts {
            for (step, seconds) in durations(&start.times) {
                metrics().startup_step.with([text(&start.tenant), step.as_str().into()]).observe(seconds);
            }
        }
        Ok(found.more)
    }
}

impl Sweep for Starts {
    fn lease(&self) -> &'static str {
        "starts"
    }

    fn is_needed(&self) -> bool {
        true
    }

    fn rounds<'a>(&'a self, _: &'a DatabaseClock) -> BoxFuture<'a, ()> {
        async move {
            loop {
                let more = self.measure().await.unwrap_or_else(|error| {
                    tracing::warn!(retry_in = ?PERIOD, "measuring starts failed: {}", error_chain(&error));
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
