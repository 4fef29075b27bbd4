//! What Kubernetes says about a pod: its events, as far as they are told and kept.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// An event about a pod: of the scheduler, the kubelet or a controller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodEvent {
    /// When it happened last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<DateTime<Utc>>,
    /// `Normal` or `Warning`.
    #[serde(rename = "type")]
    pub kind: String,
    /// One word, such as `FailedScheduling` or `BackOff`.
    pub reason: String,
    pub message: String,
    /// How often it happened.
    pub count: i64,
}

impl PodEvent {
    /// How many are told and kept of one pod.
    pub const MOST: usize = 20;

    /// Those that matter: warnings before all others, then the newest first, and [`Self::MOST`] at most.
    pub fn that_matter(mut events: Vec<Self>) -> Vec<Self> {
        events.sort_by_key(|event| std::cmp::Reverse((event.kind == "Warning", event.at)));
        events.truncate(Self::MOST);
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: &str, second: i64) -> PodEvent {
        let at = DateTime::from_timestamp(second, 0);
        PodEvent { at, kind: kind.to_owned(), reason: String::new(), message: String::new(), count: 1 }
    }

    #[test]
    fn a_warning_outlasts_what_is_normal() {
        let mut events = vec![event("Warning", 1), event("Warning", 2)];
        events.extend((10..40).map(|second| event("Normal", second)));
        let kept = PodEvent::that_matter(events);
        let seconds: Vec<_> = kept.iter().map(|event| event.at.unwrap().timestamp()).collect();
        assert_eq!(seconds.len(), PodEvent::MOST);
        assert_eq!(seconds[..4], [2, 1, 39, 38]);
    }
}
