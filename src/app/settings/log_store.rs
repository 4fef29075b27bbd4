//! Logs that outlast their pods.

use anyhow::Context;
use clap::Args;

use super::{files::Size, kept_log::KeptLog};
use sparkgate_files::{CollectedLogs, FileStore};
use sparkgate_service::LogStoreSettings;

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Logs of drivers and executors")]
pub(in crate::app) struct LogStore {
    /// How much of the end of a driver's log is kept, compressed in the database, after its pod is gone: a size such as
    /// 256KiB or 1MiB of text, at most 4MiB, or `off`.
    #[arg(long, env = "SPARKGATE_KEPT_LOG", default_value_t = KeptLog::default(), value_name = "SIZE|off")]
    kept_log: KeptLog,
    /// Where the whole logs of drivers and executors are stored: a directory that all replicas share, or the URL of a store such as
    /// <s3://bucket/prefix>, gs://…, az://…, as for `--files-url` (docs/use/driver-logs.md) [default: only the end of a driver's log is kept].
    #[arg(long, env = "SPARKGATE_LOGS_URL", value_name = "DIR|URL")]
    logs_url: Option<String>,
    /// Maximum size of the stored log of one container, such as 500MiB or 5GiB: its head is stored, and a line that says that the rest isn't.
    #[arg(long, env = "SPARKGATE_LOGS_MAX_SIZE", default_value_t = Size::gib(1), value_name = "SIZE")]
    logs_max_size: Size,
    /// Where a log collector of your own writes the log of a container, such as <s3://logs/{namespace}/{pod}/{container}.log>. It is
    /// read after the pod is gone. Fields: `{namespace}`, `{pod}`, `{uid}`, `{container}`, `{submission}`, `{attempt}`.
    #[arg(long, env = "SPARKGATE_LOGS_TEMPLATE", value_name = "TEMPLATE")]
    logs_template: Option<String>,
}

impl LogStore {
    /// Returns how much of the end of a driver's log is kept, in bytes; 0 for nothing.
    pub(in crate::app) fn kept_bytes(&self) -> usize {
        self.kept_log.bytes()
    }

    /// Opens the store of logs, if there is one.
    ///
    /// # Errors
    /// A setting or the directory can't be used.
    pub(in crate::app) fn open(&self) -> anyhow::Result<Option<(FileStore, LogStoreSettings)>> {
        let Some(url) = &self.logs_url else { return Ok(None) };
        let store = FileStore::open(url).context("--logs-url")?;
        Ok(Some((store, LogStoreSettings { largest: self.logs_max_size.bytes() })))
    }

    /// Opens the store of the collector, if there is one.
    ///
    /// # Errors
    /// As for [`Self::open`].
    pub(in crate::app) fn open_collected(&self) -> anyhow::Result<Option<CollectedLogs>> {
        self.logs_template.as_deref().map(CollectedLogs::open).transpose().context("--logs-template")
    }
}
