//! Logs that outlast their pods.

use anyhow::Context;
use clap::Args;

use super::files::Size;
use crate::{
    files::{CollectedLogs, FileStore},
    service::LogStoreSettings,
};

/// The largest log of a container that is stored, by default.
const LARGEST: Size = Size::gib(1);

#[derive(Debug, Clone, Args)]
pub(in crate::app) struct LogStore {
    /// Where the whole logs of drivers and executors are stored: a directory that all replicas share, or <s3://bucket/prefix>, gs://…,
    /// az://…, as for `--files-url` (docs/use/driver-logs.md) [default: only the end of a driver's log is kept, see `--kept-log`].
    #[arg(long, env = "SPARKGATE_LOGS_URL", value_name = "URL")]
    logs_url: Option<String>,
    /// Maximum size of the stored log of one container, such as 500MiB or 5GiB: what follows isn't stored.
    #[arg(long, env = "SPARKGATE_LOGS_MAX_SIZE", default_value_t = LARGEST, value_name = "SIZE")]
    logs_max_size: Size,
    /// Where a log collector of your own writes the log of a container, such as <s3://logs/{namespace}/{pod}/{container}.log>. It is
    /// read after the pod is gone. Fields: `{namespace}`, `{pod}`, `{uid}`, `{container}`, `{submission}`, `{attempt}`.
    #[arg(long, env = "SPARKGATE_LOGS_TEMPLATE", value_name = "TEMPLATE")]
    logs_template: Option<String>,
}

impl LogStore {
    /// Returns the settings of a gateway on this machine.
    pub(in crate::app) fn beside(directory: String) -> Self {
        Self { logs_url: Some(directory), ..Self::default() }
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

impl Default for LogStore {
    fn default() -> Self {
        Self { logs_url: None, logs_max_size: LARGEST, logs_template: None }
    }
}
