//! `CloudEvents` 1.0 in the structured mode as JSON.

use chrono::SecondsFormat;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::Change;

/// Returns the event. Besides the attributes of the specification it has the extensions `sequence` and `traceparent`.
pub(super) fn body(change: &Change, id: &str, installation: Uuid) -> Value {
    let time = change.at.to_rfc3339_opts(SecondsFormat::AutoSi, true);
    let mut event = json!({
        "specversion": "1.0",
        "id": id,
        "source": format!("urn:uuid:{installation}"),
        "type": format!("dev.sparkgate.submission.{}", change.notice().unwrap_or(&change.state).to_ascii_lowercase()),
        "subject": change.submission_id,
        "time": time,
        "datacontenttype": "application/json",
        "sequence": change.sequence.to_string(),
        "data": data(change, &time),
    });
    let trace = change.trace_context.as_deref().and_then(|trace| trace.split(' ').next());
    if let Some(trace) = trace {
        event["traceparent"] = trace.into();
    }
    event
}

/// Returns the fields of an event of the API, and what is known of the submission.
fn data(change: &Change, time: &str) -> Value {
    let mut data = Map::new();
    let fields: [(&str, Option<Value>); 17] = [
        ("sequence", Some(change.sequence.into())),
        ("submissionId", Some(change.submission_id.as_str().into())),
        ("attempt", Some(change.attempt.into())),
        ("state", Some(change.state.as_str().into())),
        ("previous", change.previous.as_deref().map(Value::from)),
        ("reason", change.reason.as_deref().map(Value::from)),
        ("message", change.message.as_deref().map(Value::from)),
        ("at", Some(time.into())),
        ("exitCode", change.exit_code.map(Value::from)),
        ("failureCode", change.failure_code().map(|code| code.as_str().into())),
        ("name", Some(change.name.as_str().into())),
        ("tenant", Some(change.tenant.as_str().into())),
        ("principal", Some(change.principal.as_str().into())),
        ("owner", Some(change.owner.as_str().into())),
        ("namespace", Some(change.namespace.as_str().into())),
        ("clientId", change.client_id.as_deref().map(Value::from)),
        ("sparkVersion", Some(change.spark_version.as_str().into())),
    ];
    data.extend(fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
    data.insert("labels".to_owned(), json!(change.labels));
    data.into()
}
