//! Whether a submission would be admitted at once, before it is accepted.

use std::time::Duration;

use super::{Amounts, Candidate, Snapshot, decide, reason::WaitReason};

/// The number of a submission that has none yet: it comes after all others.
const NEXT: i64 = i64::MAX;

/// What becomes of a submission that is accepted now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outlook {
    Admitted,
    /// Others of its tenant wait in the queue, and are admitted before it.
    Behind,
    /// It waits for this.
    Waits(WaitReason),
}

/// Returns what becomes of a submission with this cost that a tenant adds to a queue now. It is the rule of [`decide()`] with one more
/// submission, so others may still overtake it until the next round.
pub fn outlook(mut snapshot: Snapshot, queue: &str, tenant: &str, cost: Amounts) -> Outlook {
    let Some(place) = snapshot.queues.get_mut(queue) else { return Outlook::Behind };
    let place = place.tenants.entry(tenant.to_owned()).or_default();
    if place.has_more {
        return Outlook::Behind;
    }
    place.waiting.push(Candidate { number: NEXT, cost, waited: Duration::ZERO });
    let mut round = decide(&snapshot, usize::MAX);
    match round.waiting.remove(&NEXT) {
        Some(reason) => Outlook::Waits(reason),
        None if round.admitted.contains(&NEXT) => Outlook::Admitted,
        None => Outlook::Behind,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queues::{Queue, Resource, Tenant};

    fn cores(amount: u64) -> Amounts {
        Amounts::default().with(Resource::Cores, amount)
    }

    /// Returns a queue with a cap of 10 cores, of which a tenant uses some.
    fn snapshot(used: u64, waiting: &[u64], is_paused: bool) -> Snapshot {
        let candidate = |(at, cost): (usize, &u64)| Candidate {
            number: i64::try_from(at).unwrap_or(0),
            cost: cores(*cost),
            waited: Duration::ZERO,
        };
        let waiting = waiting.iter().enumerate().map(candidate).collect();
        let tenant = Tenant { running: cores(used), since_admission: None, waiting, has_more: false };
        let tenants = [("red".to_owned(), tenant)].into();
        let queue = Queue { caps: cores(10), is_paused, tenants, ..Queue::default() };
        Snapshot { queues: [("q".to_owned(), queue)].into(), ..Snapshot::default() }
    }

    #[test]
    fn the_outlook_is_that_of_the_next_round() {
        let of = |snapshot, tenant| outlook(snapshot, "q", tenant, cores(4));
        assert_eq!(of(snapshot(6, &[], false), "red"), Outlook::Admitted);
        assert!(matches!(of(snapshot(7, &[], false), "red"), Outlook::Waits(WaitReason::Cap { used: 7, .. })));
        assert!(matches!(of(snapshot(7, &[], false), "blue"), Outlook::Waits(WaitReason::Cap { .. })));
        assert_eq!(of(snapshot(0, &[], true), "red"), Outlook::Waits(WaitReason::Paused));
        assert_eq!(of(snapshot(0, &[3, 3], false), "red"), Outlook::Admitted, "those before it are admitted at once");
        assert_eq!(of(snapshot(7, &[6], false), "red"), Outlook::Behind);
        let mut more = snapshot(0, &[], false);
        more.queues.get_mut("q").unwrap().tenants.get_mut("red").unwrap().has_more = true;
        assert_eq!(of(more, "red"), Outlook::Behind);
    }
}
