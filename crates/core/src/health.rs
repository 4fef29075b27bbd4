//! Readiness of this process.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::home_cluster::{HomeCluster, HomeClusterError};
use sparkgate_cluster::Cluster;
use sparkgate_common::error::error_chain;
use sparkgate_store::Store;
use sparkgate_tenancy::access_file::AccessFile;

/// The result of a readiness probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    Ready,
    /// Submissions are accepted, but an operator has to look: they wait because no replica reaches the cluster, or the access file
    /// or the settings can't be reloaded.
    Accepting(Reason),
    NotReady(Reason),
}

/// Why this process isn't ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// A text for every client.
    pub summary: &'static str,
    /// What is known beyond that, for operators: it names servers and namespaces, and quotes the API server.
    pub detail: Option<String>,
}

impl Reason {
    fn new(summary: &'static str, detail: Option<String>) -> Self {
        Self { summary, detail }
    }
}

/// The text for operators.
impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.summary)?;
        self.detail.iter().try_for_each(|detail| write!(f, ": {detail}"))
    }
}

/// Whether this process can work: its database, its cluster, its watches. Answers readiness probes, and drains the process.
pub struct Health {
    store: Store,
    pub home: HomeCluster,
    pub watch: WatchHealth,
    access: Arc<AccessFile>,
    /// Why the settings can't be reloaded.
    settings: Mutex<Option<String>>,
    /// Cancelled when this process shuts down, to end the streams to clients.
    closing: CancellationToken,
    /// What the log says last.
    logged: Mutex<Option<&'static str>>,
}

/// State of the watches, as far as this replica knows it.
#[derive(Debug)]
pub struct WatchHealth(Mutex<State>);

#[derive(Debug)]
struct State {
    scopes: HashMap<Option<String>, Scope>,
    /// Why this replica doesn't reach the API server.
    cut_off: Option<String>,
    /// When this replica last checked, without a watch of its own, whether it reaches the API server.
    looked: Option<Instant>,
    /// Since when observations of a scope that this replica watches wait to be written, or its watch is broken.
    behind: HashMap<Option<String>, Instant>,
    draining: bool,
}

/// Which replica watches a scope.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
enum Scope {
    /// Not known yet.
    #[default]
    Undecided,
    /// Another replica.
    Elsewhere,
    /// This one.
    Here { listed: bool, broken: Option<String> },
    /// None, and why this one can't.
    Nowhere { reason: String, refused: bool },
}

/// How often a replica without a watch checks whether it reaches the API server.
const LOOK: Duration = Duration::from_secs(3);
/// Timeout of the database check.
const SIGN_OF_LIFE: Duration = Duration::from_secs(3);

impl WatchHealth {
    /// Creates the state for the watches of these namespaces; an empty list means one watch of all namespaces.
    pub fn new(namespaces: &[String]) -> Self {
        let scopes = match namespaces {
            [] => vec![None],
            named => named.iter().cloned().map(Some).collect(),
        };
        let scopes = scopes.into_iter().map(|scope| (scope, Scope::Undecided)).collect();
        Self(Mutex::new(State { scopes, cut_off: None, looked: None, behind: HashMap::new(), draining: false }))
    }

    fn set(&self, scope: Option<&str>, change: impl FnOnce(&mut Scope)) {
        self.with(|state| change(state.scopes.entry(scope.map(str::to_owned)).or_default()));
    }

    /// Records that this replica starts to watch.
    pub fn begins(&self, scope: Option<&str>) {
        self.set(scope, |scope| *scope = Scope::Here { listed: false, broken: None });
        self.catches_up(scope);
    }

    /// Records that another replica watches.
    pub fn is_elsewhere(&self, scope: Option<&str>) {
        self.set(scope, |scope| *scope = Scope::Elsewhere);
        self.catches_up(scope);
    }

    /// Records that there are observations to write, or that the watch is broken.
    pub fn falls_behind(&self, scope: Option<&str>) {
        self.with(|state| state.behind.entry(scope.map(str::to_owned)).or_insert_with(Instant::now).to_owned());
    }

    /// Records that all observations are written.
    pub fn catches_up(&self, scope: Option<&str>) {
        self.with(|state| state.behind.remove(&scope.map(str::to_owned)));
    }

    /// Calls `each` for each scope: whether this replica's watch of it works, and for how long it has been behind.
    pub fn for_each(&self, each: impl Fn(Option<&str>, bool, Duration)) {
        self.with(|state| {
            for (name, scope) in &state.scopes {
                let is_active = *scope == Scope::Here { listed: true, broken: None };
                let behind = state.behind.get(name).map(Instant::elapsed);
                each(name.as_deref(), is_active, behind.unwrap_or_default());
            }
        });
    }

