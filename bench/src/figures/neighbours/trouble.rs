//! The faults that one namespace, user or row causes.

use std::{fmt, net::SocketAddr, time::Duration};

use sparkgate_testing::request::request;
use sparkgate_testing::webhook::{Conduct, Webhook};
use sqlx::PgConnection;
use tokio::{task::JoinSet, time::sleep};

use super::BAD;
use crate::{gateway::Gateway, load::http::Connection, servers::Database};

/// Submissions of the misbehaving namespace: more than it may have in progress at once.
const QUEUED: usize = 150;
/// Clients that request the locked data.
const READERS: usize = 16;

#[derive(Clone, Copy)]
pub(super) enum Trouble {
    /// A webhook denies all pods of a namespace with 429.
    Denied,
    /// The webhook doesn't answer.
    Hanging,
    /// A transaction locks rows of submissions, and users try to kill these.
    LockedRows,
    /// A transaction locks the table of past usage, and users try to read it.
    LockedTable,
}

/// A fault that is in effect until [`Made::end`].
pub(super) struct Made<'a> {
    webhook: &'a Webhook,
    lock: Option<PgConnection>,
    clients: JoinSet<()>,
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Denied => "a namespace whose webhook denies everything",
            Self::Hanging => "a namespace whose webhook hangs",
            Self::LockedRows => "locked rows, and 16 clients that kill them",
            Self::LockedTable => "locked usage, and 16 clients that read it",
        })
    }
}

impl Trouble {
    pub(super) const ALL: [Self; 4] = [Self::Denied, Self::Hanging, Self::LockedRows, Self::LockedTable];

    pub(super) async fn make<'a>(
        self,
        gateway: &Gateway,
        database: &Database,
        webhook: &'a Webhook,
    ) -> anyhow::Result<Made<'a>> {
        let mut made = Made { webhook, lock: None, clients: JoinSet::new() };
        match self {
            Self::Denied => webhook.set(Conduct::Deny(429)),
            Self::Hanging => webhook.set(Conduct::Hang),
            Self::LockedRows | Self::LockedTable => {}
        }
        if matches!(self, Self::Denied | Self::Hanging) {
            let mut connection = Connection::open(gateway.address).await?;
            for n in 0..QUEUED {
                connection.post("/v1/submissions/create", request(n, BAD)).await?;
            }
            return Ok(made);
        }
        let mut lock = database.connect().await?;
        sqlx::raw_sql("BEGIN").execute(&mut lock).await?;
        let is_rows = matches!(self, Self::LockedRows);
        let statement = if is_rows {
            "SELECT id FROM submissions WHERE namespace = $1 ORDER BY number LIMIT 16 FOR UPDATE"
        } else {
            "SELECT id FROM submissions WHERE namespace = $1 ORDER BY number LIMIT 16"
        };
        let ids: Vec<String> = sqlx::query_scalar(statement).bind(BAD).fetch_all(&mut lock).await?;
        if !is_rows {
            sqlx::raw_sql("LOCK TABLE usage_by_day IN ACCESS EXCLUSIVE MODE").execute(&mut lock).await?;
        }
        made.lock = Some(lock);
        for id in ids.into_iter().cycle().take(READERS) {
            made.clients.spawn(ask_for_ever(gateway.address, id, is_rows));
        }
        Ok(made)
    }
}

async fn ask_for_ever(address: SocketAddr, id: String, kill: bool) {
    loop {
        if let Ok(mut connection) = Connection::open(address).await {
            let asked = if kill {
                connection.post(&format!("/v1/submissions/kill/{id}"), "{}".into()).await
            } else {
                connection.get("/v1/usage").await
            };
            drop(asked);
        }
        sleep(Duration::from_millis(10)).await;
    }
}

impl Made<'_> {
    /// Ends the fault, and waits until the work that it delayed is done.
    pub(super) async fn end(mut self) -> anyhow::Result<()> {
        self.webhook.set(Conduct::Allow);
        self.clients.shutdown().await;
        if let Some(mut lock) = self.lock.take() {
            sqlx::raw_sql("ROLLBACK").execute(&mut lock).await?;
        }
        sleep(Duration::from_secs(10)).await;
        Ok(())
    }
}
