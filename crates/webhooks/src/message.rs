//! What a webhook sends: a message for one state change.

mod cloud_event;
pub(super) mod open_lineage;

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use sparkgate_requests::options::webhook::MessageFormat;
use sparkgate_submission::{FailureCode, State};

/// A state change with what is known of its submission, as it was queued.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Change {
    sequence: i64,
    submission_id: String,
    attempt: i32,
    state: String,
    previous: Option<String>,
    reason: Option<String>,
    message: Option<String>,
    at: DateTime<Utc>,
    exit_code: Option<i32>,
    name: String,
    tenant: String,
    principal: String,
    owner: String,
    namespace: String,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    client_id: Option<String>,
    spark_version: String,
    trace_context: Option<String>,
    #[serde(default)]
    lineage: Lineage,
}

/// What a request says of its place in a lineage, by the properties of `OpenLineage`'s Spark integration.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Lineage {
    namespace: Option<String>,
    job_name: Option<String>,
    parent_namespace: Option<String>,
    parent_name: Option<String>,
    parent_run_id: Option<String>,
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Message {
    /// The same for each try, and for each webhook: `webhook-id`.
    pub(super) id: String,
    pub(super) content_type: &'static str,
    pub(super) body: String,
}

impl Message {
    /// Writes the message about a queued event. `None` if the format has none for this change. `is_of_all` says that the receiver
    /// gets the changes of all tenants.
    ///
    /// # Errors
    /// The event can't be read.
    pub(super) fn new(
        format: MessageFormat,
        event: Value,
        installation: Uuid,
        is_of_all: bool,
    ) -> serde_json::Result<Option<Self>> {
        let change: Change = serde_json::from_value(event)?;
        let id = change.id();
        let body = match format {
            MessageFormat::CloudEvents => Some(cloud_event::body(&change, &id, installation)),
            MessageFormat::OpenLineage => open_lineage::body(&change, installation, is_of_all),
        };
        let content_type = match format {
            MessageFormat::CloudEvents => "application/cloudevents+json",
            MessageFormat::OpenLineage => "application/json",
        };
        Ok(body.map(|body| Self { id, content_type, body: body.to_string() }))
    }
}

impl Change {
    /// Returns the id of the event: an attempt has each state once. Other events, such as those of queues, may come again.
    fn id(&self) -> String {
        let Self { submission_id, attempt, state, sequence, .. } = self;
        match self.notice() {
            Some(_) => format!("{submission_id}-{attempt}-{state}-{sequence}"),
            None => format!("{submission_id}-{attempt}-{state}"),
        }
    }

    /// Returns the reason of an event that changes no state: a queue admitted or holds the submission, or its run is late.
    fn notice(&self) -> Option<&str> {
        self.reason.as_deref().filter(|_| self.previous.as_ref() == Some(&self.state))
    }

    fn known_state(&self) -> Option<State> {
        self.state.parse().ok()
    }

