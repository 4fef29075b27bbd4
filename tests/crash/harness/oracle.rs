//! Compares what the program recorded with what was accepted, what the API server created and what was simulated.

mod leftovers;
mod outcome;
pub(crate) mod promises;
mod sessions;
pub(crate) mod stored;

use std::collections::{BTreeMap, BTreeSet};

use sqlx::FromRow;

use self::{
    leftovers::leftovers,
    outcome::{ByOthers, expected},
};
use super::{
    audit::{self, Made},
    tenants::Tenant,
    truth::{Played, PodTruth},
    world::World,
};

/// What the program recorded of a submission.
#[derive(Debug, Clone, FromRow)]
pub(crate) struct Row {
    pub(crate) id: String,
    pub(crate) state: String,
    pub(crate) exit_code: Option<i32>,
    pub(crate) reason: Option<String>,
    pub(crate) attempt: i32,
    pub(crate) pod_uid: Option<String>,
    pub(crate) namespace: String,
}

/// The expected result if an outcome can't be known any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unseen {
    /// Every outcome can be known.
    Never,
    /// A pod that was deleted meanwhile is LOST: without the finalizer, and with etcd's history compacted.
    Deleted,
}

#[derive(Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) violations: Vec<String>,
    pub(crate) rows: usize,
    pub(crate) states: BTreeMap<String, usize>,
    /// Pods that were created, and those of them without a 201 in the audit log.
    pub(crate) creates: usize,
    pub(crate) unlogged_creates: usize,
    /// Second pods of an attempt. None of them started; otherwise there is a violation.
    pub(crate) extra_creates: usize,
    pub(crate) starts: usize,
    pub(crate) wrong_outcomes: usize,
    /// Accepted submissions without a row.
    pub(crate) lost: usize,
    /// Sessions, and those that were ended because they were idle.
    pub(crate) sessions: (usize, usize),
    /// Rows whose clients never received the id.
    pub(crate) unacknowledged: usize,
}

/// Judges a run that has settled.
pub(crate) async fn judge(world: &mut World, unseen: Unseen) -> Verdict {
    let mut verdict = Verdict { violations: leftovers(world).await, ..Verdict::default() };
    let rows = "SELECT id, state, exit_code, reason, attempt, pod_uid, namespace FROM submissions WHERE number > $1";
    let rows: Vec<Row> = sqlx::query_as(rows).bind(world.history.number).fetch_all(&world.pool).await.unwrap();
    let rows: BTreeMap<String, Row> = rows.into_iter().map(|row| (row.id.clone(), row)).collect();
    let recorded = recorded(world, &rows).await;
    let (truth, made) = pods(world);

    accepted(world, &rows, &truth, &mut verdict);
    created(&recorded, &truth, &made, &mut verdict);
    beside(&truth, &mut verdict);
    forged(world, &recorded, &mut verdict).await;
    let idle = sessions::judge(world, &mut verdict).await;
    let kills = world.clients.book().kills.clone();
    let usurped = world.deeds.lock().unwrap().usurped.clone();
    let denied = world.neighbours.as_ref().map(|_| Tenant::Denied.namespace(&world.namespace));
    for row in rows.values() {
        *verdict.states.entry(row.state.clone()).or_default() += 1;
        let pod = row.pod_uid.as_ref().and_then(|uid| truth.get(uid));
        let by_others = ByOthers {
            kill_asked: kills.contains(&row.id) || idle.contains(&row.id),
            // A webhook's denial may be final.
            refused: usurped.contains(&row.id) || denied.as_ref() == Some(&row.namespace),
        };
        if let Err(wrong) = expected(row, pod, by_others, unseen) {
            verdict.wrong_outcomes += 1;
            let Row { id, state, exit_code, reason, attempt, pod_uid, namespace } = row;
            let was = format!(
                "{namespace}: {state}, attempt {attempt}, exit code {exit_code:?}, reason {reason:?}, pod {pod_uid:?}"
            );
            verdict.violations.push(format!("{id}: {was}: {wrong}"));
        }
    }
    verdict.rows = rows.len();
    verdict.violations.append(&mut world.clients.book().odd.clone());
    verdict
}

/// Returns what happened to each pod, and the creates of the audit log.
fn pods(world: &mut World) -> (BTreeMap<String, PodTruth>, BTreeSet<Made>) {
    let mut truth = world.truth.all().clone();
    let made = audit::made(&world.servers.both().kubernetes.audit_log(), &world.namespaces);
    // Its labels may have been another submission's when the kubelet first saw it.
    for Made { submission, attempt, uid } in &made {
        if let Some(pod) = truth.get_mut(uid) {
            (pod.submission, pod.attempt) = (submission.clone(), *attempt);
        }
    }
    (truth, made)
}

