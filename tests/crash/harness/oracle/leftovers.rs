//! Checks that nothing is left at the end: live pods, finalizers, unfinished or inconsistent records, panics.

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::{api::core::v1::Pod, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::{Api, api::ListParams};
use tokio::time::{Instant, sleep};

use crate::harness::{adversary::is_forged, world::World};
use sparkgate::submission::{LATE, queues::QueueEvent};
use sparkgate_check::history::{is_end, rank};

const FINALIZER: &str = "sparkgate.dev/outcome";
const INSTANCE: &str = "sparkgate.dev/instance";
/// By what others overwrite it.
const NO_INSTANCE: &str = "00000000-0000-0000-0000-000000000000";
/// How long finalizers and stray pods may remain after the last outcome.
const PATIENCE: Duration = Duration::from_secs(20);

pub(super) async fn leftovers(world: &World) -> Vec<String> {
    let deadline = Instant::now() + PATIENCE;
    let mut found = loop {
        let found = pods(world).await;
        if found.is_empty() || Instant::now() > deadline {
            break found;
        }
        sleep(Duration::from_millis(300)).await;
    };
    found.append(&mut events(world).await);
    found.append(&mut replicas(world));
    found
}

/// Returns pods that live, or still have our finalizer, although their submissions have ended.
async fn pods(world: &World) -> Vec<String> {
    let ended =
        "SELECT id FROM submissions WHERE number > $1 AND state IN ('FINISHED', 'FAILED', 'KILLED', 'ERROR', 'LOST')";
    let ended: std::collections::BTreeSet<String> = sqlx::query_scalar::<_, String>(ended)
        .bind(world.history.number)
        .fetch_all(&world.pool)
        .await
        .unwrap()
        .into_iter()
        .collect();
    let mut pods = Vec::new();
    for namespace in &world.namespaces {
        let all: Api<Pod> = Api::namespaced(world.client.clone(), namespace);
        pods.extend(all.list(&ListParams::default()).await.unwrap());
    }
    let mut found = Vec::new();
    for pod in pods.into_iter().filter(|pod| !is_forged(&pod.metadata)) {
        // Its labels may have been removed.
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        let Some(id) = world.truth.all().get(&uid).map(|pod| pod.submission.clone()) else { continue };
        if !ended.contains(&id) {
            continue;
        }
        let is_selected = is_selected(&pod.metadata);
        let name = pod.metadata.name.unwrap_or_default();
        let phase = pod.status.and_then(|status| status.phase).unwrap_or_default();
        let is_deleted = pod.metadata.deletion_timestamp.is_some();
        if !["Succeeded", "Failed"].contains(&phase.as_str()) && (is_selected || !is_deleted) {
            found.push(format!("{id} has ended, and its pod {name} is {phase}"));
        }
        if pod.metadata.finalizers.iter().flatten().any(|finalizer| finalizer == FINALIZER) && is_selected {
            found.push(format!("{id} has ended, and its pod {name} still has the finalizer"));
        }
    }
    found
}

/// Returns whether the watch selects a pod. A list doesn't have the others: if a replica is killed between the end of a submission
/// and the removal of the finalizer, only clean-up finds them (docs/operate/reliability.md), by the name and the uid in the row.
fn is_selected(metadata: &ObjectMeta) -> bool {
    let instance = metadata.labels.as_ref().and_then(|labels| labels.get(INSTANCE));
    instance.is_some_and(|instance| instance != NO_INSTANCE)
}

/// Returns submissions that haven't ended, and event histories that go backwards, end twice or don't end as the row
/// does. Events of queues and of late runs change no state.
async fn events(world: &World) -> Vec<String> {
    let all = "SELECT s.id, coalesce(a.state, s.state), e.attempt, e.state FROM submissions s
               LEFT JOIN submission_events e ON e.submission_id = s.id
                   AND (e.reason = ANY($2) AND e.state IN ('QUEUED', 'LAUNCHING') OR e.reason = $3 AND e.state = 'RUNNING') IS NOT TRUE
               LEFT JOIN attempts a ON a.submission_id = s.id AND a.attempt = e.attempt
               WHERE s.number > $1 ORDER BY s.id, e.id";
    let all: Vec<(String, String, Option<i32>, Option<String>)> = sqlx::query_as(all)
        .bind(world.history.number)
        .bind(QueueEvent::ALL.map(QueueEvent::as_str))
        .bind(LATE)
        .fetch_all(&world.pool)
        .await
        .unwrap();
    let mut histories: BTreeMap<(String, Option<i32>, String), Vec<String>> = BTreeMap::new();
    for (id, state, attempt, event) in all {
        histories.entry((id, attempt, state)).or_default().extend(event);
    }
    let mut found = Vec::new();
    for ((id, attempt, state), history) in histories {
        let id = format!("{id} (attempt {})", attempt.unwrap_or_default());
        let ranks: Vec<_> = history.iter().map(|state| rank(state)).collect();
        if !is_end(&state) {
            found.push(format!("{id} has not ended: {history:?}"));
        }
        if !ranks.is_sorted_by(|a, b| a < b) || history.last() != Some(&state) {
            found.push(format!("{id} is {state}, with the history {history:?}"));
        }
    }
    found
}

/// Returns replicas that ended by themselves for another reason than a server that was down at their start.
fn replicas(world: &World) -> Vec<String> {
    let mut found = Vec::new();
    for replica in &world.replicas {
        let log = replica.log.display();
        for code in replica.own_ends().into_iter().filter(|code| *code != Some(1)) {
            found.push(format!("a replica ended by itself with {code:?}: {log}"));
        }
        let said = std::fs::read(&replica.log).unwrap_or_default();
        if String::from_utf8_lossy(&said).contains("panicked at") {
            found.push(format!("a replica panicked: {log}"));
        }
    }
    found
}