    /// Returns the failure code of an end.
    fn failure_code(&self) -> Option<FailureCode> {
        let state = self.known_state().filter(|state| state.is_terminal())?;
        FailureCode::for_end(state, self.exit_code, self.reason.as_deref(), self.message.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(state: &str) -> Value {
        let previous = if state == "RUNNING" { "PENDING" } else { "RUNNING" };
        json!({
            "sequence": 17, "submissionId": "driver-20260102030405-0001", "attempt": 2, "state": state, "previous": previous,
            "reason": "Error", "message": "java.lang.IllegalStateException: no", "at": "2026-01-02T03:04:05.123456+00:00",
            "exitCode": 1, "name": "Pi", "tenant": "red", "principal": "corp:alice", "owner": "alice", "namespace": "spark",
            "labels": {"team": "data"}, "sparkVersion": "4.3.0",
            "traceContext": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 a=b",
            "lineage": {"parentNamespace": "airflow", "parentName": "etl.pi", "parentRunId": "01941f29-7c00-7087-8940-40e512c257bd"},
        })
    }

    fn body(format: MessageFormat, state: &str) -> Option<Value> {
        let message = Message::new(format, event(state), Uuid::nil(), false).unwrap()?;
        assert_eq!(message.id, format!("driver-20260102030405-0001-2-{state}"));
        Some(serde_json::from_str(&message.body).unwrap())
    }

    #[test]
    fn a_cloud_event_has_the_change_as_its_data() {
        assert_eq!(
            body(MessageFormat::CloudEvents, "FAILED").unwrap(),
            json!({
                "specversion": "1.0", "id": "driver-20260102030405-0001-2-FAILED",
                "source": "urn:uuid:00000000-0000-0000-0000-000000000000", "type": "dev.sparkgate.submission.failed",
                "subject": "driver-20260102030405-0001", "time": "2026-01-02T03:04:05.123456Z",
                "datacontenttype": "application/json", "sequence": "17",
                "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                "data": {
                    "sequence": 17, "submissionId": "driver-20260102030405-0001", "attempt": 2, "state": "FAILED",
                    "previous": "RUNNING", "reason": "Error", "message": "java.lang.IllegalStateException: no",
                    "at": "2026-01-02T03:04:05.123456Z", "exitCode": 1, "failureCode": "APPLICATION_ERROR", "name": "Pi",
                    "tenant": "red", "principal": "corp:alice", "owner": "alice", "namespace": "spark",
                    "labels": {"team": "data"}, "sparkVersion": "4.3.0",
                },
            })
        );
    }

    #[test]
    fn an_event_that_changes_no_state_has_a_type_and_an_id_of_its_own() {
        let mut late = event("RUNNING");
        late["previous"] = json!("RUNNING");
        late["reason"] = json!("Late");
        let sent = |format| Message::new(format, late.clone(), Uuid::nil(), false).unwrap();
        let message = sent(MessageFormat::CloudEvents).unwrap();
        assert_eq!(message.id, "driver-20260102030405-0001-2-RUNNING-17");
        let body: Value = serde_json::from_str(&message.body).unwrap();
        assert_eq!(
            (&body["type"], &body["data"]["state"]),
            (&json!("dev.sparkgate.submission.late"), &json!("RUNNING"))
        );
        assert_eq!(sent(MessageFormat::OpenLineage), None);
    }

    #[test]
    fn states_become_run_events() {
        let kind =
            |state| body(MessageFormat::OpenLineage, state).map(|body| body["eventType"].as_str().unwrap().to_owned());
        for (state, expected) in [
            ("QUEUED", Some("START")),
            ("LAUNCHING", None),
            ("PENDING", None),
            ("RUNNING", Some("RUNNING")),
            ("KILLING", None),
            ("FINISHED", Some("COMPLETE")),
            ("FAILED", Some("FAIL")),
            ("LOST", Some("FAIL")),
            ("ERROR", Some("FAIL")),
            ("KILLED", Some("ABORT")),
        ] {
            assert_eq!(kind(state).as_deref(), expected, "{state}");
        }
    }

    #[test]
    fn a_run_event_has_job_run_and_facets() {
        let failed = body(MessageFormat::OpenLineage, "FAILED").unwrap();
        assert_eq!(failed["job"]["namespace"], "sparkgate/spark");
        assert_eq!(failed["job"]["name"], "Pi");
        let facets = &failed["run"]["facets"];
        assert_eq!(facets["parent"]["run"]["runId"], "01941f29-7c00-7087-8940-40e512c257bd");
        assert_eq!(facets["parent"]["job"], json!({"namespace": "airflow", "name": "etl.pi"}));
        assert_eq!(facets["errorMessage"]["message"], "java.lang.IllegalStateException: no");
        assert_eq!(facets["processing_engine"]["version"], "4.3.0");
        let queued = body(MessageFormat::OpenLineage, "QUEUED").unwrap();
        assert_eq!(queued["run"]["runId"], failed["run"]["runId"], "one run for each attempt");
        assert!(queued["run"]["facets"].get("errorMessage").is_none());
    }

    #[test]
    fn no_request_names_a_job_of_another_tenant_to_a_server_that_gets_all_runs() {
        let mut event = event("FAILED");
        event["lineage"]["namespace"] = json!("sparkgate/of-another-tenant");
        let sent = |is_of_all| {
            let message = Message::new(MessageFormat::OpenLineage, event.clone(), Uuid::nil(), is_of_all);
            serde_json::from_str::<Value>(&message.unwrap().unwrap().body).unwrap()
        };
        assert_eq!(sent(false)["job"]["namespace"], "sparkgate/of-another-tenant", "its own webhook");
        let to_all = sent(true);
        assert_eq!(to_all["job"]["namespace"], "sparkgate/spark");
        let facet = &to_all["run"]["facets"]["sparkgate_submission"];
        assert_eq!(facet["requestedNamespace"], "sparkgate/of-another-tenant");
    }

    #[test]
    fn each_attempt_of_each_installation_is_a_run() {
        let run = |attempt, installation: Uuid| {
            let mut event = event("QUEUED");
            event["attempt"] = json!(attempt);
            let message = Message::new(MessageFormat::OpenLineage, event, installation, false).unwrap().unwrap();
            serde_json::from_str::<Value>(&message.body).unwrap()["run"]["runId"].as_str().unwrap().to_owned()
        };
        let ids = [run(1, Uuid::nil()), run(2, Uuid::nil()), run(1, Uuid::max())];
        assert!(ids[0] != ids[1] && ids[0] != ids[2] && ids.iter().all(|id| id.parse::<Uuid>().is_ok()), "{ids:?}");
    }
}
