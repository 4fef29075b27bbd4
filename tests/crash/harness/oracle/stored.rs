//! Checks what users read at the end of what is stored: the logs of drivers whose pods are gone, and uploaded files.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use bytes::Bytes;
use futures::{StreamExt, stream};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api,
    api::{DeleteParams, ListParams},
};
use sparkgate_testing::object_store::ObjectStore;
use tokio::time::{Instant, sleep};

use crate::harness::{
    files::{self, Standing},
    http::{Content, Gateway, NoReply, transfer},
    truth::{Played, PodTruth},
    world::World,
};

/// The buckets of uploaded files and of logs.
pub(crate) const FILES: &str = "files";
pub(crate) const LOGS: &str = "logs";
/// Requests at the same time.
const AT_ONCE: usize = 8;
/// How long the gateway may take for what it does by itself.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(300);
/// Clean-up leaves an object alone for a day that no row names.
const TWO_DAYS: Duration = Duration::from_secs(2 * 24 * 3600);

/// What was compared.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Stored {
    pub(crate) whole_logs: usize,
    /// Logs that say that lines are missing, or that aren't there: their pods were gone too early.
    pub(crate) other_logs: usize,
    pub(crate) files: usize,
    pub(crate) deleted_files: usize,
    /// Requests to the object store, and those of them that it refused.
    pub(crate) requests: (usize, usize),
}

/// Judges a run that has settled. All pods are deleted, and all replicas killed once more.
pub(crate) async fn judge(world: &World) -> (Stored, Vec<String>) {
    let Some(objects) = &world.objects else { return (Stored::default(), Vec::new()) };
    let mut wrong = world.clients.shelf.odd();
    let mut stored = Stored { requests: objects.counts(), ..Stored::default() };
    logs(world, objects, &mut stored, &mut wrong).await;
    uploaded(world, objects, &mut stored, &mut wrong).await;
    (stored, wrong)
}

/// Sends a request until it is answered for good.
async fn read(gateway: &Gateway, path: &str) -> Result<Content, NoReply> {
    let ends = Instant::now() + PATIENCE;
    loop {
        match transfer(gateway, "GET", path, Bytes::new()).await {
            Ok(reply) if !matches!(reply.status, 429 | 500 | 503) => return Ok(reply),
            reply if Instant::now() > ends => return reply,
            _ => sleep(PAUSE).await,
        }
    }
}

async fn logs(world: &World, objects: &ObjectStore, stored: &mut Stored, wrong: &mut Vec<String>) {
    let left = pods(world).await;
    let truth = world.truth.all().clone();
    let known: BTreeSet<String> = world.clients.book().accepted.keys().cloned().collect();
    let started: Vec<(&String, &PodTruth)> =
        truth.iter().filter(|(_, pod)| pod.started && known.contains(&pod.submission)).collect();
    let must_be_whole: BTreeSet<&String> =
        started.iter().filter(|(uid, pod)| left.contains(*uid) && is_plain(pod)).map(|(uid, _)| *uid).collect();
    let late = until_stored(objects, started.iter().filter(|(uid, _)| must_be_whole.contains(uid))).await;
    wrong.extend(
        late.into_iter().map(|pod| format!("{}: the log of its pod, which still exists, isn't stored", pod.submission)),
    );

    delete_pods(world).await;
    let gateways = &world.clients.gateways;
    let requests = started.iter().enumerate().map(|(nth, (uid, pod))| async move {
        let path = format!("/v1/submissions/{}/logs?attempt={}", pod.submission, pod.attempt);
        (*uid, *pod, read(&gateways[nth % gateways.len()], &path).await)
    });
    let replies: Vec<_> = stream::iter(requests).buffer_unordered(AT_ONCE).collect().await;
    for (uid, pod, reply) in replies {
        let all = world.logs.text(uid);
        let (id, attempt, must) = (&pod.submission, pod.attempt, must_be_whole.contains(uid));
        match reply {
            Ok(reply) if reply.status == 404 && !must => stored.other_logs += 1,
            Ok(reply) if reply.status == 200 => {
                let is_cut = reply.headers.contains_key("sparkgate-log-cut");
                let source = reply.headers.get("sparkgate-log-source").cloned();
                let text = String::from_utf8_lossy(&reply.body);
                let is_right = if is_cut { !must && is_part(&text, &all) } else { text == all };
                if !is_right {
                    let difference = difference(&text, &all);
                    wrong.push(format!(
                        "{id}: log of attempt {attempt} from {source:?}, cut: {is_cut}: {difference}; {pod:?}"
                    ));
                }
                *(if is_cut { &mut stored.other_logs } else { &mut stored.whole_logs }) += 1;
            }
            other => wrong.push(format!("{id}: log of attempt {attempt}: {other:?}; {pod:?}")),
        }
    }
}

/// Returns whether nothing kept the gateway from reading the log of a pod: it ended by itself, and others left it alone.
fn is_plain(pod: &PodTruth) -> bool {
    matches!(pod.played, Some(Played::Exited(_) | Played::OutOfMemory)) && pod.acts.is_empty() && !pod.by_others
}

