//! The filter of a subscription.

use sparkgate_store::{Event, Scope};
use sparkgate_submission::SubmissionId;
use sparkgate_tenancy::session::Session;

/// All given criteria have to match, and the submission has to be one that the caller may read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventFilter {
    scope: Scope,
    pub submission: Option<SubmissionId>,
    pub owner: Option<String>,
    pub namespace: Option<String>,
    /// Labels with their values.
    pub labels: Vec<(String, String)>,
}

impl EventFilter {
    /// Returns the filter that matches every event that the caller may read.
    pub fn of(caller: &Session) -> Self {
        Self { scope: caller.readable(), submission: None, owner: None, namespace: None, labels: Vec::new() }
    }

    /// Returns whether the event matches.
    pub fn takes(&self, event: &Event) -> bool {
        let about = &event.of;
        self.scope.covers(&about.tenant, &about.principal)
            && self.submission.as_ref().is_none_or(|id| id.as_str() == event.submission_id)
            && self.owner.as_ref().is_none_or(|owner| *owner == about.owner)
            && self.namespace.as_ref().is_none_or(|namespace| *namespace == about.namespace)
            && self.labels.iter().all(|(key, value)| about.labels.get(key) == Some(value))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use chrono::DateTime;

    use super::*;
    use sparkgate_store::About;

    #[test]
    fn a_change_has_to_match_all_criteria_of_a_filter() {
        let labels = BTreeMap::from([("team".to_owned(), "data".to_owned()), ("tier".to_owned(), "gold".to_owned())]);
        let event = Event {
            sequence: Some(1),
            submission_id: "driver-20260102030405-0001".to_owned(),
            attempt: 1,
            state: "QUEUED".to_owned(),
            previous: None,
            reason: None,
            message: None,
            at: DateTime::UNIX_EPOCH,
            of: About {
                tenant: "red".to_owned(),
                principal: "corp:alice".to_owned(),
                owner: "alice".to_owned(),
                namespace: "spark".to_owned(),
                labels,
            },
        };
        let label = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let all = EventFilter {
            scope: Scope::of(vec!["red".to_owned()], vec![], ""),
            submission: Some(event.submission_id.parse().unwrap()),
            owner: Some("alice".to_owned()),
            namespace: Some("spark".to_owned()),
            labels: vec![label("team", "data"), label("tier", "gold")],
        };
        assert!(all.takes(&event) && EventFilter { submission: None, labels: vec![], ..all.clone() }.takes(&event));
        let others = [
            EventFilter { scope: Scope::of(vec!["blue".to_owned()], vec![], "corp:alice"), ..all.clone() },
            EventFilter { submission: Some("driver-20260102030405-0002".parse().unwrap()), ..all.clone() },
            EventFilter { owner: Some("bob".to_owned()), ..all.clone() },
            EventFilter { namespace: Some("default".to_owned()), ..all.clone() },
            EventFilter { labels: vec![label("team", "data"), label("tier", "iron")], ..all.clone() },
            EventFilter { labels: vec![label("stage", "gold")], ..all },
        ];
        for other in others {
            assert!(!other.takes(&event), "{other:?}");
        }
    }
}
