//! What a pod reserves on its node.

use chrono::{DateTime, Utc};

/// What a pod reserves on its node, and since when: with the pod's end, its usage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reservation {
    /// Thousandths of a core that the pod requests, with the overhead of its runtime class.
    pub millicores: i64,
    /// The same for memory.
    pub memory_bytes: i64,
    /// When its node accepted the pod, before it pulled the images; `None` as long as it has no node.
    pub since: Option<DateTime<Utc>>,
}
