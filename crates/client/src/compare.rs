//! The differences between two submissions.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use serde_json::{Map, Value, json};

use crate::{
    api::{Api, Call},
    document,
    error::Error,
};
use sparkgate_submission::SubmissionId;

/// The fields of a request that are objects of texts.
const MAPS: [&str; 3] = ["sparkProperties", "environmentVariables", "labels"];
const IMAGES: [&str; 3] = [
    "spark.kubernetes.container.image",
    "spark.kubernetes.driver.container.image",
    "spark.kubernetes.executor.container.image",
];

/// A submission with its request.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) submission: Value,
    pub(super) request: Value,
}

impl Run {
    /// Reads both.
    ///
    /// # Errors
    /// Those of the calls.
    pub(super) async fn read(api: &Api, id: &SubmissionId) -> Result<Self, Error> {
        let of = async |call: Call| document::read(call.action(), &api.send(&call).await?.body);
        let request = Call::get(format!("asking for the request of {id}"), &["submissions", id.as_str(), "request"]);
        Ok(Self {
            submission: of(Call::get(format!("asking for {id}"), &["submissions", id.as_str()])).await?,
            request: of(request).await?,
        })
    }
}

/// Returns what differs between two submissions, and their outcomes and durations.
pub(super) fn compare(a: &Run, b: &Run, now: DateTime<Utc>) -> Value {
    let mut differences = Map::new();
    for field in MAPS {
        let found = compare_maps(&a.request[field], &b.request[field]);
        differences.extend((!found.is_empty()).then(|| (field.to_owned(), found.into())));
    }
    let fields: BTreeSet<&String> =
        [&a.request, &b.request].into_iter().filter_map(Value::as_object).flat_map(Map::keys).collect();
    for field in fields.into_iter().filter(|field| !MAPS.contains(&field.as_str())) {
        let (a, b) = (&a.request[field], &b.request[field]);
        if a != b {
            differences.insert(field.clone(), json!({ "a": a, "b": b }));
        }
    }
    let images: Vec<&str> = IMAGES.into_iter().filter(|key| image(a, key) != image(b, key)).collect();
    let images: Map<String, Value> =
        images.into_iter().map(|key| (key.to_owned(), json!({ "a": image(a, key), "b": image(b, key) }))).collect();
    differences.extend((!images.is_empty()).then(|| ("image".to_owned(), images.into())));
    json!({
        "a": outcome(&a.submission, now),
        "b": outcome(&b.submission, now),
        "differences": differences,
        "requestsAreEqual": differences.is_empty(),
    })
}

fn image<'a>(run: &'a Run, key: &str) -> &'a Value {
    &run.request["sparkProperties"][key]
}

/// Returns the keys that only one of two objects has, and those whose values differ.
fn compare_maps(a: &Value, b: &Value) -> Map<String, Value> {
    let empty = Map::new();
    let (a, b) = (a.as_object().unwrap_or(&empty), b.as_object().unwrap_or(&empty));
    let only = |of: &Map<String, Value>, other: &Map<String, Value>| -> Map<String, Value> {
        of.iter()
            .filter(|(key, _)| !other.contains_key(*key))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    };
    let changed: Map<String, Value> = a
        .iter()
        .filter_map(|(key, of_a)| Some((key, of_a, b.get(key).filter(|of_b| *of_b != of_a)?)))
        .map(|(key, a, b)| (key.clone(), json!({ "a": a, "b": b })))
        .collect();
    let found = [("onlyInA", only(a, b)), ("onlyInB", only(b, a)), ("changed", changed)];
    found.into_iter().filter(|(_, map)| !map.is_empty()).map(|(name, map)| (name.to_owned(), map.into())).collect()
}

/// Returns how a submission went.
fn outcome(submission: &Value, now: DateTime<Utc>) -> Value {
    let mut outcome = Map::new();
    for field in [
        "id",
        "name",
        "state",
        "attempt",
        "exitCode",
        "createdAt",
        "startedAt",
        "finishedAt",
        "sparkVersion",
        "executors",
        "usage",
    ] {
        outcome.extend(submission.get(field).map(|value| (field.to_owned(), value.clone())));
    }
    if let Some(why) = submission.get("failure").or_else(|| submission.get("waiting")) {
        outcome.insert("reason".to_owned(), json!({ "code": why["code"], "message": why["message"] }));
    }
    let time = |field: &str| submission[field].as_str().and_then(|text| text.parse::<DateTime<Utc>>().ok());
    let seconds = |from: DateTime<Utc>, to: DateTime<Utc>| (to - from).num_milliseconds() as f64 / 1000.0;
    let (created, started, finished) = (time("createdAt"), time("startedAt"), time("finishedAt"));
    if let Some(created) = created {
        let until = started.or(finished).unwrap_or(now);
        outcome.insert("secondsUntilStart".to_owned(), seconds(created, until).into());
    }
    if let Some(started) = started {
        outcome.insert("secondsRunning".to_owned(), seconds(started, finished.unwrap_or(now)).into());
    }
    outcome.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(properties: &Value, arguments: &Value, end: &str) -> Run {
        Run {
            submission: json!({"id": "driver-1", "state": "FINISHED", "createdAt": "2026-01-02T03:04:00Z",
                "startedAt": "2026-01-02T03:04:05Z", "finishedAt": end}),
            request: json!({"appArgs": arguments, "sparkProperties": properties}),
        }
    }

    #[test]
    fn differences_are_by_field_and_key() {
        let a = run(
            &json!({"spark.a": "1", "spark.b": "2", "spark.kubernetes.container.image": "x:1"}),
            &json!(["1"]),
            "2026-01-02T03:05:05Z",
        );
        let b = run(
            &json!({"spark.b": "3", "spark.c": "4", "spark.kubernetes.container.image": "x:2"}),
            &json!(["2"]),
            "2026-01-02T03:06:05Z",
        );
        let compared = compare(&a, &b, Utc::now());
        let properties = &compared["differences"]["sparkProperties"];
        assert_eq!(
            (&properties["onlyInA"], &properties["onlyInB"]),
            (&json!({"spark.a": "1"}), &json!({"spark.c": "4"}))
        );
        assert_eq!(properties["changed"]["spark.b"], json!({"a": "2", "b": "3"}));
        assert_eq!(compared["differences"]["appArgs"], json!({"a": ["1"], "b": ["2"]}));
        assert_eq!(
            compared["differences"]["image"]["spark.kubernetes.container.image"],
            json!({"a": "x:1", "b": "x:2"})
        );
        assert_eq!((&compared["a"]["secondsRunning"], &compared["b"]["secondsRunning"]), (&json!(60.0), &json!(120.0)));
        assert_eq!(compared["a"]["secondsUntilStart"], json!(5.0));
        assert_eq!(compare(&a, &a, Utc::now())["requestsAreEqual"], true);
    }
}