/// Returns whether all lines are lines of the log, in its order, each once.
fn is_part(text: &str, all: &str) -> bool {
    let mut rest = all.lines();
    text.lines().all(|line| rest.any(|next| next == line))
}

fn difference(text: &str, all: &str) -> String {
    let (got, wanted) = (text.lines().count(), all.lines().count());
    let differ = text.lines().zip(all.lines()).position(|(got, wanted)| got != wanted);
    let at = differ.unwrap_or_else(|| got.min(wanted));
    let around = |text: &str| text.lines().skip(at.saturating_sub(1)).take(3).map(str::to_owned).collect::<Vec<_>>();
    format!("{got} lines instead of {wanted}, from line {at} on {:?} instead of {:?}", around(text), around(all))
}

/// Waits until these logs are stored; returns the pods of those that aren't.
async fn until_stored<'a>(
    objects: &ObjectStore,
    pods: impl Iterator<Item = &'a (&'a String, &'a PodTruth)>,
) -> Vec<&'a PodTruth> {
    let mut left: Vec<&PodTruth> = pods.map(|(_, pod)| *pod).collect();
    let ends = Instant::now() + PATIENCE;
    loop {
        let keys = objects.keys(LOGS);
        let ended: BTreeSet<String> = keys.iter().filter_map(|key| key.strip_suffix("/driver/end")).map(tail).collect();
        left.retain(|pod| !ended.contains(&format!("{}/{}", pod.submission, pod.attempt)));
        if left.is_empty() || Instant::now() > ends {
            return left;
        }
        sleep(PAUSE).await;
    }
}

/// Returns the last two parts of a path.
fn tail(path: &str) -> String {
    let parts: Vec<&str> = path.rsplitn(3, '/').collect();
    parts.iter().take(2).rev().copied().collect::<Vec<_>>().join("/")
}

/// Returns the uids of all pods that exist.
async fn pods(world: &World) -> BTreeSet<String> {
    let mut uids = BTreeSet::new();
    for namespace in &world.namespaces {
        let pods: Api<Pod> = Api::namespaced(world.client.clone(), namespace);
        uids.extend(pods.list(&ListParams::default()).await.unwrap().into_iter().filter_map(|pod| pod.metadata.uid));
    }
    uids
}

async fn delete_pods(world: &World) {
    let ends = Instant::now() + PATIENCE;
    loop {
        for namespace in &world.namespaces {
            let pods: Api<Pod> = Api::namespaced(world.client.clone(), namespace);
            let how = DeleteParams::default().grace_period(0);
            let _ = pods.delete_collection(&how, &ListParams::default()).await;
        }
        if pods(world).await.is_empty() || Instant::now() > ends {
            return;
        }
        sleep(PAUSE).await;
    }
}

async fn uploaded(world: &World, objects: &ObjectStore, stored: &mut Stored, wrong: &mut Vec<String>) {
    let shelf = world.clients.shelf.files().clone();
    (stored.files, stored.deleted_files) = world.clients.shelf.counts();
    let gateways = &world.clients.gateways;
    let requests = shelf.iter().enumerate().map(|(nth, (name, standing))| async move {
        (name, *standing, read(&gateways[nth % gateways.len()], &files::path(name)).await)
    });
    let replies: Vec<_> = stream::iter(requests).buffer_unordered(AT_ONCE).collect().await;
    for (name, standing, reply) in replies {
        let is_right = match (&reply, standing) {
            (Ok(reply), Standing::Deleted) => reply.status == 404,
            (Ok(reply), Standing::Deleting) if reply.status == 404 => true,
            (Ok(reply), _) => reply.status == 200 && files::digest(&reply.body) == name.1,
            (Err(_), _) => false,
        };
        if !is_right {
            let status = reply.map(|reply| reply.status);
            wrong.push(format!("the file {name:?}, {standing:?}, is read with {status:?}"));
        }
    }

    // Each object is one that a row names, once clean-up has run.
    objects.age(TWO_DAYS);
    world.replicas.iter().for_each(|replica| _ = replica.kill());
    world.all_up().await;
    let ends = Instant::now() + PATIENCE;
    loop {
        let rows: Vec<String> = sqlx::query_scalar("SELECT object FROM files").fetch_all(&world.pool).await.unwrap();
        let rows: BTreeSet<String> = rows.into_iter().collect();
        let keys = objects.keys(FILES).into_iter().filter(|key| !key.ends_with("-generation"));
        let keys: BTreeMap<String, String> = keys.map(|key| (tail(&key), key)).collect();
        let lost =
            rows.iter().filter(|row| !keys.contains_key(*row)).map(|row| format!("the object {row} of a file is gone"));
        let left = keys.iter().filter(|(object, _)| !rows.contains(*object));
        let left: Vec<_> = left.map(|(_, key)| format!("the object {key} of no file is left after clean-up")).collect();
        if left.is_empty() || Instant::now() > ends {
            wrong.extend(lost);
            wrong.extend(left);
            return;
        }
        sleep(PAUSE).await;
    }
}
