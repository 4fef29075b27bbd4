//! Queues: which waiting submissions are admitted next, and why the others wait.
//!
//! [`decide()`] is a pure rule. Its input is a [`Snapshot`]: the capacity, and of each queue its weight, its caps, what runs and who is
//! next. Its result is a [`Round`]. The rule has no clock and no randomness.
//!
//! Queues share the capacity by weight, by dominant resources: the next place belongs to the queue whose largest share of any resource is
//! the smallest in proportion to its weight. Within a queue, tenants share equally in the same way. Among equals, it is the turn of the one
//! whose last admission is longest ago: not of the longest backlog. Within a tenant, priority decides, and the order of acceptance among
//! equals ([`rank`]). What a queue doesn't use is lent to the others. Nothing is preempted.

mod amounts;
mod decide;
mod estimate;
mod event;
mod lent;
mod outlook;
mod reason;
mod room;
mod share;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, time::Duration};

pub use amounts::{Amounts, Resource};
pub use decide::decide;
pub use estimate::History;
pub use event::QueueEvent;
pub use lent::{QueueShare, shares};
pub use outlook::{Outlook, outlook};
pub use reason::WaitReason;

/// The priorities that a submission can have.
pub const PRIORITIES: std::ops::RangeInclusive<i32> = 0..=1000;

/// How many later submissions overtake an earlier one of the same tenant for each point by which their priority is higher.
const OVERTAKEN: i64 = 1_000_000;

/// Returns the place of a submission among those of its tenant in a queue: the lowest is the next. It never changes, and no submission is
/// overtaken without an end: one with a higher priority overtakes those of at most a million earlier numbers for each point.
pub fn rank(number: i64, priority: i32) -> i64 {
    number.saturating_sub(i64::from(priority).saturating_mul(OVERTAKEN))
}

/// What runs and what waits, at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// What all queues may use together; resources that it doesn't have are unlimited.
    pub capacity: Amounts,
    /// How long a submission that is next must wait before room is kept free for it.
    pub reserve_after: Duration,
    /// The queues by name. What runs in a queue counts even if nothing of it waits.
    pub queues: BTreeMap<String, Queue>,
}

/// A queue in a [`Snapshot`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queue {
    /// At least 1.
    pub weight: u32,
    /// What the queue may use; resources that it doesn't have are unlimited.
    pub caps: Amounts,
    /// Nothing of it is admitted.
    pub is_paused: bool,
    pub tenants: BTreeMap<String, Tenant>,
}

impl Default for Queue {
    fn default() -> Self {
        Self { weight: 1, caps: Amounts::default(), is_paused: false, tenants: BTreeMap::new() }
    }
}

/// A tenant in a queue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tenant {
    /// What its admitted submissions use.
    pub running: Amounts,
    /// How long ago its last admission was, if it had one.
    pub since_admission: Option<Duration>,
    /// Its next submissions, in their order.
    pub waiting: Vec<Candidate>,
    /// More of them wait than the snapshot has.
    pub has_more: bool,
}

/// A submission that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The number of the submission, which identifies it.
    pub number: i64,
    pub cost: Amounts,
    pub waited: Duration,
}

/// The decision about a [`Snapshot`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Round {
    /// The numbers of the submissions to admit, in the order of the decision.
    pub admitted: Vec<i64>,
    /// Why the next submission of each tenant waits. Those behind it wait for it.
    pub waiting: BTreeMap<i64, WaitReason>,
    /// The snapshot or the limit was too small to decide about all: another round may admit more.
    pub is_partial: bool,
}
