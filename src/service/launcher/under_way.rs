//! The submissions that this process works on, and how many more it may claim of each namespace.

use std::collections::HashMap;

use tokio::time::Instant;

use crate::{service::effects::circuit_breaker::Restricted, store::Room, submission::SubmissionId};

/// Maximum number of submissions of one namespace that a process works on at once. The total may be higher, so that a namespace
/// with a slow webhook never occupies all slots.
const OF_ONE_NAMESPACE: usize = 96;
/// A namespace with fewer free slots than this waits until so many are free, so that one statement claims them together.
const TOGETHER: usize = 16;

/// The submissions that this process works on under a claim.
#[derive(Debug, Default)]
pub(super) struct UnderWay {
    /// With their namespaces.
    pub(super) submissions: HashMap<SubmissionId, String>,
    /// When a claim by namespace last found nothing.
    pub(super) found_nothing: Option<Instant>,
}

impl UnderWay {
    /// Returns the limit of a claim of up to `slots`, or, if the claim has to treat namespaces differently, the [`Room`] of
    /// each.
    pub(super) fn room(&self, slots: usize, restricted: Restricted) -> Result<usize, Room> {
        let mut places = HashMap::<&str, usize>::new();
        for namespace in self.submissions.values() {
            *places.entry(namespace).or_insert(OF_ONE_NAMESPACE) -= 1;
        }
        let fewest = places.values().copied().min().unwrap_or(OF_ONE_NAMESPACE);
        let Restricted { open, half_open } = restricted;
        if open.is_empty() && half_open.is_empty() && fewest >= TOGETHER.min(slots) {
            return Ok(slots.min(fewest));
        }
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let fewer = places.into_iter().filter(|(namespace, _)| open.iter().all(|one| one != namespace));
        let fewer =
            fewer.map(|(namespace, left)| (namespace.to_owned(), if left < TOGETHER { 0 } else { number(left) }));
        let fewer = fewer.collect::<Vec<_>>().into_iter().chain(open.iter().map(|namespace| (namespace.clone(), 0)));
        Err(Room { all: number(slots), each: number(OF_ONE_NAMESPACE), fewer: fewer.collect(), one: half_open })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn under_way(counts: &[(&str, usize)]) -> UnderWay {
        let mut under_way = UnderWay::default();
        for (namespace, count) in counts {
            for number in 0..*count {
                let id = format!("driver-20260101000000-{:04}", under_way.submissions.len() + number);
                under_way.submissions.insert(id.parse().unwrap(), (*namespace).to_owned());
            }
        }
        under_way
    }

    #[test]
    fn a_claim_gives_a_namespace_no_more_than_its_share() {
        let room = |counts, slots| under_way(counts).room(slots, Restricted::default());
        assert_eq!(room(&[], 192), Ok(96));
        assert_eq!(room(&[("a", 60)], 132), Ok(36), "a plain limit, as long as all namespaces have room");
        assert_eq!(room(&[("a", 95)], 1), Ok(1));
        let fewer = |room: Result<usize, Room>| {
            let mut room = room.unwrap_err();
            room.fewer.sort();
            (room.all, room.each, room.fewer)
        };
        assert_eq!(fewer(room(&[("a", 90)], 102)), (102, 96, vec![("a".to_owned(), 0)]));
        let two = fewer(room(&[("a", 96), ("b", 20)], 76));
        assert_eq!(two, (76, 96, vec![("a".to_owned(), 0), ("b".to_owned(), 76)]));
    }

    #[test]
    fn a_claim_takes_one_submission_of_a_half_open_namespace_and_none_of_an_open_one() {
        let restricted = || Restricted { open: vec!["a".to_owned()], half_open: vec![("b".to_owned(), 7)] };
        let room = under_way(&[("a", 3)]).room(16, restricted()).unwrap_err();
        assert_eq!((room.fewer, room.one), (vec![("a".to_owned(), 0)], vec![("b".to_owned(), 7)]));
    }
}
