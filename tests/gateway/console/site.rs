//! A gateway with submissions to look at, that listens on a port.

use std::net::SocketAddr;

use axum::Router;
use serde_json::json;
use sparkgate::{
    access::Role,
    server::{ServerSettings, serve},
};
use sqlx::PgPool;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::access::world::World;

pub(crate) const TENANTS: &str = "
authentication: {}
tenants:
  red: {namespaces: [red]}
  blue: {namespaces: [blue]}
limits: {writes: 100000/s, reads: 100000/s, failedLogins: 100000/s}
";

pub(crate) struct Site {
    pub(crate) world: World,
    /// The key of an operator of all tenants.
    pub(crate) key: String,
    pub(crate) address: SocketAddr,
    _running: DropGuard,
}

impl Site {
    /// Starts the gateway, with the loop that numbers events.
    pub(crate) async fn start(pool: PgPool) -> Self {
        Self::with(pool, TENANTS).await
    }

    /// Starts it with this access file.
    pub(crate) async fn with(pool: PgPool, access: &str) -> Self {
        let world = World::new(pool, access).await;
        let key = world.key(Role::Admin, None).await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let running = run(&world, listener);
        Self { world, key, address, _running: running }
    }

    /// Stops the gateway, calls `meanwhile`, and starts another one on the same address.
    pub(crate) async fn restart<T>(self, meanwhile: impl AsyncFnOnce(&Self) -> T) -> (Self, T) {
        self.world.service.health.drain();
        let Self { world, key, address, _running: running } = self;
        drop(running);
        let before = Self { world, key, address, _running: CancellationToken::new().drop_guard() };
        let result = meanwhile(&before).await;
        let Self { world, key, address, .. } = before;
        let world = World::new(world.pool, TENANTS).await;
        // The port is free once the gateway before doesn't listen any more.
        let listener = loop {
            match TcpListener::bind(address).await {
                Ok(listener) => break listener,
                Err(_) => tokio::task::yield_now().await,
            }
        };
        let running = run(&world, listener);
        (Self { world, key, address, _running: running }, result)
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Submits jobs and returns their ids, the oldest first.
    pub(crate) async fn submit(&self, count: usize) -> Vec<String> {
        let mut ids = Vec::new();
        for _ in 0..count {
            ids.push(self.world.submit(&self.key, "red").await);
        }
        ids
    }

    /// Sets columns of a submission, as a run would.
    pub(crate) async fn set(&self, id: &str, columns: &str) {
        let statement = sqlx::AssertSqlSafe(format!("UPDATE submissions SET {columns} WHERE id = $1"));
        sqlx::query(statement).bind(id).execute(&self.world.pool).await.unwrap();
    }

    /// Makes a submission run, with executors and what its driver said of its jobs.
    pub(crate) async fn let_run(&self, id: &str) {
        let running = "state = 'RUNNING', name = 'orders-nightly', labels = '{\"team\": \"orders\"}', pod_uid = 'uid', node = 'node-1', \
                       started_at = created_at, executors_running = 1, executors_failed = 1";
        self.set(id, running).await;
        let executors = "INSERT INTO executors
                (submission_id, attempt, executor_id, pod_name, pod_uid, state, reason, exit_code, node, created_at, started_at, finished_at)
            VALUES ($1, 1, 1, 'orders-nightly-exec-1', '1', 'RUNNING', NULL, NULL, 'node-1', now(), now(), NULL),
                   ($1, 1, 2, 'orders-nightly-exec-2', '2', 'FAILED', 'OOMKilled', 137, 'node-2', now(), now(), now())";
        sqlx::query(executors).bind(id).execute(&self.world.pool).await.unwrap();
        let said = json!({
            "jobs": {"running": 1, "succeeded": 3, "failed": 0},
            "latest": [{"id": 3, "name": "count at orders.py:17", "status": "RUNNING", "tasks": 200, "completed_tasks": 120}],
            "failures": [{"stage": 2, "attempt": 0, "name": "count at orders.py:12", "reason": "ExecutorLostFailure: it was killed"}],
        });
        let summary = "INSERT INTO spark_summaries (submission_id, next_at, attempt, read_at, summary) VALUES ($1, now(), 1, now(), $2)";
        sqlx::query(summary).bind(id).bind(&said).execute(&self.world.pool).await.unwrap();
    }

    pub(crate) async fn page(&self, path: &str) -> crate::in_memory::Answer {
        self.world.get(&self.key, path).await
    }
}

/// Serves the gateway until the guard is dropped.
pub(crate) fn run(world: &World, listener: TcpListener) -> DropGuard {
    let stop = CancellationToken::new();
    // The same gateway behind a proxy that removes a prefix.
    let router =
        Router::new().nest_service("/behind/a/proxy", world.router.clone()).fallback_service(world.router.clone());
    tokio::spawn(serve(listener, router, ServerSettings::default(), stop.clone()));
    tokio::spawn(world.service.events.clone().run(stop.clone()));
    stop.drop_guard()
}

/// Returns the pages of a submission.
pub(crate) fn pages_of(id: &str) -> [String; 4] {
    ["", "/logs", "/configuration", "/rerun"].map(|page| format!("/console/submissions/{id}{page}"))
}
