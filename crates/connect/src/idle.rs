//! The end of sessions that no client uses, by one replica for all.

use std::time::Duration;

use futures::{FutureExt, future::BoxFuture};
use tokio::time::sleep;

use super::Connect;
use sparkgate_common::error::{Error, error_chain};
use sparkgate_core::{leadership::clock::DatabaseClock, ports::Sweep};
use sparkgate_store::{Actor, AuditNote, Scope};

/// Pause between two rounds.
const PERIOD: Duration = Duration::from_secs(10);
/// How many rows a round deletes that are no longer kept.
const FORGOTTEN: u32 = 1000;
/// The principal of the ends, in the audit.
const BY: &str = "sparkgate:idle";

impl Sweep for Connect {
    fn lease(&self) -> &'static str {
        "connect"
    }

    fn is_needed(&self) -> bool {
        self.settings.listen.is_some()
    }

    fn rounds<'a>(&'a self, clock: &'a DatabaseClock) -> BoxFuture<'a, ()> {
        async move {
            loop {
                if let Err(error) = self.end_idle(clock).await {
                    tracing::warn!(retry_in = ?PERIOD, "ending idle sessions failed: {}", error_chain(&error));
                }
                sleep(PERIOD).await;
            }
        }
        .boxed()
    }
}

impl Connect {
    /// Ends the sessions that are idle, and frees the names of those that have ended.
    async fn end_idle(&self, clock: &DatabaseClock) -> Result<(), Error> {
        if let Some(until) = clock.believed_until("ends of idle sessions").await? {
            for id in self.store.idle_connect_sessions(Some(until)).await? {
                let by = Actor {
                    principal: BY.to_owned(),
                    address: None,
                    request_id: String::new(),
                    note: AuditNote::default(),
                };
                let killed = self.store.all().request_kill(&id, &Scope::installation(), Some(&by)).await?;
                if killed.live {
                    tracing::info!(submission = %id, "idle session ended");
                    self.wakeups.work_is_due();
                    self.wakeups.state_changed();
                }
            }
        }
        Ok(self.store.end_connect_sessions(FORGOTTEN).await?)
    }
}
