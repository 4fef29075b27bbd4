//! Checks of the cluster.

use std::{collections::BTreeSet, sync::Arc};

use chrono::TimeDelta;

use super::{
    defaults::Defaults,
    finding::{Finding, clocks},
};
use sparkgate_cluster::{self, ApiServer, Cluster, QuotaUse};
use sparkgate_common::error::error_chain;
use sparkgate_core::home_cluster::{Verdict, compare};
use sparkgate_store::Store;
use sparkgate_tenancy::{access_file::AccessFile, boundaries::Boundaries};

/// The oldest release of Kubernetes that the gateway needs, and the newest whose API it was built with.
const OLDEST: (u32, u32) = (1, 33);
const NEWEST: (u32, u32) = (1, 37);
/// Clocks that differ by this much make times of pods useless, and tokens invalid.
const FAR: TimeDelta = TimeDelta::seconds(60);
const ROLE: &str = "bind the account to a Role with the rules of deploy/kubernetes.yaml in this namespace";

/// Checks the API server, and whether it answers.
pub async fn check_api_server(cluster: &Cluster, url: &str, findings: &mut Vec<Finding>) -> bool {
    const CHECK: &str = "kubernetes.reachable";
    match cluster.api_server().await {
        Ok(server) => {
            findings.push(Finding::ok(CHECK, format!("the API server at {url} answers")));
            findings.push(version(&server));
            findings.push(match server.clock {
                Some((there, here)) => clocks("kubernetes.clock", "the API server", there, here, FAR),
                None => Finding::skipped("kubernetes.clock", "replies of the API server have no date"),
            });
            true
        }
        Err(error) => {
            let text = format!("the API server at {url} can't be used: {}", error_chain(&error));
            findings.push(Finding::failure(CHECK, text, "check the kubeconfig, its credentials, and the network"));
            false
        }
    }
}

fn version(server: &ApiServer) -> Finding {
    const CHECK: &str = "kubernetes.version";
    let ApiServer { version, release, .. } = server;
    let [(major, oldest), (_, newest)] = [OLDEST, NEWEST];
    match release {
        Some(release) if *release < OLDEST => {
            let text = format!("Kubernetes {version} is older than {major}.{oldest}");
            Finding::failure(CHECK, text, format!("upgrade the cluster to {major}.{oldest} or later"))
        }
        Some(release) if *release > NEWEST => {
            let text =
                format!("Kubernetes {version} is newer than {major}.{newest}, with which this release was built");
            Finding::warning(CHECK, text, "upgrade Sparkgate when a release for this version is there")
        }
        Some(_) => Finding::ok(CHECK, format!("Kubernetes {version} is supported")),
        None => Finding::warning(
            CHECK,
            format!("the version {version} can't be read"),
            "compare it with docs/operate/install.md",
        ),
    }
}

/// Checks namespaces, rights and quotas.
pub async fn check_namespaces(cluster: &Cluster, findings: &mut Vec<Finding>) {
    let named: Vec<_> = cluster.namespaces().iter().map(|name| Some(name.as_str())).collect();
    let places = if named.is_empty() { vec![None] } else { named };
    let mut denied = BTreeSet::new();
    for place in places {
        if let Some(namespace) = place {
            findings.push(exists(cluster, namespace).await);
        }
        findings.push(rights(cluster, place).await);
        if let Some(namespace) = place {
            match cluster.quotas(namespace).await {
                Ok(uses) => findings.push(quota(namespace, &uses)),
                Err(sparkgate_cluster::Error::Denied { .. }) => drop(denied.insert(namespace)),
                Err(error) => findings.push(unanswered("kubernetes.quota", &error)),
            }
        }
    }
    if !denied.is_empty() {
        let namespaces = denied.into_iter().collect::<Vec<_>>().join(", ");
        let text = format!("the account may not list resourcequotas ({namespaces}): see `kubectl get quota`");
        findings.push(Finding::skipped("kubernetes.quota", text));
    }
}

async fn exists(cluster: &Cluster, namespace: &str) -> Finding {
    const CHECK: &str = "kubernetes.namespace";
    match cluster.object("Namespace", None, namespace).await {
        Ok(Some(_)) => Finding::ok(CHECK, format!("the namespace {namespace} exists")),
        Ok(None) => {
            let text = format!("the namespace {namespace} (--namespaces) doesn't exist");
            Finding::failure(
                CHECK,
                text,
                format!("create it, or correct the setting: kubectl create namespace {namespace}"),
            )
        }
        Err(sparkgate_cluster::Error::Denied { .. }) => {
            Finding::skipped(CHECK, format!("the account may not get the namespace {namespace}"))
        }
        Err(error) => unanswered(CHECK, &error),
    }
}

async fn rights(cluster: &Cluster, place: Option<&str>) -> Finding {
    const CHECK: &str = "kubernetes.rights";
    let name = place.map_or_else(|| "all namespaces".to_owned(), |name| format!("the namespace {name}"));
    match cluster.missing_rights(place).await {
        Ok(missing) if missing.is_empty() => {
            Finding::ok(CHECK, format!("the account has all rights that the gateway needs in {name}"))
        }
        Ok(missing) => {
            let missing: Vec<_> = missing.iter().map(ToString::to_string).collect();
            Finding::failure(CHECK, format!("the account lacks rights in {name}: {}", missing.join(", ")), ROLE)
        }
        Err(error) => unanswered(CHECK, &error),
    }
}

