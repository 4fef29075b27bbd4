//! What became of the creates.

use std::collections::{BTreeMap, BTreeSet};

use super::{Promise, Verdict};
use crate::history::{Act, Answer, Call, Found, History, Kept};

/// The creates of one job.
#[derive(Debug, Default)]
struct Creates<'a> {
    /// The ids of those that succeeded, and when the first reply of each came.
    accepted: BTreeMap<&'a str, u64>,
    in_doubt: usize,
}

pub(super) fn judge(history: &History, found: &BTreeMap<&str, &Found>, verdict: &mut Verdict) {
    let mut jobs: BTreeMap<u32, Creates<'_>> = history.jobs.iter().map(|job| (job.job, Creates::default())).collect();
    for Call { act, answer, ended, .. } in &history.calls {
        let Act::Create { job } = act else { continue };
        let creates = jobs.entry(*job).or_default();
        match (answer.kept(), answer.document()) {
            (Kept::Yes, Some(document)) => {
                let first = creates.accepted.entry(&document.id).or_insert(*ended);
                *first = (*first).min(*ended);
            }
            (Kept::No, _) => {}
            (Kept::Yes | Kept::InDoubt, _) => creates.in_doubt += 1,
        }
    }
    let mut of_job: BTreeMap<u32, BTreeSet<&str>> = BTreeMap::new();
    for found in &history.found {
        of_job.entry(found.job).or_default().insert(&found.document.id);
    }

    let none = BTreeSet::new();
    let mut accepted = BTreeMap::new();
    for (job, creates) in &jobs {
        let ids = of_job.get(job).unwrap_or(&none);
        for (id, since) in &creates.accepted {
            accepted.insert(*id, *since);
            let lost = || format!("{id} (job {job}) was accepted, and isn't there at the end");
            verdict.check(Promise::Kept, found.contains_key(id), lost);
        }
        let all: BTreeSet<_> = creates.accepted.keys().copied().chain(ids.iter().copied()).collect();
        if !all.is_empty() {
            verdict.check(Promise::Once, all.len() == 1, || format!("job {job} has the submissions {all:?}"));
        }
        if creates.accepted.is_empty() && creates.in_doubt == 0 {
            let left = || format!("each create of job {job} was refused, and there is {ids:?}");
            verdict.check(Promise::NothingHalfDone, ids.is_empty(), left);
        }
    }
    for (job, ids) in of_job.iter().filter(|(job, _)| !jobs.contains_key(job)) {
        verdict.check(Promise::NothingHalfDone, false, || format!("{ids:?} are of job {job}, which no client created"));
    }
    for Call { act, answer, began, .. } in &history.calls {
        let (Act::Read { id }, Answer::Reply(reply)) = (act, answer) else { continue };
        if accepted.get(id.as_str()).is_some_and(|since| since < began) {
            let unknown = || format!("{id} was accepted, and a later read of it got {}", reply.status);
            verdict.check(Promise::Kept, !matches!(reply.status, 400..429), unknown);
        }
    }
}
