//! The signals that end this process.

use anyhow::Context;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGINT and SIGTERM: kept from the first moment on, and told when asked.
pub(in crate::app) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    pub(in crate::app) fn listen() -> anyhow::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate()).context("listening for SIGTERM")?,
            interrupt: signal(SignalKind::interrupt()).context("listening for SIGINT")?,
        })
    }

    /// Waits for one of them.
    pub(in crate::app) async fn received(mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
