//! Settings: flags and `SPARKGATE_*` variables, one struct for each concern.

mod clean_up;
mod dev;
mod kept_log;
mod limits;
mod serve;
mod time_or_off;

use anyhow::bail;
use clap::{Args, ValueEnum};

pub(super) use clean_up::CleanUp;
pub(super) use dev::{Dev, Sandbox};
pub(super) use kept_log::KeptLog;
pub(super) use limits::Limits;
pub(super) use serve::{Http, Kubernetes, Place, Serve, Spark};

use crate::store::DatabaseSettings;

/// Where the log goes and how it looks.
#[derive(Debug, Args)]
pub(super) struct Logs {
    /// What to log: a level, or a filter such as `info,sparkgate::service=debug`.
    #[arg(long = "log", value_name = "FILTER", env = "SPARKGATE_LOG", default_value = "info", global = true)]
    pub(super) filter: String,
    /// Lines for people, or JSON for machines.
    #[arg(long = "log-format", env = "SPARKGATE_LOG_FORMAT", default_value = "text", global = true)]
    pub(super) format: LogFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum LogFormat {
    Text,
    Json,
}

#[derive(Debug, Args)]
pub(super) struct Database {
    /// postgres://user:password@host:port/name
    #[arg(long, env = "SPARKGATE_DATABASE_URL", hide_env_values = true)]
    database_url: String,
    /// Connections to open at most: two for leases, half of the others for the workers, the rest for requests (three of them
    /// to accept submissions, if there are 12 in all). At least 4; a few for each core is plenty.
    #[arg(long, env = "SPARKGATE_DATABASE_CONNECTIONS", default_value_t = 16, value_parser = clap::value_parser!(u32).range(4..))]
    database_connections: u32,
}

#[derive(Debug, Args)]
pub(super) struct AdoptCluster {
    #[command(flatten)]
    pub(super) database: Database,
    #[command(flatten)]
    pub(super) place: Place,
    /// Move although submissions may have drivers in the other cluster: they end as LOST here, and those that ask for retries
    /// are started again.
    #[arg(long)]
    pub(super) with_live_submissions: bool,
}

impl Database {
    pub(super) fn new(database_url: String) -> Self {
        Self { database_url, database_connections: 16 }
    }

    /// # Errors
    /// Not a URL of Postgres. The text may be a password that got into the wrong variable, so it isn't repeated.
    pub(super) fn settings(&self) -> anyhow::Result<DatabaseSettings> {
        let url = self.database_url.clone();
        if !["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme)) {
            bail!("the database URL is not a URL of Postgres: expected postgres://user:password@host:port/name");
        }
        Ok(DatabaseSettings { url, max_connections: self.database_connections })
    }
}