    pub fn listed(&self, scope: Option<&str>) {
        self.set(scope, |scope| *scope = Scope::Here { listed: true, broken: None });
    }

    /// Records that the watch works again.
    pub fn works(&self, scope: Option<&str>) {
        self.with(|state| {
            if let Some(Scope::Here { broken, .. }) = state.scopes.get_mut(&scope.map(str::to_owned)) {
                *broken = None;
                state.cut_off = None;
            }
        });
    }

    pub fn broken(&self, scope: Option<&str>, reason: String) {
        self.set(scope, |scope| {
            if let Scope::Here { broken, .. } = scope {
                *broken = Some(reason);
            }
        });
    }

    /// Records that this replica gives up a watch that was broken for too long.
    pub fn gives_up(&self, scope: Option<&str>) {
        self.with(|state| {
            let name = scope.map(str::to_owned);
            let Some(scope) = state.scopes.get_mut(&name) else { return };
            let Scope::Here { broken: Some(reason), .. } = scope else { return };
            state.cut_off = Some(reason.clone());
            state.behind.remove(&name);
            *scope = Scope::Nowhere { reason: std::mem::take(reason), refused: false };
        });
    }

    /// Records that the initial list of a watch succeeded.
    pub fn reached(&self) {
        self.with(|state| (state.cut_off, state.looked) = (None, Some(Instant::now())));
    }

    /// Records that the initial list failed. `refused`: the API server refused it.
    pub fn unreached(&self, scope: Option<&str>, reason: String, refused: bool) {
        self.with(|state| {
            state.looked = Some(Instant::now());
            let scope = state.scopes.entry(scope.map(str::to_owned)).or_default();
            if *scope != Scope::Elsewhere {
                *scope = Scope::Nowhere { reason: reason.clone(), refused };
            }
            state.cut_off = Some(reason);
        });
    }

    /// Returns whether this replica should check that it reaches the API server. A working watch makes the check unnecessary.
    pub fn is_look_due(&self) -> bool {
        self.with(|state| {
            let watches = |scope: &Scope| matches!(scope, Scope::Here { broken: None, .. });
            !state.scopes.values().any(watches) && state.looked.is_none_or(|at| at.elapsed() >= LOOK)
        })
    }

    /// Returns whether another replica reaches the API server and this one doesn't.
    pub fn is_cut_off(&self) -> bool {
        self.with(|state| state.cut_off.is_some() && state.scopes.values().any(|scope| *scope == Scope::Elsewhere))
    }

