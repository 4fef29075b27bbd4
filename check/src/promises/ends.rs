//! How submissions ended, and their attempts.

use std::collections::{BTreeMap, BTreeSet};

use super::{Promise, Verdict};
use crate::history::{Act, Attempt, Call, Found, History, Kept, is_end};

pub(super) fn judge(history: &History, found: &BTreeMap<&str, &Found>, verdict: &mut Verdict) {
    let ends: BTreeMap<u32, &str> =
        history.jobs.iter().filter_map(|job| Some((job.job, job.ends.as_deref()?))).collect();
    let asked: BTreeSet<&str> = history.calls.iter().filter_map(|call| killed(call)).collect();
    for found in &history.found {
        let (id, state) = (&found.document.id, &found.document.state);
        verdict.check(Promise::Ended, is_end(state), || format!("{id} is still {state}"));
        if let Some(expected) = ends.get(&found.job) {
            let is_true = state == expected || (state == "KILLED" && asked.contains(id.as_str()));
            verdict.check(Promise::TrueEnd, is_true, || {
                format!("{id} is {state}, exit code {:?}; its program ends as {expected}", found.document.exit_code)
            });
        }
        attempts(found, verdict);
    }
    for call in history.calls.iter().filter(|call| call.answer.kept() == Kept::Yes) {
        let (Some(id), Some(document)) = (killed(call), call.answer.document()) else { continue };
        let Some(found) = found.get(id) else { continue };
        let last = found.document.attempt;
        verdict.check(Promise::KillIsFinal, last == document.attempt, || {
            format!("{id} was in attempt {} when its kill was accepted, and ended in attempt {last}", document.attempt)
        });
    }
    drivers(history, found, verdict);
}

/// Returns the submission that a call requests to kill.
fn killed(call: &Call) -> Option<&str> {
    match &call.act {
        Act::Kill { id } => Some(id),
        _ => None,
    }
}

fn attempts(found: &Found, verdict: &mut Verdict) {
    let id = &found.document.id;
    let mut attempts: Vec<&Attempt> = found.attempts.iter().collect();
    attempts.sort_by_key(|attempt| attempt.attempt);
    let numbers: Vec<_> = attempts.iter().map(|attempt| attempt.attempt).collect();
    let expected: Vec<_> = (1..=found.document.attempt).collect();
    verdict.check(Promise::NoOverlap, numbers == expected, || {
        format!("{id} is in attempt {}, and has the attempts {numbers:?}", found.document.attempt)
    });
    for pair in attempts.windows(2) {
        // Kubernetes' times have whole seconds.
        let is_apart = match (pair[0].finished_at, pair[1].started_at) {
            (Some(finished), Some(began)) => finished.timestamp() <= began.timestamp(),
            (finished, _) => finished.is_some(),
        };
        verdict.check(Promise::NoOverlap, is_end(&pair[0].state) && is_apart, || {
            format!("{id}: {:?} and {:?}", pair[0], pair[1])
        });
    }
}

/// Judges the drivers of this run: the cluster's watch begins with all pods that exist.
fn drivers(history: &History, found: &BTreeMap<&str, &Found>, verdict: &mut Verdict) {
    let mut started: BTreeMap<(&str, i64), BTreeSet<&str>> = BTreeMap::new();
    for pod in history.pods.iter().filter(|pod| pod.started && found.contains_key(pod.submission.as_str())) {
        started.entry((&pod.submission, pod.attempt)).or_default().insert(&pod.uid);
    }
    for ((id, attempt), uids) in started {
        verdict.check(Promise::OneDriver, uids.len() == 1, || format!("{id}: attempt {attempt} ran as {uids:?}"));
    }
}