/// Checks that every submission that a client was promised exists, and that no other exists.
fn accepted(world: &World, rows: &BTreeMap<String, Row>, truth: &BTreeMap<String, PodTruth>, verdict: &mut Verdict) {
    let book = world.clients.book();
    for (id, job) in &book.accepted {
        if !rows.contains_key(id) {
            verdict.lost += 1;
            verdict.violations.push(format!("{id} (job {job}) was accepted, and there is no row"));
        }
    }
    verdict.unacknowledged = rows.keys().filter(|id| !book.accepted.contains_key(*id)).count();
    if verdict.unacknowledged > book.in_doubt.len() {
        let (more, doubtful) = (verdict.unacknowledged, book.in_doubt.len());
        verdict.violations.push(format!("{more} rows without a reply, for {doubtful} requests without one"));
    }
    for pod in truth.values() {
        let asked_for = match (book.accepted.get(&pod.submission), pod.job) {
            (Some(job), pods) => Some(*job) == pods,
            (None, Some(job)) => book.in_doubt.contains(&job),
            (None, None) => false,
        };
        if !asked_for || !rows.contains_key(&pod.submission) {
            verdict.violations.push(format!("pod {} belongs to no accepted submission: {pod:?}", pod.name));
        }
    }
}

/// The uids of the driver pods that the program recorded, by submission and attempt.
type Recorded = BTreeMap<(String, i32), String>;

async fn recorded(world: &World, rows: &BTreeMap<String, Row>) -> Recorded {
    let past = "SELECT submission_id, attempt, pod_uid FROM attempts WHERE pod_uid IS NOT NULL";
    let past: Vec<(String, i32, String)> = sqlx::query_as(past).fetch_all(&world.pool).await.unwrap();
    let now = rows.values().filter_map(|row| Some(((row.id.clone(), row.attempt), row.pod_uid.clone()?)));
    past.into_iter().map(|(id, attempt, uid)| ((id, attempt), uid)).chain(now).collect()
}

/// Checks that no attempt runs at the same time as the one before it.
fn beside(truth: &BTreeMap<String, PodTruth>, verdict: &mut Verdict) {
    let mut drivers: BTreeMap<&str, Vec<&PodTruth>> = BTreeMap::new();
    for pod in truth.values().filter(|pod| pod.began.is_some()) {
        drivers.entry(&pod.submission).or_default().push(pod);
    }
    for (submission, mut pods) in drivers {
        pods.sort_by_key(|pod| pod.attempt);
        for pair in pods.windows(2) {
            let apart = pair[0].ended.is_some_and(|ended| pair[1].began.is_some_and(|began| ended <= began));
            if pair[0].attempt != pair[1].attempt && !apart {
                verdict.violations.push(format!("{submission}: two attempts at once: {pair:?}"));
            }
        }
    }
}

/// Checks that the program recorded none of the pods that others created.
async fn forged(world: &World, recorded: &Recorded, verdict: &mut Verdict) {
    let forged = world.deeds.lock().unwrap().forged.clone();
    for ((submission, attempt), uid) in recorded.iter().filter(|(_, uid)| forged.contains(*uid)) {
        verdict.violations.push(format!("{submission}: a forged pod is recorded as attempt {attempt}: {uid}"));
    }
    let executors = "SELECT submission_id, pod_name FROM executors WHERE pod_name LIKE 'forged-%'";
    let executors: Vec<(String, String)> = sqlx::query_as(executors).fetch_all(&world.pool).await.unwrap();
    for (submission, pod) in executors {
        verdict.violations.push(format!("{submission}: the forged executor {pod} is recorded"));
    }
}

/// Checks that there is one pod for each attempt, and one start.
fn created(all_recorded: &Recorded, truth: &BTreeMap<String, PodTruth>, made: &BTreeSet<Made>, verdict: &mut Verdict) {
    let logged: BTreeSet<&String> = made.iter().map(|made| &made.uid).collect();
    let mut attempts: BTreeMap<(&str, i32), BTreeSet<&str>> = BTreeMap::new();
    for Made { submission, attempt, uid } in made {
        attempts.entry((submission, *attempt)).or_default().insert(uid);
    }
    for (uid, pod) in truth {
        attempts.entry((&pod.submission, pod.attempt)).or_default().insert(uid);
        verdict.unlogged_creates += usize::from(!logged.contains(uid));
    }
    for ((submission, attempt), uids) in attempts {
        verdict.creates += uids.len();
        verdict.extra_creates += uids.len() - 1;
        let pods: Vec<_> = uids.iter().filter_map(|uid| Some((*uid, truth.get(*uid)?))).collect();
        let started: Vec<_> = pods.iter().filter(|(_, pod)| pod.started).map(|(uid, _)| *uid).collect();
        verdict.starts += started.len();
        let recorded = all_recorded.get(&(submission.to_owned(), attempt)).map(String::as_str);
        if started.len() > 1 {
            let why = format!("{submission}: attempt {attempt} ran {} times: {started:?}", started.len());
            verdict.violations.push(why);
        } else if started.first().is_some_and(|uid| Some(*uid) != recorded) {
            verdict.violations.push(format!("{submission}: ran as {started:?}, recorded as {recorded:?}"));
        }
        for (uid, pod) in pods.iter().filter(|(uid, pod)| Some(*uid) != recorded && !pod.gone) {
            let ended = pod.played.is_some_and(|played| played != Played::NeverStarted);
            if !ended {
                verdict.violations.push(format!("{submission}: pod {uid} is left alive and isn't the recorded one"));
            }
        }
    }
}
