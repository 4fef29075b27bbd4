//! Checks of the queues of Kueue.

use std::collections::{BTreeMap, BTreeSet};

use super::{cluster::unanswered, finding::Finding};
use sparkgate_access::{Access, KueueQueue};
use sparkgate_cluster::{self, Cluster, Error as ClusterError, kueue::Kueue};
use sparkgate_kueue::KueueQueues;

const RIGHTS: &str = "kueue.rights";
const QUEUE: &str = "kueue.queue";
const GRANT: &str = "set rbac.kueue in the values of the chart, or grant them by another Role (docs/operate/kueue.md)";

/// Checks that Kueue is there, that the account has the rights that its queues need, and that the queues exist which the access file and
/// the setting name.
pub async fn check_kueue(cluster: &Cluster, access: &Access, setting: &KueueQueues, findings: &mut Vec<Finding>) {
    const CHECK: &str = "kueue.api";
    let queues = queues(cluster, access, setting);
    if queues.is_empty() {
        return;
    }
    let kueue = match cluster.kueue().await {
        Ok(Some(kueue)) => kueue,
        Ok(None) => {
            let text = "the cluster serves no API of Kueue that this release knows: submissions to its queues wait";
            return findings.push(Finding::failure(CHECK, text, "install Kueue, or name no queues of it"));
        }
        Err(error) => return findings.push(unanswered(CHECK, &error)),
    };
    findings.push(Finding::ok(CHECK, "the cluster serves the API of Kueue"));
    findings.push(rights(cluster, None).await);
    let mut denied = BTreeSet::new();
    for (namespace, queues) in &queues {
        findings.push(rights(cluster, Some(namespace)).await);
        let names: BTreeSet<_> = queues.iter().map(|queue| &queue.local_queue).collect();
        for name in names {
            match kueue.has_local_queue(namespace, name).await {
                Err(ClusterError::Denied { .. }) => drop(denied.insert(format!("{namespace}/{name}"))),
                Err(error) => findings.push(unanswered(QUEUE, &error)),
                Ok(true) => {
                    findings.push(Finding::ok(QUEUE, format!("the LocalQueue {namespace}/{name} exists")));
                }
                Ok(false) => {
                    let text = format!("the LocalQueue {namespace}/{name} doesn't exist: submissions to it wait");
                    findings.push(Finding::failure(QUEUE, text, "create it, or correct its name"));
                }
            }
        }
    }
    if !denied.is_empty() {
        let names = denied.into_iter().collect::<Vec<_>>().join(", ");
        let text = format!("the account may not get localqueues: see whether these exist: {names}");
        findings.push(Finding::skipped(QUEUE, text));
    }
    let classes: BTreeSet<_> = queues.values().flatten().filter_map(|queue| queue.priority_class.as_deref()).collect();
    for class in classes {
        findings.extend(priority_class(&kueue, class).await);
    }
}

/// Returns the queues of each namespace that the setting or the access file names.
fn queues(cluster: &Cluster, access: &Access, setting: &KueueQueues) -> BTreeMap<String, Vec<KueueQueue>> {
    let mut queues = BTreeMap::<String, Vec<KueueQueue>>::new();
    for (namespace, queue) in setting {
        queues.entry(namespace.clone()).or_default().push(queue.clone());
    }
    for queue in access.queues().iter() {
        let Some(of_kueue) = &queue.kueue else { continue };
        let namespaces = access.namespaces_of_queues(cluster.namespaces(), |one| one.name == queue.name);
        for namespace in namespaces.into_iter().filter(|namespace| cluster.watches(namespace)) {
            queues.entry(namespace).or_default().push(of_kueue.clone());
        }
    }
    queues
}

async fn rights(cluster: &Cluster, namespace: Option<&str>) -> Finding {
    let place = namespace.map_or_else(|| "the cluster".to_owned(), |name| format!("the namespace {name}"));
    match cluster.missing_kueue_rights(namespace).await {
        Ok(missing) if missing.is_empty() => {
            Finding::ok(RIGHTS, format!("the account has all rights that queues of Kueue need in {place}"))
        }
        Ok(missing) => {
            let missing = missing.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            Finding::failure(RIGHTS, format!("the account lacks rights for Kueue in {place}: {missing}"), GRANT)
        }
        Err(error) => unanswered(RIGHTS, &error),
    }
}

/// A lack of the right to read it is a finding of [`rights`].
async fn priority_class(kueue: &Kueue, class: &str) -> Option<Finding> {
    const CHECK: &str = "kueue.priority-class";
    match kueue.priority(class).await {
        Ok(Some(_)) => Some(Finding::ok(CHECK, format!("the WorkloadPriorityClass {class} exists"))),
        Ok(None) => {
            let text = format!("the WorkloadPriorityClass {class} doesn't exist: submissions that need it wait");
            Some(Finding::failure(CHECK, text, "create it, or correct its name"))
        }
        Err(ClusterError::Denied { .. }) => None,
        Err(error) => Some(unanswered(CHECK, &error)),
    }
}
