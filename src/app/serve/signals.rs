//! The signals that end this process.

use anyhow::Context;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGINT and SIGTERM: caught from the creation of this value on, and reported by [`received`](Self::received).
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

    /// Waits for one of the signals. Returns at once if one has arrived since [`listen`](Self::listen).
    pub(in crate::app) async fn received(mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
