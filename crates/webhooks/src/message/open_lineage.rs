//! Run events of `OpenLineage` 2-0-2. An attempt is a run: it starts when it is queued, so that each run has a start and one end,
//! whichever states it skips.

use chrono::SecondsFormat;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use uuid::{Builder, Uuid};

use super::Change;
use sparkgate_submission::State;

const PRODUCER: &str = concat!("https://sparkgate.dev/", env!("CARGO_PKG_VERSION"));
const SCHEMA: &str = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent";
/// Where the schemas of facets are.
const FACETS: &str = "https://openlineage.io/spec/facets/";
/// The longest job name of `OpenLineage`'s own server.
const LONGEST_NAME: usize = 512;

/// Returns the run event of a change. `None` for states that are no event of a run.
///
/// A server that gets the runs of all tenants has a namespace for each, which no request chooses: it could name a job of another
/// tenant. What the request names is then in our own facet only.
pub(super) fn body(change: &Change, installation: Uuid, is_of_all: bool) -> Option<Value> {
    if change.notice().is_some() {
        return None;
    }
    let kind = match change.known_state()? {
        State::Queued => "START",
        State::Running => "RUNNING",
        State::Finished => "COMPLETE",
        State::Failed | State::Error | State::Lost => "FAIL",
        State::Killed => "ABORT",
        State::Launching | State::Pending | State::Killing => return None,
    };
    let lineage = &change.lineage;
    let chosen = lineage.namespace.as_ref().filter(|_| !is_of_all);
    let namespace = chosen.cloned().unwrap_or_else(|| job_namespace(&change.namespace));
    let name = job_name(lineage.job_name.as_deref().unwrap_or(&change.name), &change.submission_id);
    Some(json!({
        "eventType": kind,
        "eventTime": change.at.to_rfc3339_opts(SecondsFormat::AutoSi, true),
        "producer": PRODUCER,
        "schemaURL": SCHEMA,
        "run": {"runId": run_id(installation, &change.submission_id, change.attempt), "facets": run_facets(change, kind, is_of_all)},
        "job": {"namespace": namespace, "name": name, "facets": job_facets(change)},
        "inputs": [],
        "outputs": [],
    }))
}

/// Returns the namespace of the jobs of a namespace of Kubernetes.
pub(crate) fn job_namespace(namespace: &str) -> String {
    format!("sparkgate/{namespace}")
}

/// Returns the name of a job, which may not be empty.
pub(crate) fn job_name<'a>(name: &'a str, submission: &'a str) -> &'a str {
    let name = if name.is_empty() { submission } else { name };
    &name[..name.floor_char_boundary(LONGEST_NAME)]
}

/// Returns the id of the run of an attempt. It is derived, so that every message about the attempt has the same.
pub(crate) fn run_id(installation: Uuid, submission: &str, attempt: i32) -> Uuid {
    let place = format!("{installation}/{submission}/{attempt}");
    let digest: [u8; 32] = Sha256::digest(place).into();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    Builder::from_custom_bytes(bytes).into_uuid()
}

fn run_facets(change: &Change, kind: &str, is_of_all: bool) -> Value {
    let mut facets = Map::new();
    let mut add = |name: &str, file: &str, facet: Value| {
        facets.insert(name.to_owned(), with_schema(file, facet));
    };
    add(
        "processing_engine",
        "1-1-1/ProcessingEngineRunFacet.json#/$defs/ProcessingEngineRunFacet",
        json!({"name": "spark", "version": change.spark_version, "openlineageAdapterVersion": env!("CARGO_PKG_VERSION")}),
    );
    let lineage = &change.lineage;
    if let (Some(namespace), Some(name), Some(run)) =
        (&lineage.parent_namespace, &lineage.parent_name, &lineage.parent_run_id)
        && let Ok(run) = run.parse::<Uuid>()
    {
        add(
            "parent",
            "1-2-0/ParentRunFacet.json#/$defs/ParentRunFacet",
            json!({"run": {"runId": run}, "job": {"namespace": namespace, "name": name}}),
        );
    }
    if matches!(kind, "FAIL" | "ABORT") {
        let message = change.message.as_deref().or(change.reason.as_deref()).unwrap_or(&change.state);
        add(
            "errorMessage",
            "1-0-1/ErrorMessageRunFacet.json#/$defs/ErrorMessageRunFacet",
            // Spark's own integration names the same language.
            json!({"message": message, "programmingLanguage": "JAVA"}),
        );
    }
    // A facet of our own, by which a run leads back to its submission.
    facets.insert(
        "sparkgate_submission".to_owned(),
        json!({
            "_producer": PRODUCER,
            "_schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunFacet",
            "submissionId": change.submission_id,
            "attempt": change.attempt,
            "state": change.state,
            "tenant": change.tenant,
            "labels": change.labels,
        }),
    );
    if is_of_all && let Some(namespace) = &lineage.namespace {
        facets["sparkgate_submission"]["requestedNamespace"] = namespace.as_str().into();
    }
    if let Some(code) = change.failure_code() {
        facets["sparkgate_submission"]["failureCode"] = code.as_str().into();
    }
    facets.into()
}

fn job_facets(change: &Change) -> Value {
    json!({
        "jobType": with_schema(
            "2-0-4/JobTypeJobFacet.json#/$defs/JobTypeJobFacet",
            json!({"processingType": "BATCH", "integration": "SPARK", "jobType": "APPLICATION"}),
        ),
        "ownership": with_schema(
            "1-0-1/OwnershipJobFacet.json#/$defs/OwnershipJobFacet",
            json!({"owners": [{"name": change.owner, "type": "OWNER"}]}),
        ),
    })
}

/// Adds what each facet has.
fn with_schema(file: &str, mut facet: Value) -> Value {
    facet["_producer"] = PRODUCER.into();
    facet["_schemaURL"] = format!("{FACETS}{file}").into();
    facet
}
