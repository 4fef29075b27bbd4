//! What followers saw, and the histories of submissions.

use std::collections::{BTreeMap, BTreeSet};

use super::{Promise, Verdict};
use crate::history::{Change, Event, Follower, Found, History, rank};

pub(super) fn judge(history: &History, verdict: &mut Verdict) {
    for found in &history.found {
        path(found, verdict);
    }
    // What happened, by number.
    let mut known: BTreeMap<i64, &Change> = BTreeMap::new();
    for change in history.found.iter().flat_map(|found| &found.events) {
        if let Some(sequence) = change.sequence {
            known.insert(sequence, change);
        }
    }
    for Follower { follower, after } in &history.followers {
        let (mut last, mut seen) = (*after, BTreeSet::new());
        for Event { change, .. } in history.events.iter().filter(|event| event.follower == *follower) {
            let sequence = change.sequence.unwrap_or(i64::MIN);
            verdict.check(Promise::Events, sequence > last, || format!("{follower}: {change:?} came after {last}"));
            last = last.max(sequence);
            seen.insert(sequence);
            let other = known.get(&sequence);
            let is_same = other.is_some_and(|other| *other == change);
            verdict.check(Promise::Events, is_same, || format!("{follower}: {change:?} is {other:?} in its history"));
        }
        for (sequence, change) in known.range(after + 1..) {
            verdict.check(Promise::Events, seen.contains(sequence), || format!("{follower} missed {change:?}"));
        }
    }
}

/// A history begins with QUEUED, goes forward in each attempt, and ends as the submission does. Events without a change of state, such
/// as those of queues, name the same state twice.
fn path(found: &Found, verdict: &mut Verdict) {
    let (id, mut place) = (&found.document.id, None);
    for change in &found.events {
        let next = (change.attempt, rank(&change.state));
        let is_repeated = change.previous.as_deref() == Some(change.state.as_str());
        let goes_on = place.is_none_or(|place| if is_repeated { place <= next } else { place < next });
        let begins = place.is_some() || change.state == "QUEUED";
        verdict.check(Promise::Events, goes_on && begins, || format!("{id}: {change:?} in {:?}", found.events));
        place = Some(next);
    }
    let last = found.events.last().map(|change| (change.attempt, change.state.as_str()));
    let is = (found.document.attempt, found.document.state.as_str());
    verdict.check(Promise::Events, last == Some(is), || format!("{id} is {is:?}, and its last event {last:?}"));
}
