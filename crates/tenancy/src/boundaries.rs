//! Checks that the cluster has the objects with which it enforces the boundaries of tenants: those that `sparkgate admission` prints.

use std::{
    collections::{BTreeSet, HashMap},
    num::NonZeroU32,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures::{StreamExt, TryStreamExt, stream};
use serde_json::Value;
use sparkgate_admission::{GatewayAccount, Object, missing, objects};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::{access_file::AccessFile, tenancy::Tenancy};
use sparkgate_cluster::{self, Cluster, right_to_read};
use sparkgate_common::error::error_chain;

/// How often the access file is looked at: other tenants need other objects.
const LOOK: Duration = Duration::from_secs(5);
/// Pause between two checks while objects are missing.
const PERIOD: Duration = Duration::from_secs(180);
/// Maximum number of objects that are read at once.
const AT_ONCE: usize = 4;
/// What an operator does about findings.
const ADVICE: &str = "apply what `sparkgate admission` prints (docs/operate/admission.md)";

/// Compares the cluster with the access file, and keeps what is missing.
pub struct Boundaries {
    cluster: Cluster,
    access: Arc<AccessFile>,
    findings: Mutex<Vec<String>>,
}

impl Boundaries {
    pub fn new(cluster: Cluster, access: Arc<AccessFile>) -> Self {
        Self { cluster, access, findings: Mutex::default() }
    }

    /// Returns what was missing when the cluster was last checked.
    pub fn findings(&self) -> Vec<String> {
        self.findings.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Checks at start, whenever the access file has changed, and as long as objects are missing. Runs until `stop`.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        let mut checked: Option<(Arc<Tenancy>, Instant)> = None;
        loop {
            let current = self.access.current();
            let is_current = checked.as_ref().is_some_and(|(tenancy, at)| {
                Arc::ptr_eq(tenancy, &current) && (self.findings().is_empty() || at.elapsed() < PERIOD)
            });
            if !is_current {
                let check = self.check();
                if stop.run_until_cancelled(check).await.is_none() {
                    return;
                }
                checked = Some((current, Instant::now()));
            }
            if stop.run_until_cancelled(sleep(LOOK)).await.is_none() {
                return;
            }
        }
    }

    /// Compares the cluster with the present access file, and returns what is missing.
    ///
    /// # Errors
    /// The API server doesn't answer.
    pub async fn missing(&self) -> Result<Vec<String>, sparkgate_cluster::Error> {
        self.compare(&self.access.current()).await
    }

    /// Compares the cluster with the present access file. Logs a line for each finding that the last check didn't have.
    pub async fn check(&self) {
        let tenancy = self.access.current();
        let findings = match self.compare(&tenancy).await {
            Ok(findings) => findings,
            Err(error) => vec![format!("the boundaries of tenants can't be checked: {}", error_chain(&error))],
        };
        let mut kept = self.findings.lock().unwrap_or_else(PoisonError::into_inner);
        for finding in findings.iter().filter(|finding| !kept.contains(finding)) {
            tracing::warn!("a boundary of tenants is not enforced: {finding}");
        }
        if findings.is_empty() && !kept.is_empty() {
            tracing::info!("the cluster has all objects that enforce the boundaries of tenants");
        }
        *kept = findings;
    }

    async fn compare(&self, tenancy: &Tenancy) -> Result<Vec<String>, sparkgate_cluster::Error> {
        if tenancy.access().authentication().is_none() {
            return Ok(Vec::new());
        }
        let user = self.cluster.own_user().await?;
        let Some(account) = GatewayAccount::from_user(&user) else {
            return Ok(vec![format!(
                "the boundaries of tenants are not checked: the gateway calls the API server as {user}, which is no service \
                 account"
            )]);
        };
        let objects = match objects(tenancy.access(), &account, NonZeroU32::MIN) {
            Ok(objects) => objects,
            Err(error) => return Ok(vec![error_chain(&error)]),
        };
        let each: Vec<_> = objects.iter().map(|object| self.read(object)).collect();
        let read: Vec<Read> = stream::iter(each).buffered(AT_ONCE).try_collect().await?;
        let mut denied = BTreeSet::new();
        let (mut readable, mut found) = (Vec::new(), HashMap::new());
        for (object, read) in objects.into_iter().zip(read) {
            match read {
                Read::Denied => drop(denied.insert(right_to_read(object.kind()))),
                Read::There(there) => {
                    found.insert(key(object.kind(), object.namespace(), object.name()), there);
                    readable.push(object);
                }
                Read::Missing => readable.push(object),
            }
        }
        let missing = missing(&readable, |kind, namespace, name| found.get(&key(kind, namespace, name)).cloned());
        let mut findings: Vec<_> = missing
            .into_iter()
            .map(|what| format!("the cluster doesn't enforce a boundary of tenants: {what}: {ADVICE}"))
            .collect();
        if !denied.is_empty() {
            let rights: Vec<_> = denied.into_iter().collect();
            let rights = rights.join(", ");
            findings.push(format!(
                "some boundaries of tenants can't be checked: the account lacks rights ({rights}): {ADVICE}"
            ));
        }
        Ok(findings)
    }

    async fn read(&self, object: &Object) -> Result<Read, sparkgate_cluster::Error> {
        match self.cluster.object(object.kind(), object.namespace(), object.name()).await {
            Ok(Some(there)) => Ok(Read::There(there)),
            Ok(None) => Ok(Read::Missing),
            Err(sparkgate_cluster::Error::Denied { .. }) => Ok(Read::Denied),
            Err(error) => Err(error),
        }
    }
}

/// The answer to one read.
enum Read {
    There(Value),
    Missing,
    Denied,
}

fn key(kind: &str, namespace: Option<&str>, name: &str) -> (String, Option<String>, String) {
    (kind.to_owned(), namespace.map(str::to_owned), name.to_owned())
}
