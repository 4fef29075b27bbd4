//! Whether this process can do its work.

use std::{
    collections::HashSet,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use super::{Gateway, error::chain};

/// An answer to a readiness probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    Ready,
    /// Not now, and why.
    NotReady(String),
}

/// What is known of the watch.
#[derive(Debug)]
pub struct WatchHealth {
    expected: usize,
    state: Mutex<WatchState>,
}

#[derive(Debug, Default)]
struct WatchState {
    listed: HashSet<Option<String>>,
    broken: Option<(Instant, String)>,
    draining: bool,
}

/// A watch that can't be restored complains at least this often; silence after a complaint means that it works again.
const SILENCE_MEANS_WELL: Duration = Duration::from_secs(45);

impl WatchHealth {
    /// For a watch over `expected` lists.
    pub fn new(expected: usize) -> Self {
        Self { expected, state: Mutex::default() }
    }

    pub(super) fn listed(&self, namespace: Option<String>) {
        self.with(|state| {
            state.listed.insert(namespace);
        });
    }

    pub(super) fn alive(&self) {
        self.with(|state| state.broken = None);
    }

    pub(super) fn broken(&self, reason: String) {
        self.with(|state| state.broken = Some((Instant::now(), reason)));
    }

    fn problem(&self) -> Option<String> {
        self.with(|state| {
            if state.draining {
                return Some("shutting down".to_owned());
            }
            if state.listed.len() < self.expected {
                let why = state.broken.as_ref().map(|(_, reason)| format!(": {reason}")).unwrap_or_default();
                return Some(format!("the driver pods have not been listed yet{why}"));
            }
            let broken = state.broken.as_ref().filter(|(since, _)| since.elapsed() < SILENCE_MEANS_WELL);
            broken.map(|(_, reason)| format!("the watch of driver pods is interrupted: {reason}"))
        })
    }

    fn with<T>(&self, act: impl FnOnce(&mut WatchState) -> T) -> T {
        act(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Gateway {
    /// Whether submissions can be accepted and followed just now.
    pub async fn readiness(&self) -> Readiness {
        if let Err(error) = self.store.ping().await {
            return Readiness::NotReady(chain(&error));
        }
        self.watch.problem().map_or(Readiness::Ready, Readiness::NotReady)
    }

    /// From now on this process is not ready: it is going away.
    pub fn drain(&self) {
        self.watch.with(|state| state.draining = true);
    }
}
