//! The cluster that the database belongs to.
//!
//! With another cluster's API server, the gateway would take every driver of this database for lost, and start retries there
//! while the first drivers run. So the uids of namespaces are stored, and compared before a driver is launched, killed or given
//! up.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use sparkgate_cluster::{Cluster, SYSTEM};
use sparkgate_common::error::{Error, error_chain};
use sparkgate_store::Store;

/// The database and the cluster don't belong together.
#[derive(Debug, thiserror::Error)]
pub enum HomeClusterError {
    /// The API server belongs to another cluster than the database.
    #[error(
        "this is not the cluster that the database belongs to: the uid of its namespace {namespace} is different. \
         Point the gateway at the right cluster, or move the database with `sparkgate adopt-cluster`"
    )]
    Other { namespace: String },
    /// Nothing that the API server shows belongs to the database's cluster or to another one.
    #[error(
        "it isn't known whether this is the cluster that the database belongs to: the account can read none of the namespaces \
         {known}, by which it is recognized. Give it the right to get kube-system (deploy/kubernetes.yaml), or see what answers in \
         place of the API server"
    )]
    Unknown { known: String },
    /// A database isn't moved while drivers may run in its present cluster.
    #[error(
        "{0} submissions may have drivers in the cluster that the database belongs to. Wait until they end, kill them there, \
         or pass --with-live-submissions: they then end as LOST, and those that ask for retries are started again here"
    )]
    LiveDrivers(u64),
    #[error(transparent)]
    Service(#[from] Error),
}

impl HomeClusterError {
    /// Returns whether a retry may succeed.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Unknown { .. } => true,
            Self::Service(error) => error.may_pass(),
            Self::Other { .. } | Self::LiveDrivers(_) => false,
        }
    }
}

/// How long a comparison is valid for launches and kills.
pub const FRESH: Duration = Duration::from_secs(15);
/// Pause before a failed comparison is repeated.
const AGAIN: Duration = Duration::from_secs(1);

/// The cluster behind the API server, compared with the database's own.
pub struct HomeCluster {
    store: Store,
    cluster: Cluster,
    /// The last comparison.
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    asked: Option<Instant>,
    /// The last comparison found the database's own cluster.
    ours: bool,
    /// It is another one, for this reason.
    problem: Option<String>,
    /// It may be another one, for this reason.
    doubt: Option<String>,
}

impl HomeCluster {
    pub fn new(store: Store, cluster: Cluster) -> Self {
        Self { store, cluster, known: Mutex::default() }
    }

    /// Returns why nothing is launched or followed, if the API server belongs to another cluster.
    pub fn problem(&self) -> Option<String> {
        self.with(|known| known.problem.clone())
    }

    /// Returns why nothing is launched or followed for now, if the API server may belong to another cluster.
    pub fn doubt(&self) -> Option<String> {
        self.with(|known| known.doubt.clone())
    }

