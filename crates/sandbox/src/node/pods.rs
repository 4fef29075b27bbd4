//! Watches all pods and starts one worker for each.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::runtime::watcher::Event;
use kube::runtime::{WatchStreamExt, watcher};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::Node;
use super::worker::Worker;

/// Timeout at shutdown for workers to end their processes and report.
const DRAIN: Duration = Duration::from_secs(15);

/// The connection to a worker.
struct Handle {
    pod: watch::Sender<Arc<Pod>>,
    /// Set when the object no longer exists.
    gone: CancellationToken,
}

/// Follows the pods until the node shuts down, then waits for the workers.
pub(super) async fn run(node: Arc<Node>) {
    let mut workers = JoinSet::new();
    let mut handles = HashMap::new();
    let mut listed = HashSet::new();
    let events = watcher(Api::<Pod>::all(node.client.clone()), watcher::Config::default()).default_backoff();
    let mut events =
        std::pin::pin!(events.map_err(|error| tracing::debug!(%error, "the watch of pods was interrupted")));
    loop {
        let event = tokio::select! {
            event = events.next() => event,
            () = node.shutdown.cancelled() => break,
            Some(ended) = workers.join_next() => {
                if let Err(error) = ended {
                    tracing::error!(%error, "a pod's worker failed");
                }
                continue;
            }
        };
        match event {
            None => break,
            Some(Err(())) => {}
            Some(Ok(Event::Init)) => listed.clear(),
            Some(Ok(Event::InitApply(pod))) => {
                listed.extend(pod.metadata.uid.clone());
                apply(&node, &mut handles, &mut workers, pod);
            }
            Some(Ok(Event::InitDone)) => {
                forget(&mut handles, |uid| !listed.contains(uid));
                sweep(&node, &handles);
            }
            Some(Ok(Event::Apply(pod))) => apply(&node, &mut handles, &mut workers, pod),
            Some(Ok(Event::Delete(pod))) => forget(&mut handles, |uid| pod.metadata.uid.as_deref() == Some(uid)),
        }
    }
    let drained = async { while workers.join_next().await.is_some() {} };
    if tokio::time::timeout(DRAIN, drained).await.is_err() {
        tracing::warn!("pods of the sandbox did not end in time and are killed");
    }
}

fn apply(node: &Arc<Node>, handles: &mut HashMap<String, Handle>, workers: &mut JoinSet<()>, pod: Pod) {
    let Some(uid) = pod.metadata.uid.clone() else { return };
    let pod = Arc::new(pod);
    if let Some(handle) = handles.get(&uid) {
        handle.pod.send_replace(pod);
        return;
    }
    let (sender, receiver) = watch::channel(pod);
    let gone = CancellationToken::new();
    if let Some(worker) = Worker::new(Arc::clone(node), receiver, gone.clone()) {
        workers.spawn(worker.run());
    }
    handles.insert(uid, Handle { pod: sender, gone });
}

fn forget(handles: &mut HashMap<String, Handle>, is_gone: impl Fn(&str) -> bool) {
    handles.retain(|uid, handle| {
        let gone = is_gone(uid);
        if gone {
            handle.gone.cancel();
        }
        !gone
    });
}

/// Removes the directories of pods that were deleted while no node was watching.
fn sweep(node: &Node, handles: &HashMap<String, Handle>) {
    let Ok(entries) = std::fs::read_dir(node.pods_dir()) else { return };
    for entry in entries.flatten() {
        let known = entry.file_name().to_str().is_some_and(|uid| handles.contains_key(uid));
        if !known {
            super::remove_dir(&entry.path());
        }
    }
}
