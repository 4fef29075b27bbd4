//! Databases on the Postgres of `DATABASE_URL`, one for each measurement.

use std::{str::FromStr, time::Duration};

use anyhow::Context;
use sparkgate::store::{DatabaseSettings, Store};
use sqlx::{AssertSqlSafe, ConnectOptions, PgConnection, postgres::PgConnectOptions};

use crate::{bench::Bench, process::Process};

/// A database. [`Database::drop_it`] drops it.
pub(crate) struct Database {
    server: PgConnectOptions,
    name: String,
    url: String,
}

impl Database {
    /// Creates a database with the gateway's tables and no rows.
    pub(crate) async fn migrated(bench: &Bench) -> anyhow::Result<Self> {
        let database = Self::create(bench).await?;
        database.store().await?.close().await;
        Ok(database)
    }

    /// Returns the gateway's store on this database; creates missing tables.
    pub(crate) async fn store(&self) -> anyhow::Result<Store> {
        Ok(Store::connect(&DatabaseSettings { url: self.url.clone(), max_connections: 3 }).await?)
    }

    /// Creates an empty database.
    pub(crate) async fn create(bench: &Bench) -> anyhow::Result<Self> {
        let server = PgConnectOptions::from_str(&bench.database_url).context("reading DATABASE_URL")?;
        let name = format!("bench_{}", uuid::Uuid::new_v4().simple());
        let (before, _) = bench.database_url.rsplit_once('/').context("DATABASE_URL names no database")?;
        let url = format!("{before}/{name}");
        let database = Self { server, name, url };
        database.on_server(&format!("CREATE DATABASE {}", database.name)).await?;
        Ok(database)
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Opens a connection of our own.
    pub(crate) async fn connect(&self) -> anyhow::Result<PgConnection> {
        self.server.clone().database(&self.name).connect().await.context("connecting to a database")
    }

    /// Returns the CPU time of the database's connections so far, except the asking one. Background work isn't
    /// included.
    pub(crate) async fn cpu(&self) -> anyhow::Result<Duration> {
        self.backends().await?.into_iter().map(Process::cpu).sum()
    }

    /// Returns the memory of the same connections in MB, with their part of the buffers that they share.
    pub(crate) async fn memory(&self) -> anyhow::Result<f64> {
        self.backends().await?.into_iter().map(Process::share_of_memory).sum()
    }

    async fn backends(&self) -> anyhow::Result<Vec<Process>> {
        let question = "SELECT pid FROM pg_stat_activity
            WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()";
        let pids: Vec<i32> = sqlx::query_scalar(question).fetch_all(&mut self.connect().await?).await?;
        Ok(pids.into_iter().map(|pid| Process(pid.unsigned_abs())).collect())
    }

    /// Drops the database. Open connections are ended, so none may still be in use.
    pub(crate) async fn drop_it(self) -> anyhow::Result<()> {
        self.on_server(&format!("DROP DATABASE {} WITH (FORCE)", self.name)).await
    }

    async fn on_server(&self, statement: &str) -> anyhow::Result<()> {
        let mut server = self.server.connect().await.context("connecting to Postgres")?;
        sqlx::query(AssertSqlSafe(statement)).execute(&mut server).await.with_context(|| statement.to_owned())?;
        Ok(())
    }
}
