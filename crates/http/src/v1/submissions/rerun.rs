//! `GET /v1/submissions/{id}/request` and `POST /v1/submissions/{id}/rerun`: the request of a submission, and a new submission like an
//! earlier one, with changes.

use axum::{
    extract::{Request, State},
    response::Response,
};
use serde_json::{Map, Value, json};

use super::{
    create::{is_json, submit},
    document::{MaxRetries, Submission as SubmissionDocument},
    new::{NewSubmission, parse},
};
use crate::v1::reply::Reply;
use sparkgate_service::{Accepted, Session, Submission, SubmissionOptions};
use sparkgate_spark::{CreateSubmissionRequest, REDACTED};
use sparkgate_submission::SubmissionId;
use sparkgate_web::{
    id::{Id, find, not_found},
    idempotency_key,
    problem::{Code, FieldError, Problem, ProblemBody, pointer::escape, responses::SubmissionProblems},
    query::{NoParameters, Query},
    session::Caller,
    state::AppState,
    time_limit::answered_within,
};

/// The label of a submission that is the rerun of another one, which is its value.
pub(crate) const RERUN_OF: &str = "sparkgate.dev/rerun-of";

/// Get the request of a submission
///
/// The request in the format of `POST /v1/submissions`, as it was launched: with the operator's defaults of that time. Values that look
/// like secrets aren't stored, and are replaced by `*********(redacted)`. A rerun patches this document.
#[utoipa::path(
    get, path = "/v1/submissions/{id}/request", tag = "Submissions", operation_id = "getRequest", params(Id),
    responses(
        SubmissionProblems,
        (status = 200, description = "The request", body = NewSubmission),
        (status = 304, description = "The document still matches `If-None-Match`"),
    )
)]
pub(in crate::v1) async fn request(
    State(state): State<AppState>,
    Caller(caller): Caller,
    Id { id }: Id,
    _: Query<NoParameters>,
) -> Result<Reply<Map<String, Value>>, Problem> {
    let Stored { of, request } = stored(&state, &caller, &id).await?;
    Ok(Reply::ok(body_of(&request, &of)))
}

