//! Why a submission waits.

use super::amounts::Resource;

/// Why the next submission of a tenant isn't admitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WaitReason {
    /// Its queue is paused.
    Paused,
    /// A cap of its queue has no room for it.
    Cap { resource: Resource, used: u64, cap: u64, cost: u64 },
    /// The capacity of all queues has no room for it.
    Capacity { resource: Resource, used: u64, capacity: u64, cost: u64 },
    /// There would be room, but it is kept free for the submission with this number, which is larger and was next before.
    Reserved { number: i64 },
    /// It costs more than a cap of its queue, or than the capacity. It was accepted before that was lowered.
    NeverFits { resource: Resource, most: u64, cost: u64 },
}

impl WaitReason {
    /// Returns the reason as one word.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Paused => "QueuePaused",
            Self::Cap { .. } => "QueueCap",
            Self::Capacity { .. } => "Capacity",
            Self::Reserved { .. } => "CapacityReserved",
            Self::NeverFits { .. } => "NeverFits",
        }
    }

    /// Returns the reason as a sentence about the queue.
    pub fn sentence(&self, queue: &str) -> String {
        match self {
            Self::Paused => format!("queue {queue} is paused"),
            Self::Cap { resource, used, cap, cost } => {
                let (used, cap, cost) = (resource.written(*used), resource.written(*cap), resource.written(*cost));
                format!("the cap of queue {queue} on {resource} has no room for {cost}: {used} of {cap} are used")
            }
            Self::Capacity { resource, used, capacity, cost } => {
                let (used, all, cost) = (resource.written(*used), resource.written(*capacity), resource.written(*cost));
                format!("the capacity of all queues has no room for {cost} {resource}: {used} of {all} are used")
            }
            Self::Reserved { number } => {
                format!("room is kept free for a larger submission that has waited for longer, number {number}")
            }
            Self::NeverFits { resource, most, cost } => {
                let (most, cost) = (resource.written(*most), resource.written(*cost));
                format!(
                    "it needs {cost} {resource}, and queue {queue} may use {most} since its cap was lowered: kill it, or ask the \
                     operator to raise the cap"
                )
            }
        }
    }
}
