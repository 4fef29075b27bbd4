//! The log.

use std::io::{IsTerminal, stderr};

use anyhow::Context;
use tracing_subscriber::EnvFilter;

use super::settings::{LogFormat, Logs};

/// Silences libraries' log lines about failures, because the gateway reports each failure once itself.
const QUIET: &str = "sqlx=warn,kube_client::client::builder=off";

/// Starts the log on standard error.
pub(super) fn init(logs: &Logs) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(format!("{QUIET},{}", logs.filter)).with_context(|| {
        format!("--log {:?} is not a filter: give a level such as info, or target=level", logs.filter)
    })?;
    let builder =
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(stderr).with_ansi(stderr().is_terminal());
    match logs.format {
        LogFormat::Text => builder.with_target(false).init(),
        LogFormat::Json => builder.json().flatten_event(true).init(),
    }
    Ok(())
}
