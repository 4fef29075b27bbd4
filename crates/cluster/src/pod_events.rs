//! Reads the events of one pod.

use std::time::Duration;

use chrono::{DateTime, Utc};
use k8s_openapi::api::core::v1::Event;
use kube::{Resource, api::ListParams, core::Request};
use serde::Deserialize;

use super::{call::call, cluster::Cluster, error::Error};
use sparkgate_submission::{PodEvent, kept};

/// Timeout for the list. An API server has no index for this query: where there are many events it reads them all.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of events in the list; more than one pod ever has.
const LIMIT: u32 = 500;

#[derive(Debug, Deserialize)]
struct EventList {
    #[serde(default)]
    items: Vec<SlimEvent>,
}

/// An event with only the fields that are reported.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SlimEvent {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    message: String,
    count: Option<i64>,
    last_timestamp: Option<DateTime<Utc>>,
    event_time: Option<DateTime<Utc>>,
    series: Option<Series>,
    #[serde(default)]
    metadata: Metadata,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Series {
    count: Option<i64>,
    last_observed_time: Option<DateTime<Utc>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    creation_timestamp: Option<DateTime<Utc>>,
}

impl Cluster {
    /// Returns the events of exactly this pod, as long as the cluster keeps them (usually an hour): see
    /// [`PodEvent::that_matter`].
    ///
    /// # Errors
    /// [`Error::Denied`] where this account may not list events.
    pub async fn pod_events(&self, namespace: &str, uid: &str) -> Result<Vec<PodEvent>, Error> {
        let about = ListParams::default().fields(&format!("involvedObject.uid={uid}")).limit(LIMIT);
        let list = async {
            let request = Request::new(Event::url_path(&(), Some(namespace))).list(&about);
            self.client.request::<EventList>(request.map_err(kube::Error::BuildRequest)?).await
        };
        let list = call(format!("listing the events of a pod in {namespace}"), TIMEOUT, list).await?;
        Ok(PodEvent::that_matter(list.items.into_iter().map(PodEvent::from).collect()))
    }
}

impl From<SlimEvent> for PodEvent {
    /// Converts an event. Old and new reporters fill different fields (`events.k8s.io/v1` is served as `v1` too).
    fn from(event: SlimEvent) -> Self {
        let (times, last) = event.series.map_or((None, None), |series| (series.count, series.last_observed_time));
        Self {
            at: last.or(event.last_timestamp).or(event.event_time).or(event.metadata.creation_timestamp),
            kind: kept(&event.kind).into_owned(),
            reason: kept(&event.reason).into_owned(),
            message: kept(&event.message).into_owned(),
            count: times.or(event.count).unwrap_or(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn events_of_old_and_new_reporters_are_read() {
        let list: EventList = serde_json::from_value(json!({"items": [
            {"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}, "type": "Warning", "reason": "BackOff",
             "message": "a\u{0}b", "count": 7, "eventTime": null, "lastTimestamp": "2026-01-01T00:01:00Z",
             "source": {"component": "kubelet"}},
            {"metadata": {}, "type": "Warning", "reason": "FailedScheduling", "lastTimestamp": null, "count": null,
             "eventTime": "2026-01-01T00:00:30.123456Z", "series": {"count": 3, "lastObservedTime": "2026-01-01T00:02:00.000000Z"}},
            {"metadata": {"creationTimestamp": "2026-01-01T00:00:10Z"}, "type": "Normal", "reason": "Pulled"}]}))
        .unwrap();
        let all = PodEvent::that_matter(list.items.into_iter().map(PodEvent::from).collect());
        let all: Vec<_> = all.iter().map(|event| (event.reason.as_str(), event.count, event.at.unwrap())).collect();
        let at = |text: &str| text.parse::<DateTime<Utc>>().unwrap();
        assert_eq!(
            all,
            [
                ("Pulled", 1, at("2026-01-01T00:00:10Z")),
                ("BackOff", 7, at("2026-01-01T00:01:00Z")),
                ("FailedScheduling", 3, at("2026-01-01T00:02:00Z")),
            ]
        );
    }
}
