//! Kubernetes events of a pod, as far as they are returned and archived.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// An event about a pod, from the scheduler, the kubelet or a controller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodEvent {
    /// When the event last occurred.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<DateTime<Utc>>,
    /// `Normal` or `Warning`.
    #[serde(rename = "type")]
    pub kind: String,
    /// One word, such as `FailedScheduling` or `BackOff`.
    pub reason: String,
    pub message: String,
    /// How often the event occurred.
    pub count: i64,
}

impl PodEvent {
    /// Maximum number of events of one pod that are returned and archived.
    pub const MOST: usize = 20;

    /// Returns the relevant events, at most [`Self::MOST`], in the order in which they occurred: warnings are selected before
    /// all others, and newer ones before older ones.
    pub fn that_matter(mut events: Vec<Self>) -> Vec<Self> {
        events.sort_by_key(|event| std::cmp::Reverse((event.kind == "Warning", event.at)));
        events.truncate(Self::MOST);
        events.sort_by_key(|event| event.at);
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
    fn warnings_are_kept_before_normal_events_and_all_are_in_order() {
        let mut events = vec![event("Warning", 1), event("Warning", 2)];
        events.extend((10..40).map(|second| event("Normal", second)));
        let kept = PodEvent::that_matter(events);
        let seconds: Vec<_> = kept.iter().map(|event| event.at.unwrap().timestamp()).collect();
        assert_eq!(seconds.len(), PodEvent::MOST);
        assert_eq!((&seconds[..4], seconds.last()), (&[1, 2, 22, 23][..], Some(&39)));
    }
}
