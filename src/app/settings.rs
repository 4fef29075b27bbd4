//! Settings: flags, `SPARKGATE_*` variables and the keys of the file, one struct for each subject.

mod clean_up;
mod config;
mod connect;
mod dev;
mod file;
mod files;
mod kept_log;
mod kueue;
mod limits;
mod log_store;
mod prices;
mod serve;
mod spark_ui;
mod time_or_off;
mod webhooks;

use std::{fs, net::SocketAddr, num::NonZeroU32, path::PathBuf, time::Duration};

use anyhow::{Context, anyhow, bail};
use clap::{Args, Command, ValueEnum};
use secrecy::{ExposeSecret, SecretString};
use sparkgate_admission::GatewayAccount;

pub(super) use config::{ConfigCommand, Doctor};
pub(super) use dev::{Dev, Sandbox};
pub(super) use file::{FileFault, SettingsFile};
pub(super) use limits::Limits;
pub(super) use serve::{Place, Serve, Spark, SparkFiles, person};

use sparkgate_access::Role;
use sparkgate_policy::{Policy, PolicyDocument};
use sparkgate_spark::SecretPattern;
use sparkgate_store::DatabaseSettings;
use sparkgate_submission::parse_duration;

/// Settings of the log.
#[derive(Debug, Args)]
#[command(next_help_heading = "Log and traces")]
pub(super) struct Logs {
    /// Log level, or a filter such as `info,sparkgate::service=debug`; the crates are `sparkgate_store`, `sparkgate_cluster` and so on.
    #[arg(long = "log", value_name = "FILTER", env = "SPARKGATE_LOG", default_value = "info", global = true)]
    pub(super) filter: String,
    /// Format of the log.
    #[arg(long = "log-format", env = "SPARKGATE_LOG_FORMAT", default_value = "text", global = true)]
    pub(super) format: LogFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum LogFormat {
    Text,
    Json,
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Database")]
pub(super) struct Database {
    /// URL of the Postgres database: postgres://user:password@host:port/name, with `?sslmode=verify-full` for a server on another machine.
    /// Migrations are applied at the start, or earlier by `sparkgate migrate`.
    #[arg(long, env = "SPARKGATE_DATABASE_URL", hide_env_values = true, required = true)]
    database_url: Option<SecretString>,
    /// Maximum number of database connections, at least 4. Two are for leases, half of the others for the workers, the rest
    /// for requests (with 12 or more in total, three of these only accept submissions). A few per core are enough.
    #[arg(long, env = "SPARKGATE_DATABASE_CONNECTIONS", default_value_t = 16, value_parser = clap::value_parser!(u32).range(4..))]
    database_connections: u32,
}

/// Settings of `sparkgate healthcheck`: where the gateway beside it listens.
#[derive(Debug, Args)]
pub(super) struct Healthcheck {
    /// Listening address of the gateway.
    #[arg(long, env = "SPARKGATE_LISTEN", default_value = "127.0.0.1:6066")]
    pub(super) listen: SocketAddr,
    /// Management address of the gateway, which is asked instead: the other one may require https.
    #[arg(long, env = "SPARKGATE_MANAGEMENT_LISTEN", value_name = "ADDR")]
    pub(super) management_listen: Option<SocketAddr>,
}

impl Healthcheck {
    /// Returns the address to ask.
    pub(super) fn address(&self) -> SocketAddr {
        self.management_listen.unwrap_or(self.listen)
    }
}

#[derive(Debug, Args)]
pub(super) struct RotateInstallationKey {
    #[command(flatten)]
    pub(super) database: Database,
}

#[derive(Debug, Args)]
pub(super) struct AdoptCluster {
    /// Proceed although submissions may have drivers in the other cluster. They end as LOST here, and those with retries
    /// are started again.
    #[arg(long)]
    pub(super) with_live_submissions: bool,
    /// No other database with this one's submissions is used any more: keep its stores of files and logs. Without this, the database
    /// counts as a copy: it changes nothing in stores that another one may use, and sends no webhook about the submissions that it has.
    #[arg(long)]
    pub(super) same_store: bool,
    #[command(flatten)]
    pub(super) database: Database,
    #[command(flatten)]
    pub(super) place: Place,
}

#[derive(Debug, Args)]
pub(super) struct Render {
    /// A policy (docs/operate/policy.md) that judges the driver: its rules as YAML, without the word `policy`. The exit code is 1 if the
    /// driver breaks one.
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    #[command(flatten)]
    pub(super) spark: Spark,
}

impl Render {
    /// Reads the policy.
    ///
    /// # Errors
    /// The file can't be read, or is no policy.
    pub(super) fn policy(&self) -> anyhow::Result<Option<Policy>> {
        let Some(path) = &self.policy else { return Ok(None) };
        let text = fs::read_to_string(path).with_context(|| format!("reading the policy {}", path.display()))?;
        let document: PolicyDocument =
            serde_saphyr::from_str(&text).with_context(|| format!("parsing the policy {}", path.display()))?;
        let policy = Policy::compile(document, &[]).map_err(|faults| {
            let faults: Vec<_> = faults.iter().map(ToString::to_string).collect();
            anyhow!("the policy {} can't be used: {}", path.display(), faults.join("; "))
        })?;
        Ok(Some(policy))
    }
}

#[derive(Debug, Args)]
pub(super) struct Admission {
    /// The access file (docs/operate/access.md).
    #[arg(long, env = "SPARKGATE_ACCESS_FILE", value_name = "FILE")]
    pub(super) access_file: PathBuf,
    /// The gateway's service account: NAMESPACE/NAME.
    #[arg(long, default_value = "sparkgate/sparkgate", value_name = "ACCOUNT")]
    pub(super) gateway: GatewayAccount,
    /// How many applications may run in a namespace at once, each as large as the policy permits: the size of its quota.
    #[arg(long, default_value = "10", value_name = "COUNT")]
    pub(super) applications: NonZeroU32,
    /// A regular expression for names and values that are secrets besides those that are known: that of the gateway.
    #[arg(long, env = "SPARKGATE_SECRET_PATTERN", value_name = "REGEX")]
    pub(super) secret_pattern: Option<SecretPattern>,
}

#[derive(Debug, Args)]
pub(super) struct BootstrapKey {
    /// A name for the key, such as that of its owner.
    #[arg(long, default_value = "bootstrap")]
    pub(super) name: String,
    /// What the key may do: viewer, submitter, operator or admin.
    #[arg(long, default_value = "admin")]
    pub(super) role: Role,
    /// The tenant in which it may do that [default: all].
    #[arg(long)]
    pub(super) tenant: Option<String>,
    /// How long the key is valid, such as 24h or 90d.
    #[arg(long, default_value = "24h", value_parser = lifetime)]
    pub(super) expires: Duration,
    #[command(flatten)]
    pub(super) database: Database,
}

#[derive(Debug, Args)]
pub(super) struct PruneAudit {
    /// The age from which entries are deleted, such as 400d.
    #[arg(long, value_parser = lifetime, value_name = "TIME")]
    pub(super) older_than: Duration,
    #[command(flatten)]
    pub(super) database: Database,
}

/// Returns whether a setting changes without a restart.
pub(super) fn is_reloaded(name: &str) -> bool {
    let reloaded = SparkFiles::augment_args(Limits::augment_args(Command::new("reloaded")));
    name == "log" || reloaded.get_arguments().any(|option| option.get_long() == Some(name))
}

fn lifetime(text: &str) -> Result<Duration, &'static str> {
    parse_duration(text).ok_or("expected a time such as 24h or 90d, of ten years at most")
}

impl Database {
    /// Returns whether there is a URL. Only `sparkgate config` does without one.
    pub(super) fn is_set(&self) -> bool {
        self.database_url.is_some()
    }

    /// Returns the settings of the database.
    ///
    /// # Errors
    /// The URL is not a URL of Postgres. The error doesn't quote it, because it may be a password in the wrong variable.
    pub(super) fn settings(&self) -> anyhow::Result<DatabaseSettings> {
        let url = self.database_url.as_ref().context("no database: give --database-url")?.expose_secret().to_owned();
        if !["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme)) {
            bail!(
                "the database URL (--database-url) is not a URL of Postgres: expected \
                 postgres://user:password@host:port/name"
            );
        }
        Ok(DatabaseSettings { url, max_connections: self.database_connections })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_has_no_database_url() {
        let serve = Serve::from_flags([("database-url", "postgres://u:SEKRETPW@db.example/x".into())]).unwrap();
        let database = serve.database;
        assert!(!format!("{database:?}").contains("SEKRETPW"));
        assert!(!format!("{:?}", database.settings().unwrap()).contains("SEKRETPW"));
    }
}
