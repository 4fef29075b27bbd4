//! The submissions that this process works on, and whose next ones it may claim.

use std::collections::{BTreeMap, HashMap};

use tokio::time::Instant;

use crate::effects::circuit_breaker::Restricted;
use sparkgate_store::Room;
use sparkgate_submission::SubmissionId;

/// A namespace that has so many slots, and room for fewer, waits until so many are free, so that one statement claims them together.
const TOGETHER: usize = 16;

/// Whose submission it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Whose {
    pub(super) tenant: String,
    pub(super) namespace: String,
}

/// The submissions that this process works on under a claim.
#[derive(Debug, Default)]
pub(super) struct UnderWay {
    pub(super) submissions: HashMap<SubmissionId, Whose>,
    /// When a claim that left namespaces out last found nothing.
    pub(super) found_nothing: Option<Instant>,
    /// When claims that this process doesn't know of were last returned.
    pub(super) gave_back: Option<Instant>,
}

impl UnderWay {
    /// Returns the [`Room`] of a claim of up to `slots`, if there are `most` slots in all.
    ///
    /// A namespace may take a slot as long as it and its tenant together hold fewer than twice as many as are free, as in
    /// [`Shares`](sparkgate_common::shares::Shares): alone, a namespace has half of the slots.
    pub(super) fn room(&self, slots: usize, most: usize, restricted: Restricted) -> Room {
        let (mut held, mut held_by_tenant) = (HashMap::<&Whose, usize>::new(), HashMap::<&str, usize>::new());
        for whose in self.submissions.values() {
            *held.entry(whose).or_default() += 1;
            *held_by_tenant.entry(&whose.tenant).or_default() += 1;
        }
        let free = most.saturating_sub(self.submissions.len());
        let Restricted { open: mut closed, half_open } = restricted;
        let mut of_namespaces = BTreeMap::<_, i64>::new();
        for (whose, count) in held {
            let both = count + held_by_tenant.get(whose.tenant.as_str()).copied().unwrap_or(count);
            // Each one that it takes is one more of both, and one free slot less.
            let left = (2 * free).saturating_sub(both).div_ceil(4);
            if left < TOGETHER.min(slots) && count >= TOGETHER {
                closed.push(whose.namespace.clone());
            }
            *of_namespaces.entry(whose.namespace.clone()).or_default() += number(count);
        }
        Room {
            all: number(slots.min(free)),
            free: number(free),
            held: of_namespaces,
            held_by_tenant: held_by_tenant.into_iter().map(|(name, count)| (name.to_owned(), number(count))).collect(),
            closed,
            one: half_open,
        }
    }
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn under_way(counts: &[(&str, &str, usize)]) -> UnderWay {
        let mut under_way = UnderWay::default();
        for (tenant, namespace, count) in counts {
            for _ in 0..*count {
                let id = format!("driver-20260101000000-{:04}", under_way.submissions.len());
                let whose = Whose { tenant: (*tenant).to_owned(), namespace: (*namespace).to_owned() };
                under_way.submissions.insert(id.parse().unwrap(), whose);
            }
        }
        under_way
    }

    #[test]
    fn a_claim_knows_what_namespaces_and_their_tenants_hold() {
        let room =
            under_way(&[("red", "a", 3), ("red", "b", 2), ("blue", "c", 1)]).room(100, 192, Restricted::default());
        assert_eq!((room.all, room.free), (100, 186));
        assert_eq!((room.held["a"], room.held["b"], room.held["c"]), (3, 2, 1));
        assert_eq!((room.held_by_tenant["red"], room.held_by_tenant["blue"]), (5, 1));
        assert!(room.closed.is_empty());
        assert_eq!(under_way(&[("red", "a", 190)]).room(16, 192, Restricted::default()).all, 2);
    }

    /// Otherwise, each launch that ends would be followed by a claim of one submission.
    #[test]
    fn a_namespace_that_has_its_share_waits_until_a_claim_is_worth_it() {
        let closed = |counts| under_way(counts).room(16, 192, Restricted::default()).closed;
        assert_eq!(closed(&[("red", "a", 96)]), ["a"], "alone, it has half of the slots");
        assert_eq!(closed(&[("red", "a", 81)]), ["a"]);
        assert!(closed(&[("red", "a", 80)]).is_empty());
        let mut both = closed(&[("red", "a", 64), ("blue", "b", 64), ("green", "c", 3)]);
        both.sort();
        assert_eq!(both, ["a", "b"], "one that has few doesn't wait");
    }

    #[test]
    fn a_claim_takes_one_submission_of_a_half_open_namespace_and_none_of_an_open_one() {
        let restricted = || Restricted { open: vec!["a".to_owned()], half_open: vec![("b".to_owned(), 7)] };
        let room = under_way(&[("red", "a", 3)]).room(16, 192, restricted());
        assert_eq!((room.closed, room.one), (vec!["a".to_owned()], vec![("b".to_owned(), 7)]));
    }
}
