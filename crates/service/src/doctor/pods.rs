//! Checks of the pods that carry our labels.

use std::{collections::BTreeMap, time::Duration};

use super::{cluster::unanswered, database::not_read, finding::Finding};
use sparkgate_cluster::{Cluster, Dependant, MarkedPod};
use sparkgate_common::error::error_chain;
use sparkgate_store::Store;

/// A replica removes the finalizer within this time after a driver has ended.
const REMOVED: Duration = Duration::from_secs(600);
/// How many pods a message names.
const NAMED: usize = 5;

/// Checks for finalizers that are left over, for pods of other installations, and for executors without a driver.
pub async fn check_pods(store: &Store, cluster: &Cluster, findings: &mut Vec<Finding>) {
    let pods = match cluster.marked_pods().await {
        Ok(pods) => pods,
        Err(error) => return findings.push(unanswered("pods.finalizers", &error)),
    };
    let own = match store.installation().await {
        Ok(installation) => installation.id.to_string(),
        Err(error) => return findings.push(not_read("pods.finalizers", &error_chain(&error))),
    };
    let (own, others): (Vec<_>, Vec<_>) =
        pods.into_iter().partition(|pod| pod.installation.as_deref() == Some(own.as_str()));
    findings.push(finalizers(store, &own).await);
    findings.extend(check_others(&others));
    findings.push(without_driver(cluster).await);
}

async fn without_driver(cluster: &Cluster) -> Finding {
    const CHECK: &str = "pods.without-driver";
    let left = match cluster.executors_without_driver().await {
        Ok(left) => left,
        Err(error) => return unanswered(CHECK, &error),
    };
    if left.is_empty() {
        return Finding::ok(CHECK, "no executor runs without its driver");
    }
    let names = left.iter().map(|Dependant { namespace, name, .. }| (namespace.as_str(), name.as_str()));
    let text = format!("{} executors run, and their driver doesn't: {}", left.len(), named(names));
    let remedy = "those of drivers that ended a moment ago are deleted within a minute. Any other was cut off from its driver, by a \
                  deletion of the driver's pod that orphaned its executors: kubectl -n NAMESPACE delete pod NAME. The objects of \
                  sparkgate admission forbid drivers such deletions";
    Finding::warning(CHECK, text, remedy)
}

async fn finalizers(store: &Store, pods: &[MarkedPod]) -> Finding {
    const CHECK: &str = "pods.finalizers";
    let held: Vec<_> = pods.iter().filter(|pod| pod.is_held).collect();
    let ids: Vec<_> = held.iter().map(|pod| pod.submission.as_str()).collect();
    let ended = match store.ended_or_unknown(&ids, REMOVED).await {
        Ok(ended) => ended,
        Err(error) => return not_read(CHECK, &error_chain(&error)),
    };
    let left: Vec<_> = held.into_iter().filter(|pod| ended.contains(&pod.submission)).collect();
    if left.is_empty() {
        return Finding::ok(CHECK, "no pod is held whose submission has ended");
    }
    let text = format!(
        "{} pods are held by our finalizer although their submissions have ended or have no record: {}",
        left.len(),
        named(names(&left))
    );
    let remedy = "start the gateway, which removes the finalizer within ten minutes. If it stays: kubectl -n NAMESPACE patch pod \
                  NAME --type=json -p '[{\"op\":\"remove\",\"path\":\"/metadata/finalizers\"}]'";
    Finding::warning(CHECK, text, remedy)
}

fn check_others(pods: &[MarkedPod]) -> Vec<Finding> {
    const CHECK: &str = "pods.installation";
    let mut by_installation = BTreeMap::<&str, Vec<&MarkedPod>>::new();
    for pod in pods {
        by_installation.entry(pod.installation.as_deref().unwrap_or_default()).or_default().push(pod);
    }
    if by_installation.is_empty() {
        return vec![Finding::ok(CHECK, "all pods with our labels are this installation's")];
    }
    let finding = |(id, pods): (&str, Vec<&MarkedPod>)| {
        let held = pods.iter().filter(|pod| pod.is_held).count();
        let text = format!(
            "{} pods are of another installation, with the id {id:?}, and {held} of them have our finalizer: {}",
            pods.len(),
            named(names(&pods))
        );
        let remedy = format!(
            "leave them alone if that installation is in use. If its database is gone: kubectl -n NAMESPACE delete pods -l \
             sparkgate.dev/instance={id}, and remove the finalizer of pods that stay"
        );
        Finding::warning(CHECK, text, remedy)
    };
    by_installation.into_iter().map(finding).collect()
}

fn names<'a>(pods: &'a [&MarkedPod]) -> impl Iterator<Item = (&'a str, &'a str)> {
    pods.iter().map(|pod| (pod.namespace.as_str(), pod.name.as_str()))
}

fn named<'a>(mut pods: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let names = pods.by_ref().take(NAMED).map(|(namespace, name)| format!("{namespace}/{name}"));
    let mut text = names.collect::<Vec<_>>().join(", ");
    if pods.next().is_some() {
        text.push_str(", …");
    }
    text
}
