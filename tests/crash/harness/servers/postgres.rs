//! A Postgres whose data survive SIGKILL.

use std::{
    path::{Path, PathBuf},
    process::Command,
    str::FromStr,
    time::Duration,
};

use sparkgate_testing::documented_grants;
use sqlx::{
    ConnectOptions, Connection, PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};

use crate::harness::{
    guard::guard,
    process::{Process, free_port, until},
};

/// The role of the gateway, which may not change the schema.
const GATEWAY: &str = "sparkgate";

pub(crate) struct Postgres {
    directory: PathBuf,
    pub(crate) port: u16,
    process: Option<Process>,
}

impl Postgres {
    pub(super) fn new() -> Self {
        Self { directory: guard().directory().join("postgres"), port: free_port(), process: None }
    }

    /// Starts it, if it doesn't run.
    pub(crate) fn start(&mut self) {
        if self.process.as_mut().is_some_and(|process| process.ended().is_none()) {
            return;
        }
        let mut command = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/crash/postgres"));
        command.arg(&self.directory).arg(self.port.to_string());
        self.process = Some(Process::spawn(&mut command, &guard().directory().join("postgres.log")));
    }

    /// Sends SIGKILL to all of its processes.
    pub(crate) fn kill(&mut self) {
        self.process = None;
    }

    /// Waits until it accepts connections. A start that came too soon after a kill is repeated.
    pub(crate) async fn ready(&mut self) {
        until("Postgres is ready", Duration::from_secs(60), async || {
            self.start();
            let Some(options) = self.options("postgres") else { return false };
            let connected = tokio::time::timeout(Duration::from_secs(5), options.connect()).await;
            matches!(connected, Ok(Ok(_)))
        })
        .await;
    }

    /// Creates a database; returns a pool of direct connections to it.
    pub(crate) async fn create_database(&self, name: &str) -> PgPool {
        let mut server = self.options("postgres").unwrap().connect().await.unwrap();
        let create = sqlx::AssertSqlSafe(format!("CREATE DATABASE \"{name}\""));
        sqlx::query(create).execute(&mut server).await.unwrap();
        server.close().await.unwrap();
        let pool = PgPoolOptions::new().max_connections(4).acquire_timeout(Duration::from_secs(5));
        pool.connect_lazy_with(self.options(name).unwrap())
    }

    /// Migrates a database as its owner, and lets the gateway's role use it.
    pub(crate) async fn migrate(&self, program: &Path, database: &str, pool: &PgPool) {
        let mut command = tokio::process::Command::new(program);
        command.arg("migrate").env("SPARKGATE_DATABASE_URL", self.url(database, self.port).unwrap());
        let output = command.output().await.unwrap();
        assert!(output.status.success(), "sparkgate migrate: {}", String::from_utf8_lossy(&output.stderr));
        let password = self.password().unwrap();
        // Runs that share the server may create the role at the same time.
        let create = format!(
            "DO $$ BEGIN CREATE ROLE {GATEWAY} LOGIN PASSWORD '{password}';
             EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$;
             REVOKE CREATE ON SCHEMA public FROM PUBLIC; {}",
            documented_grants(GATEWAY)
        );
        sqlx::raw_sql(sqlx::AssertSqlSafe(create)).execute(pool).await.unwrap();
    }

    /// Returns the URL of a database behind `port`, for the gateway.
    pub(crate) fn gateway_url(&self, database: &str, port: u16) -> Option<String> {
        self.url_of(GATEWAY, database, port)
    }

    /// Returns the URL of a database behind `port`, for its owner.
    pub(crate) fn url(&self, database: &str, port: u16) -> Option<String> {
        self.url_of("postgres", database, port)
    }

    fn url_of(&self, role: &str, database: &str, port: u16) -> Option<String> {
        Some(format!("postgres://{role}:{}@127.0.0.1:{port}/{database}", self.password()?))
    }

    fn password(&self) -> Option<String> {
        std::fs::read_to_string(self.directory.join("password")).ok()
    }

    fn options(&self, database: &str) -> Option<PgConnectOptions> {
        PgConnectOptions::from_str(&self.url(database, self.port)?).ok()
    }
}