/// Submit an application again
///
/// Submits the request of an earlier submission once more, as it was launched: with the operator's defaults of that time. The body
/// is a JSON merge patch (RFC 7396) of that request, in the format of `POST /v1/submissions`, or empty. Secrets aren't stored with a
/// request: the patch has to set them, or to leave them to the operator's defaults by `null`. The label `sparkgate.dev/rerun-of` of
/// the new submission is the id of the earlier one.
#[utoipa::path(
    post, path = "/v1/submissions/{id}/rerun", tag = "Submissions", operation_id = "rerunSubmission",
    request_body(content = NewSubmission, content_type = "application/merge-patch+json"),
    params(
        Id,
        ("Idempotency-Key" = Option<String>, Header, description = "Makes the request safe to repeat, as for `POST /v1/submissions`"),
    ),
    responses(
        SubmissionProblems,
        (status = 200, description = "The submission that the same request with this key created earlier (`Idempotency-Replayed: true`)", body = SubmissionDocument),
        (status = 201, description = "Committed; it will be run", body = SubmissionDocument, headers(("Location", description = "Path of the submission"), ("ETag", description = "Entity tag of the document"))),
        (status = 400, description = "The patched request is invalid, or lacks a secret; the problem names the fields", body = ProblemBody, content_type = "application/problem+json"),
        (status = 409, description = "A live submission already has this unique name", body = ProblemBody, content_type = "application/problem+json"),
        (status = 413, description = "The body is too large", body = ProblemBody, content_type = "application/problem+json"),
        (status = 415, description = "The body isn't JSON", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "The idempotency key was used for another request", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(in crate::v1) async fn rerun(
    State(state): State<AppState>,
    Caller(caller): Caller,
    Id { id }: Id,
    _: Query<NoParameters>,
    request: Request,
) -> Result<Response, Problem> {
    let (headers, body) = (request.headers().clone(), request.into_body());
    let key = idempotency_key::read(&headers).map_err(|reason| Problem::parameter("Idempotency-Key", reason))?;
    let (patch, held) = state.bodies.read(body).await?;
    if !patch.is_empty() {
        is_json(&headers)?;
    }
    let limit = state.settings.request_timeout;
    let patch = read_patch(&patch)?;
    let stored = answered_within(limit, stored(&state, &caller, &id)).await??;
    let (request, mut options) = patched(&caller, &stored, &patch)?;
    options.idempotency_key = key;
    answered_within(limit, submit(state.service, caller, request, options, held)).await?
}

/// A submission, with its request as it is stored.
pub(crate) struct Stored {
    pub(crate) of: Submission,
    pub(crate) request: Value,
}

/// Reads a submission with its request.
pub(crate) async fn stored(state: &AppState, caller: &Session, id: &SubmissionId) -> Result<Stored, Problem> {
    let of = find(&state.service, caller, id).await?;
    let request = state.service.submissions.request(caller, id).await?.ok_or_else(|| not_found(id))?;
    Ok(Stored { of, request })
}

/// Submits the same for a page.
pub(crate) async fn rerun_of(
    state: &AppState,
    caller: &Session,
    stored: &Stored,
    patch: &Value,
) -> Result<Accepted, Problem> {
    let (request, options) = patched(caller, stored, patch)?;
    Ok(state.service.submissions.submit(caller, request, options, ()).await?)
}

/// Checks whether the same could be submitted again without a change.
///
/// # Errors
/// The problem that it would be answered with: it lacks a secret, a file has been deleted, a rule has changed.
pub(crate) async fn check_rerun(state: &AppState, caller: &Session, stored: &Stored) -> Result<(), Problem> {
    let (request, options) = patched(caller, stored, &json!({}))?;
    state.service.submissions.dry_run(caller, request, options).await?;
    Ok(())
}

/// Reads a merge patch; without a text, it changes nothing.
///
/// # Errors
/// The text isn't a JSON object.
pub(crate) fn read_patch(text: &[u8]) -> Result<Value, Problem> {
    let patch: Value = match text.trim_ascii() {
        [] => json!({}),
        text => serde_json::from_slice(text)
            .map_err(|error| Problem::new(Code::InvalidJson, format!("The body can't be read as JSON: {error}.")))?,
    };
    match patch.is_object() {
        true => Ok(patch),
        false => Err(Problem::new(Code::InvalidRequest, "The patch is not a JSON object.")),
    }
}

/// Returns the request of a submission with a patch.
fn patched(
    caller: &Session,
    Stored { of, request }: &Stored,
    patch: &Value,
) -> Result<(CreateSubmissionRequest, SubmissionOptions), Problem> {
    let mut body = Value::Object(body_of(request, of));
    json_patch::merge(&mut body, patch);
    let mut missing = Vec::new();
    find_redacted(&body, "#".to_owned(), &mut missing);
    if !missing.is_empty() {
        return Err(Problem::for_fields(Code::InvalidRequest, missing));
    }
    // Labels that are no object are refused below.
    let labels = body.as_object_mut().map(|body| body.entry("labels").or_insert_with(|| json!({})));
    if let Some(labels) = labels.and_then(Value::as_object_mut) {
        labels.insert(RERUN_OF.to_owned(), of.id.as_str().into());
    }
    // Its own release is known only after its defaults; the newest one knows all units.
    parse(body.to_string().as_bytes(), caller.spark_lines().newest())
}

/// Returns the body of `POST /v1/submissions` for the stored request of a submission.
pub(crate) fn body_of(request: &Value, of: &Submission) -> Map<String, Value> {
    let mut body = request.as_object().cloned().unwrap_or_default();
    body.remove("clientSparkVersion");
    body.retain(|_, value| match value {
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Object(map) => !map.is_empty(),
        _ => true,
    });
    body.insert("sparkVersion".to_owned(), of.spark_version.clone().into());
    let labels = of.labels.iter().filter(|(key, _)| *key != RERUN_OF);
    let labels: Map<String, Value> = labels.map(|(key, value)| (key.clone(), value.as_str().into())).collect();
    body.extend((!labels.is_empty()).then(|| ("labels".to_owned(), labels.into())));
    for (name, seconds) in [
        ("startTimeoutSeconds", of.start_timeout),
        ("runTimeoutSeconds", of.run_timeout),
        ("killGraceSeconds", of.kill_grace),
    ] {
        body.extend(seconds.map(|seconds| (name.to_owned(), seconds.into())));
    }
    body.extend(MaxRetries::of(of).any().map(|retries| ("maxRetries".to_owned(), json!(retries))));
    body
}

/// Collects the values that were hidden when the request was stored.
fn find_redacted(value: &Value, pointer: String, missing: &mut Vec<FieldError>) {
    match value {
        Value::String(text) if text.ends_with(REDACTED) => missing.push(FieldError {
            pointer: Some(pointer),
            detail: "the value was not stored, because it looks like a secret: set it in the patch, or to null"
                .to_owned(),
            parameter: None,
        }),
        Value::Array(list) => {
            for (at, item) in list.iter().enumerate() {
                find_redacted(item, format!("{pointer}/{at}"), missing);
            }
        }
        Value::Object(map) => {
            for (key, item) in map {
                find_redacted(item, format!("{pointer}/{}", escape(key)), missing);
            }
        }
        _ => {}
    }
}
