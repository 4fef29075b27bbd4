//! Whether later readers see later states.

use std::collections::BTreeMap;

use super::{Promise, Verdict};
use crate::history::{Event, History, is_end, rank};

/// A state that a client saw. A read shows a state of the time between its beginning and its end; an event shows one that has been.
#[derive(Debug, Clone, Copy)]
struct Seen<'a> {
    /// `None` of an event, which may come late.
    began: Option<u64>,
    ended: u64,
    attempt: i64,
    state: &'a str,
    exit_code: Option<i64>,
}

impl Seen<'_> {
    /// Returns how far the submission was: an attempt precedes all states of the next one.
    fn place(&self) -> (i64, u8) {
        (self.attempt, rank(self.state).unwrap_or_default())
    }
}

pub(super) fn judge(history: &History, verdict: &mut Verdict) {
    let mut all: BTreeMap<&str, Vec<Seen<'_>>> = BTreeMap::new();
    for call in &history.calls {
        let Some(document) = call.answer.document() else { continue };
        let (began, attempt, state) = (Some(call.began), document.attempt, document.state.as_str());
        let seen = Seen { began, ended: call.ended, attempt, state, exit_code: document.exit_code };
        all.entry(&document.id).or_default().push(seen);
        if rank(state).is_none() {
            verdict.check(Promise::Forward, false, || format!("{}: {state} is no state", document.id));
        }
    }
    for Event { at, change, .. } in &history.events {
        let (attempt, state) = (change.attempt, change.state.as_str());
        let seen = Seen { began: None, ended: *at, attempt, state, exit_code: None };
        all.entry(&change.submission_id).or_default().push(seen);
    }
    for (id, mut seen) in all {
        seen.sort_by_key(|seen| seen.ended);
        let mut reads: Vec<_> = seen.iter().filter_map(|seen| Some((seen.began?, *seen))).collect();
        reads.sort_by_key(|(began, _)| *began);
        let mut before = seen.iter().peekable();
        let mut furthest: Option<Seen<'_>> = None;
        for (began, read) in reads {
            while let Some(earlier) = before.next_if(|seen| seen.ended < began) {
                if furthest.is_none_or(|furthest| furthest.place() <= earlier.place()) {
                    furthest = Some(*earlier);
                }
            }
            let Some(furthest) = furthest else { continue };
            let goes_back = read.place() < furthest.place();
            let ends_again = read.place() == furthest.place() && is_end(read.state) && read.state != furthest.state;
            let other_code = !ends_again
                && read.place() == furthest.place()
                && furthest.exit_code.is_some()
                && read.exit_code != furthest.exit_code;
            verdict.check(Promise::Forward, !goes_back && !ends_again && !other_code, || {
                format!("{id}: a read that began at {began} µs saw {read:?} after {furthest:?}")
            });
        }
    }
}
