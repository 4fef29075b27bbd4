//! Shares of dominant resources.

use super::{Queue, Snapshot, amounts::Amounts};

/// Parts of a whole.
const SCALE: u128 = 1_000_000_000_000;

/// A share in proportion to a weight. It is computed with integers: the same everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Share(u128);

impl Share {
    /// Returns the largest share of any resource of `whole` that a use is.
    pub(super) fn dominant(used: &Amounts, whole: &Amounts, weight: u32) -> Self {
        let of_each = whole.iter().map(|(resource, whole)| {
            u128::from(used.amount(resource)).saturating_mul(SCALE) / u128::from((*whole).max(1))
        });
        Self(of_each.max().unwrap_or_default() * 1000 / u128::from(weight.max(1)))
    }
}

/// Returns what shares of queues are shares of: the capacity. Without a stated capacity, it is what runs and waits.
pub(super) fn whole(snapshot: &Snapshot) -> Amounts {
    if !snapshot.capacity.is_empty() {
        return snapshot.capacity.clone();
    }
    let mut whole = Amounts::default();
    for tenant in snapshot.queues.values().flat_map(|queue| queue.tenants.values()) {
        whole.add(&tenant.running);
        tenant.waiting.iter().for_each(|waiting| whole.add(&waiting.cost));
    }
    whole
}

/// Returns what shares of the tenants of a queue are shares of: its caps, or else that of the queues.
pub(super) fn whole_of_queue<'a>(queue: &'a Queue, whole: &'a Amounts) -> &'a Amounts {
    if queue.caps.is_empty() { whole } else { &queue.caps }
}
