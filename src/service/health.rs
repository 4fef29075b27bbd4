//! Whether this process can do its work.

use std::{
    collections::HashMap,
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

/// What is known of the watches.
#[derive(Debug)]
pub struct WatchHealth(Mutex<State>);

#[derive(Debug)]
struct State {
    scopes: HashMap<Option<String>, Scope>,
    draining: bool,
}

#[derive(Debug, Clone, Default)]
enum Scope {
    /// Not known yet who watches.
    #[default]
    Undecided,
    /// Another replica does.
    Elsewhere,
    Here {
        listed: bool,
        broken: Option<(Instant, String)>,
    },
}

/// A connection that is made anew at once is no reason to send clients elsewhere.
const TOLERATED: Duration = Duration::from_secs(10);

impl WatchHealth {
    /// For the watches of these namespaces; none means all together.
    pub fn new(namespaces: &[String]) -> Self {
        let scopes = match namespaces {
            [] => vec![None],
            named => named.iter().cloned().map(Some).collect(),
        };
        let scopes = scopes.into_iter().map(|scope| (scope, Scope::Undecided)).collect();
        Self(Mutex::new(State { scopes, draining: false }))
    }

    fn set(&self, scope: Option<&str>, change: impl FnOnce(&mut Scope)) {
        self.with(|state| change(state.scopes.entry(scope.map(str::to_owned)).or_default()));
    }

    pub(super) fn listed(&self, scope: Option<&str>) {
        self.set(scope, |scope| *scope = Scope::Here { listed: true, broken: None });
    }

    pub(super) fn works(&self, scope: Option<&str>) {
        self.set(scope, |scope| {
            if let Scope::Here { broken, .. } = scope {
                *broken = None;
            }
        });
    }

    pub(super) fn broken(&self, scope: Option<&str>, reason: String) {
        self.set(scope, |scope| {
            if let Scope::Here { broken, .. } = scope {
                let since = broken.as_ref().map_or_else(Instant::now, |(since, _)| *since);
                *broken = Some((since, reason));
            }
        });
    }

    fn problem(&self) -> Option<String> {
        self.with(|state| {
            if state.draining {
                return Some("shutting down".to_owned());
            }
            state.scopes.values().find_map(|scope| match scope {
                Scope::Elsewhere | Scope::Here { listed: true, broken: None } => None,
                Scope::Undecided => Some("it is not known yet who watches the pods".to_owned()),
                Scope::Here { listed: false, broken } => {
                    let why = broken.as_ref().map(|(_, reason)| format!(": {reason}")).unwrap_or_default();
                    Some(format!("the driver pods have not been listed yet{why}"))
                }
                Scope::Here { broken: Some((since, reason)), .. } => {
                    (since.elapsed() > TOLERATED).then(|| format!("the watch of driver pods is interrupted: {reason}"))
                }
            })
        })
    }

    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Gateway {
    /// Whether submissions can be accepted and followed just now.
    pub async fn readiness(&self) -> Readiness {
        if let Err(error) = self.store.ping().await {
            return Readiness::NotReady(chain(&error));
        }
        if let Some(problem) = self.home.problem() {
            return Readiness::NotReady(problem);
        }
        self.watch.problem().map_or(Readiness::Ready, Readiness::NotReady)
    }

    /// This replica begins to watch a namespace (`None`: all), or another one does.
    pub fn watches_here(&self, scope: Option<&str>, here: bool) {
        let now = if here { Scope::Here { listed: false, broken: None } } else { Scope::Elsewhere };
        self.watch.set(scope, |scope| *scope = now);
    }

    /// From now on this process is not ready: it is going away. Streams without an end of their own end now, and whoever
    /// follows changes is sent elsewhere.
    pub fn drain(&self) {
        self.closing.cancel();
        self.watch.with(|state| state.draining = true);
    }
}
