//! What queues lend each other.

use std::collections::BTreeMap;

use super::Amounts;

/// The share of a queue in a whole.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct QueueShare {
    /// Its part by weight.
    pub fair: f64,
    /// Its part by use: the largest of those of its resources.
    pub used: f64,
    /// What it uses of the fair shares of other queues, by their names.
    pub borrowed: BTreeMap<String, f64>,
}

/// Returns the shares of queues, each with its weight and its use. A queue that uses more than its fair share borrows from those that use
/// less, in proportion to what they leave.
pub fn shares(queues: &BTreeMap<String, (u32, Amounts)>, whole: &Amounts) -> BTreeMap<String, QueueShare> {
    let weights: f64 = queues.values().map(|(weight, _)| f64::from(*weight)).sum();
    let mut shares: BTreeMap<String, QueueShare> = BTreeMap::new();
    for (name, (weight, used)) in queues {
        let of_each = whole.iter().map(|(resource, whole)| used.amount(resource) as f64 / (*whole).max(1) as f64);
        let share = QueueShare {
            fair: f64::from(*weight) / weights.max(1.0),
            used: of_each.fold(0.0, f64::max),
            borrowed: BTreeMap::new(),
        };
        shares.insert(name.clone(), share);
    }
    let idle: BTreeMap<String, f64> =
        shares.iter().map(|(name, share)| (name.clone(), (share.fair - share.used).max(0.0))).collect();
    let all_idle: f64 = idle.values().sum();
    let all_beyond: f64 = shares.values().map(|share| (share.used - share.fair).max(0.0)).sum();
    // Queues that use different resources may use more than the whole together.
    let all = all_idle.max(all_beyond);
    for share in shares.values_mut() {
        let beyond = share.used - share.fair;
        if beyond > 0.0 {
            let lenders = idle.iter().filter(|(_, idle)| **idle > 0.0);
            share.borrowed = lenders.map(|(lender, idle)| (lender.clone(), beyond * idle / all)).collect();
        }
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queues::Resource;

    fn cores(amount: u64) -> Amounts {
        Amounts::default().with(Resource::Cores, amount)
    }

    fn of(queues: [(&str, u32, Amounts); 3], whole: &Amounts) -> BTreeMap<String, QueueShare> {
        shares(&queues.map(|(name, weight, used)| (name.to_owned(), (weight, used))).into(), whole)
    }

    #[test]
    fn a_queue_borrows_from_those_that_use_less_than_their_share() {
        let shares = of([("a", 2, cores(80)), ("b", 1, cores(5)), ("c", 1, cores(15))], &cores(100));
        assert_eq!((shares["a"].fair, shares["a"].used), (0.5, 0.8));
        let lent: Vec<_> =
            shares["a"].borrowed.iter().map(|(name, share)| (name.as_str(), (share * 100.0).round())).collect();
        assert_eq!(lent, [("b", 20.0), ("c", 10.0)]);
        assert!(shares["b"].borrowed.is_empty() && shares["c"].borrowed.is_empty());
    }

    #[test]
    fn nothing_is_lent_while_nothing_runs_or_each_has_its_share() {
        for whole in [cores(100), Amounts::default()] {
            let shares = of([("a", 1, cores(0)), ("b", 1, cores(0)), ("c", 1, cores(0))], &whole);
            assert!(shares.values().all(|share| share.used == 0.0 && share.borrowed.is_empty()));
        }
        let memory = Amounts::default().with(Resource::Memory, 100);
        let whole = cores(100).with(Resource::Memory, 100);
        let shares = of([("a", 1, cores(100)), ("b", 1, memory), ("c", 1, cores(0))], &whole);
        let borrowed: f64 = shares.values().flat_map(|share| share.borrowed.values()).sum();
        assert!(borrowed <= shares["c"].fair + 1e-9, "no more than a queue has can be borrowed from it: {shares:?}");
    }
}
