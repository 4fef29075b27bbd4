//! The log.

use std::io::{IsTerminal, stderr};

use anyhow::Context;
use tracing_subscriber::{EnvFilter, reload};

use super::settings::{LogFormat, Logs};

/// Silences libraries' log lines about failures, because the gateway reports each failure once itself. kube's client also quotes
/// replies of the API server that it can't parse, with all that is in them, and statuses.
const QUIET: &str = "sqlx=warn,kube_client::client=off,kube_client::client::tls=warn";

/// The filter of the log, which can be replaced while the process runs.
pub(super) struct LogFilter(Box<dyn Fn(EnvFilter) -> Result<(), reload::Error> + Send + Sync>);

impl LogFilter {
    /// Uses this filter from now on.
    ///
    /// # Errors
    /// The log has ended, which happens only at the end of the process.
    pub(super) fn replace(&self, filter: EnvFilter) -> Result<(), reload::Error> {
        (self.0)(filter)
    }
}

/// Starts the log on standard error.
pub(super) fn init(logs: &Logs) -> anyhow::Result<LogFilter> {
    let filter = log_filter(&logs.filter)?;
    let builder =
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(stderr).with_ansi(stderr().is_terminal());
    Ok(match logs.format {
        LogFormat::Text => {
            let builder = builder.with_target(false).with_filter_reloading();
            let filter = builder.reload_handle();
            builder.init();
            LogFilter(Box::new(move |next| filter.reload(next)))
        }
        LogFormat::Json => {
            let builder = builder.json().flatten_event(true).with_filter_reloading();
            let filter = builder.reload_handle();
            builder.init();
            LogFilter(Box::new(move |next| filter.reload(next)))
        }
    })
}

/// Returns the filter of the log for a level or a filter of the operator. It keeps libraries from logging bodies at any level.
///
/// # Errors
/// The text is no filter.
pub fn log_filter(filter: &str) -> anyhow::Result<EnvFilter> {
    EnvFilter::try_new(format!("{QUIET},{filter}"))
        .with_context(|| format!("--log {filter:?} is not a filter: give a level such as info, or target=level"))
}
