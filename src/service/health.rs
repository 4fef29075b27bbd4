//! Whether this process can do its work.

use std::{
    collections::{HashMap, HashSet},
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
    broken: HashMap<Option<String>, Breakage>,
    draining: bool,
}

#[derive(Debug)]
struct Breakage {
    since: Instant,
    last: Instant,
    reason: String,
}

/// A watch that stays broken complains at least this often (kube pauses for a minute at most): after a longer silence it
/// works again.
const SILENCE_MEANS_WELL: Duration = Duration::from_secs(75);
/// A connection that is made anew at once is no reason to send clients elsewhere.
const TOLERATED: Duration = Duration::from_secs(10);

impl WatchHealth {
    /// For a watch over `expected` lists.
    pub fn new(expected: usize) -> Self {
        Self { expected, state: Mutex::default() }
    }

    pub(super) fn listed(&self, namespace: Option<String>) {
        self.with(|state| {
            state.broken.remove(&namespace);
            state.listed.insert(namespace);
        });
    }

    pub(super) fn broken(&self, namespace: Option<String>, reason: String) {
        let now = Instant::now();
        self.with(|state| {
            let known = state.broken.get(&namespace).filter(|known| known.last.elapsed() < SILENCE_MEANS_WELL);
            let since = known.map_or(now, |known| known.since);
            state.broken.insert(namespace, Breakage { since, last: now, reason });
        });
    }

    fn problem(&self) -> Option<String> {
        self.with(|state| {
            if state.draining {
                return Some("shutting down".to_owned());
            }
            if state.listed.len() < self.expected {
                let why = state.broken.values().next().map(|broken| format!(": {}", broken.reason)).unwrap_or_default();
                return Some(format!("the driver pods have not been listed yet{why}"));
            }
            let lasting = |broken: &&Breakage| {
                broken.last.elapsed() < SILENCE_MEANS_WELL && broken.last.duration_since(broken.since) > TOLERATED
            };
            let broken = state.broken.values().find(lasting)?;
            Some(format!("the watch of driver pods is interrupted: {}", broken.reason))
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