    fn with<T>(&self, act: impl FnOnce(&mut Known) -> T) -> T {
        act(&mut self.known.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns whether the API server belongs to the database's own cluster, from a comparison that is at most as old as `age`.
    /// While the API server doesn't answer, the last result holds.
    pub async fn is_here(&self, age: Duration) -> bool {
        let answered = self.with(|known| {
            let age = if known.ours { age } else { AGAIN };
            known.asked.is_some_and(|asked| asked.elapsed() < age).then_some(known.ours)
        });
        if let Some(ours) = answered {
            return ours;
        }
        match self.check().await {
            Ok(()) => {}
            Err(error @ HomeClusterError::Other { .. }) => {
                tracing::error!("nothing is launched, killed or followed: {}", error_chain(&error));
            }
            Err(error) => tracing::warn!("the cluster can't be compared with the database's: {}", error_chain(&error)),
        }
        self.with(|known| known.ours)
    }

    /// Compares the cluster with the one that the database belongs to. A database that belongs to none yet becomes this
    /// cluster's.
    ///
    /// # Errors
    /// [`HomeClusterError::Other`]; [`HomeClusterError::Unknown`]; or the database or the API server doesn't answer.
    pub async fn check(&self) -> Result<(), HomeClusterError> {
        self.with(|known| known.asked = Some(Instant::now()));
        let checked = check(&self.store, &self.cluster).await;
        self.with(|known| match &checked {
            Ok(()) => (known.ours, known.problem, known.doubt) = (true, None, None),
            Err(error @ HomeClusterError::Other { .. }) => {
                (known.ours, known.problem, known.doubt) = (false, Some(error.to_string()), None)
            }
            Err(error @ HomeClusterError::Unknown { .. }) => {
                (known.ours, known.problem, known.doubt) = (false, None, Some(error.to_string()))
            }
            Err(HomeClusterError::LiveDrivers(_) | HomeClusterError::Service(_)) => {}
        });
        checked
    }
}

/// Makes this cluster the database's own. Unless it keeps the `same_store`, it counts as a copy of a database that is still used: it
/// changes nothing in the stores of files and logs, and sends no webhook about what it was copied with.
///
/// # Errors
/// [`HomeClusterError::LiveDrivers`] if submissions may have drivers in the other cluster and `with_live` isn't set; or the
/// database or the API server doesn't answer.
pub async fn adopt_cluster(
    store: &Store,
    cluster: &Cluster,
    with_live: bool,
    same_store: bool,
) -> Result<(), HomeClusterError> {
    let live = store.count_with_a_driver().await.map_err(Error::from)?;
    if live > 0 && !with_live {
        return Err(HomeClusterError::LiveDrivers(live));
    }
    // Detects an API server that doesn't answer before the old cluster is forgotten.
    cluster.namespace_uids().await.map_err(Error::from)?;
    // Before anything is recorded here that a webhook could tell.
    let noted = if same_store { store.become_original().await } else { store.become_copy().await };
    noted.map_err(Error::from)?;
    store.forget_cluster().await.map_err(Error::from)?;
    check(store, cluster).await
}

async fn check(store: &Store, cluster: &Cluster) -> Result<(), HomeClusterError> {
    let here = cluster.namespace_uids().await.map_err(Error::from)?;
    if here.is_empty() {
        tracing::debug!("no namespace can be read, so another cluster would not be detected");
    }
    let known = store.cluster_namespaces().await.map_err(Error::from)?;
    let verdict = compare(&known, &here);
    match verdict {
        Verdict::Other(namespace) => return Err(HomeClusterError::Other { namespace }),
        Verdict::Unknown => {
            return Err(HomeClusterError::Unknown { known: known.into_keys().collect::<Vec<_>>().join(", ") });
        }
        Verdict::Same | Verdict::SameSystem => {}
    }
    if here.iter().any(|(namespace, uid)| known.get(namespace) != Some(uid)) {
        store.keep_cluster_namespaces(&here, verdict == Verdict::SameSystem).await.map_err(Error::from)?;
    }
    Ok(())
}

#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Certainly the same cluster, even if its other namespaces were recreated.
    SameSystem,
    /// No namespace differs.
    Same,
    /// Another cluster, proven by this namespace.
    Other(String),
    /// Nothing that is known can be read here.
    Unknown,
}

pub fn compare(known: &BTreeMap<String, String>, here: &BTreeMap<String, String>) -> Verdict {
    match (known.get(SYSTEM), here.get(SYSTEM)) {
        (Some(known), Some(here)) if known == here => Verdict::SameSystem,
        (Some(_), Some(_)) => Verdict::Other(SYSTEM.to_owned()),
        _ => {
            let differs =
                |(namespace, uid): &(&String, &String)| known.get(*namespace).is_some_and(|known| known != *uid);
            if let Some((namespace, _)) = here.iter().find(differs) {
                return Verdict::Other(namespace.clone());
            }
            // Each cluster has `kube-system`: without it, and without any other namespace of the database's cluster, it may be any.
            // Of a cluster of which only namespaces of drivers are known, others may be served now.
            let is_other_set = !here.is_empty() && !known.contains_key(SYSTEM);
            let is_recognized = here.keys().any(|namespace| known.contains_key(namespace));
            if known.is_empty() || is_recognized || is_other_set { Verdict::Same } else { Verdict::Unknown }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uids(all: &[(&str, &str)]) -> BTreeMap<String, String> {
        all.iter().map(|(namespace, uid)| ((*namespace).to_owned(), (*uid).to_owned())).collect()
    }

    #[test]
    fn the_system_namespace_identifies_the_cluster_and_others_do_where_it_cannot_be_read() {
        let known = uids(&[(SYSTEM, "a"), ("spark", "b")]);
        assert_eq!(compare(&uids(&[]), &known), Verdict::Same, "the first cluster");
        assert_eq!(compare(&known, &known), Verdict::SameSystem);
        assert_eq!(compare(&known, &uids(&[(SYSTEM, "a"), ("spark", "made anew")])), Verdict::SameSystem);
        assert_eq!(compare(&known, &uids(&[(SYSTEM, "x"), ("spark", "b")])), Verdict::Other(SYSTEM.to_owned()));
        assert_eq!(compare(&known, &uids(&[("spark", "x")])), Verdict::Other("spark".to_owned()));
        assert_eq!(
            compare(&known, &uids(&[("spark", "b")])),
            Verdict::Same,
            "the account may not read kube-system any more"
        );
        assert_eq!(compare(&known, &uids(&[("other", "x")])), Verdict::Unknown, "nothing in common");
        assert_eq!(compare(&known, &uids(&[])), Verdict::Unknown, "nothing can be read");
        let named = uids(&[("spark", "b")]);
        assert_eq!(compare(&named, &uids(&[("other", "x")])), Verdict::Same, "other namespaces are served now");
        assert_eq!(compare(&named, &uids(&[])), Verdict::Unknown);
        assert_eq!(compare(&uids(&[]), &uids(&[])), Verdict::Same, "none was ever read");
        assert_eq!(compare(&named, &uids(&[(SYSTEM, "x"), ("spark", "x")])), Verdict::Other("spark".to_owned()));
    }
}