    fn readiness(&self) -> Readiness {
        self.with(|state| {
            if state.draining {
                return Readiness::NotReady(Reason::new("the process is shutting down", None));
            }
            let State { scopes, cut_off, .. } = state;
            let not_ready = scopes.values().find_map(|scope| match scope {
                Scope::Here { listed: true, .. } | Scope::Nowhere { refused: false, .. } => None,
                Scope::Elsewhere => {
                    let summary = "another replica watches the pods, and this one is cut off from the cluster";
                    Some(Reason::new(summary, Some(cut_off.clone()?)))
                }
                Scope::Undecided => Some(Reason::new("it is not known yet which replica watches the pods", None)),
                Scope::Here { listed: false, broken } => {
                    Some(Reason::new("the driver pods have not been listed yet", broken.clone()))
                }
                Scope::Nowhere { reason, refused: true } => {
                    Some(Reason::new("the driver pods can't be listed", Some(reason.clone())))
                }
            });
            let accepting = scopes.values().find_map(|scope| match scope {
                Scope::Nowhere { reason, .. } | Scope::Here { broken: Some(reason), .. } => {
                    Some(Reason::new("submissions wait for the cluster", Some(reason.clone())))
                }
                _ => None,
            });
            let accepting = || accepting.map(Readiness::Accepting);
            not_ready.map(Readiness::NotReady).or_else(accepting).unwrap_or(Readiness::Ready)
        })
    }

    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Health {
    pub fn new(store: Store, cluster: Cluster, access: Arc<AccessFile>, closing: CancellationToken) -> Self {
        let watch = WatchHealth::new(cluster.namespaces());
        let home = HomeCluster::new(store.clone(), cluster);
        Self { home, store, watch, access, settings: Mutex::default(), closing, logged: Mutex::default() }
    }

    /// Compares the cluster with the one that the database belongs to. A database that belongs to none yet becomes this
    /// cluster's.
    ///
    /// # Errors
    /// [`HomeClusterError::Other`]; or the database or the API server doesn't answer.
    pub async fn check_cluster(&self) -> Result<(), HomeClusterError> {
        self.home.check().await
    }

    /// Returns whether submissions can be accepted and followed. The log says when that changes.
    pub async fn readiness(&self) -> Readiness {
        let unavailable = |detail| Readiness::NotReady(Reason::new("the database is not available", Some(detail)));
        let elsewhere = |detail| {
            Readiness::NotReady(Reason::new("the cluster is not the one that the database belongs to", Some(detail)))
        };
        let readiness = match timeout(SIGN_OF_LIFE, self.store.ping()).await {
            Ok(Ok(())) => self.home.problem().map_or_else(|| self.watch.readiness(), elsewhere),
            Ok(Err(error)) => unavailable(error_chain(&error)),
            Err(_) => unavailable(format!("it doesn't answer within {SIGN_OF_LIFE:?}")),
        };
        let access = || Some(Reason::new("the access file can't be reloaded", Some(self.access.trouble()?)));
        let settings = || Some(Reason::new("the settings can't be reloaded", Some(self.settings_trouble()?)));
        let doubt = || Some(Reason::new("submissions wait: the cluster can't be recognized", Some(self.home.doubt()?)));
        let readiness = match readiness {
            Readiness::Ready => {
                doubt().or_else(access).or_else(settings).map_or(Readiness::Ready, Readiness::Accepting)
            }
            readiness => readiness,
        };
        self.log(&readiness);
        readiness
    }

    /// Records why the settings can't be reloaded, or that they can.
    pub fn set_settings_trouble(&self, trouble: Option<String>) {
        *self.settings.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }

    /// Returns why the settings can't be reloaded.
    pub fn settings_trouble(&self) -> Option<String> {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Logs the readiness if it isn't the same as before. Clients get only the summary.
    fn log(&self, readiness: &Readiness) {
        let summary = match readiness {
            Readiness::Ready => None,
            Readiness::Accepting(reason) | Readiness::NotReady(reason) => Some(reason.summary),
        };
        let before = std::mem::replace(&mut *self.logged.lock().unwrap_or_else(PoisonError::into_inner), summary);
        if before == summary {
            return;
        }
        match readiness {
            Readiness::Ready => tracing::info!("ready again"),
            Readiness::Accepting(reason) => tracing::info!("ready, but {reason}"),
            Readiness::NotReady(reason) => tracing::info!("not ready: {reason}"),
        }
    }

    /// Starts the shutdown: the process reports that it is not ready, and ends streams that would not end by themselves, so
    /// that their clients reconnect to another replica.
    pub fn drain(&self) {
        self.closing.cancel();
        self.watch.with(|state| state.draining = true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn health() -> WatchHealth {
        WatchHealth::new(&["a".to_owned()])
    }

    /// Returns the detail, which is not in the text for clients.
    fn detail(reason: &Reason) -> &str {
        let detail = reason.detail.as_deref().unwrap_or_default();
        assert!(!reason.summary.contains(detail) && reason.to_string().ends_with(detail), "{reason:?}");
        detail
    }

    const A: Option<&str> = Some("a");

    #[test]
    fn a_replica_without_the_api_server_is_ready_only_if_all_replicas_are_cut_off() {
        let health = health();
        health.is_elsewhere(A);
        assert_eq!(health.readiness(), Readiness::Ready);
        assert!(health.is_look_due());
        health.unreached(A, "no route".to_owned(), false);
        assert!(matches!(health.readiness(), Readiness::NotReady(reason) if detail(&reason) == "no route"));
        assert!(health.is_cut_off() && !health.is_look_due());
        health.reached();
        assert_eq!((health.readiness(), health.is_cut_off()), (Readiness::Ready, false));

        health.begins(A);
        assert!(matches!(health.readiness(), Readiness::NotReady(_)), "nothing is listed yet");
        health.listed(A);
        health.broken(A, "no route".to_owned());
        assert!(matches!(health.readiness(), Readiness::Accepting(reason) if detail(&reason) == "no route"));
        health.gives_up(A);
        assert!(matches!(health.readiness(), Readiness::Accepting(reason) if detail(&reason) == "no route"));
        assert!(!health.is_cut_off(), "no other replica is better off");
        health.unreached(A, "forbidden".to_owned(), true);
        assert!(matches!(health.readiness(), Readiness::NotReady(reason) if detail(&reason) == "forbidden"));
        health.is_elsewhere(A);
        assert!(health.is_cut_off());
    }

    #[test]
    fn a_watch_that_works_again_makes_the_replica_ready() {
        let health = health();
        health.begins(A);
        health.listed(A);
        health.broken(A, "no route".to_owned());
        health.works(A);
        health.gives_up(A);
        assert_eq!(health.readiness(), Readiness::Ready);
    }
}