fn quota(namespace: &str, uses: &[QuotaUse]) -> Finding {
    const CHECK: &str = "kubernetes.quota";
    let is_full = |one: &&QuotaUse| match (one.used.parse::<u64>(), one.hard.parse::<u64>()) {
        (Ok(used), Ok(hard)) => used >= hard,
        // The API server writes both in the same unit.
        _ => one.used == one.hard,
    };
    let full: Vec<_> = uses.iter().filter(is_full).collect();
    if full.is_empty() {
        let text = match uses.len() {
            0 => format!("the namespace {namespace} has no quota"),
            _ => format!("the quotas of the namespace {namespace} have room"),
        };
        return Finding::ok(CHECK, text);
    }
    let each = full.iter().map(|one| format!("{} {} of {} ({})", one.resource, one.used, one.hard, one.quota));
    let text = format!("quotas of the namespace {namespace} are used up: {}", each.collect::<Vec<_>>().join(", "));
    Finding::warning(CHECK, text, "raise the quota, or wait: drivers that don't fit are tried again")
}

/// Checks that the service accounts exist that defaults name.
pub async fn check_service_accounts(cluster: &Cluster, defaults: &Defaults, findings: &mut Vec<Finding>) {
    const CHECK: &str = "kubernetes.service-account";
    let mut denied = BTreeSet::new();
    for (account, namespace, origin) in defaults.service_accounts(cluster.namespaces()) {
        let name = format!("{namespace}/{account}");
        findings.push(match cluster.object("ServiceAccount", Some(&namespace), &account).await {
            Ok(Some(_)) => Finding::ok(CHECK, format!("the service account {name} of {origin} exists")),
            Ok(None) => {
                let text = format!("the service account {name} of {origin} doesn't exist: its drivers are refused");
                Finding::failure(
                    CHECK,
                    text,
                    format!("kubectl -n {namespace} create serviceaccount {account}, with its Role"),
                )
            }
            Err(sparkgate_cluster::Error::Denied { .. }) => {
                denied.insert(name);
                continue;
            }
            Err(error) => unanswered(CHECK, &error),
        });
    }
    if !denied.is_empty() {
        let names = denied.into_iter().collect::<Vec<_>>().join(", ");
        let text = format!("the account may not get serviceaccounts: see whether these exist: {names}");
        findings.push(Finding::skipped(CHECK, text));
    }
}

/// Checks that the cluster enforces the boundaries of tenants.
pub async fn check_admission(cluster: &Cluster, access: Arc<AccessFile>, findings: &mut Vec<Finding>) {
    const CHECK: &str = "kubernetes.admission";
    if access.current().access().authentication().is_none() {
        findings.push(Finding::ok(CHECK, "there are no tenants whose boundaries the cluster could enforce"));
        return;
    }
    let remedy = "apply what `sparkgate admission` prints (docs/operate/admission.md)";
    match Boundaries::new(cluster.clone(), access).missing().await {
        Ok(missing) if missing.is_empty() => {
            findings.push(Finding::ok(CHECK, "the cluster has all objects that enforce the boundaries of tenants"));
        }
        Ok(missing) => findings.extend(missing.into_iter().map(|text| Finding::warning(CHECK, text, remedy))),
        Err(error) => findings.push(unanswered(CHECK, &error)),
    }
}

/// Checks that the cluster is the one that the database belongs to.
pub async fn check_home(store: &Store, cluster: &Cluster) -> Finding {
    const CHECK: &str = "kubernetes.home-cluster";
    let known = match store.cluster_namespaces().await {
        Ok(known) => known,
        Err(error) => return super::database::not_read(CHECK, &error_chain(&error)),
    };
    match cluster.namespace_uids().await {
        Err(error) => unanswered(CHECK, &error),
        Ok(_) if known.is_empty() => Finding::ok(CHECK, "the database belongs to no cluster yet"),
        Ok(here) => match compare(&known, &here) {
            Verdict::Unknown => Finding::failure(
                CHECK,
                "the account can read none of the namespaces by which the database recognizes its cluster: nothing is launched",
                "give the account the right to get kube-system (deploy/kubernetes.yaml)",
            ),
            Verdict::SameSystem | Verdict::Same => Finding::ok(CHECK, "the database belongs to this cluster"),
            Verdict::Other(namespace) => Finding::failure(
                CHECK,
                format!("the database belongs to another cluster: the uid of the namespace {namespace} is different"),
                "point the gateway at the right cluster, or move the database with `sparkgate adopt-cluster`",
            ),
        },
    }
}

pub(super) fn unanswered(check: &'static str, error: &sparkgate_cluster::Error) -> Finding {
    Finding::failure(check, error_chain(error), "check the API server, and repeat")
}

#[cfg(test)]
mod tests;
