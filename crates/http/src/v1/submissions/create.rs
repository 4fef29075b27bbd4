//! `POST /v1/submissions`, and its dry run.

use std::{collections::BTreeMap, sync::Arc};

use axum::{
    extract::{Request, State},
    http::{HeaderMap, HeaderName, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{
    document::{Limits, MaxRetries, Submission},
    form,
    new::{NewSubmission, parse},
};
use crate::v1::{attempts::ObjectList, reply::Reply};
use sparkgate_service::{Found, Service, Session, SubmissionOptions};
use sparkgate_spark::CreateSubmissionRequest;
use sparkgate_web::{
    body::Held,
    idempotency_key,
    problem::{Code, Problem, ProblemBody, responses::Problems},
    query::{Query, flag},
    session::Caller,
    state::AppState,
    tasks::to_its_end,
    time_limit::answered_within,
};

const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

#[derive(Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(in crate::v1) struct CreateQuery {
    /// Return what would be created, without storing anything
    #[serde(deserialize_with = "flag")]
    dry_run: bool,
}

/// Submit an application
///
/// Answers as soon as the submission is committed; the driver is created afterwards. With an `Idempotency-Key` the same
/// request can be sent any number of times and creates one submission.
///
/// As a form, the request brings files with it: its first part, `request`, is the JSON document, and each other part is a `file`, which
/// the document names as `sparkgate-file:<file name>` wherever Spark takes a URI. Nothing is submitted unless all of them arrive.
#[utoipa::path(
    post, path = "/v1/submissions", tag = "Submissions", operation_id = "createSubmissionResource",
    request_body(content((NewSubmission = "application/json"), (SubmissionForm = "multipart/form-data")), description = "The application"),
    params(
        ("Idempotency-Key" = Option<String>, Header, description = "Makes the request safe to repeat, such as `etl/2026-01-02`; unique per caller and owner for as long as the submission is kept"),
        CreateQuery,
    ),
    responses(
        Problems,
        (status = 200, description = "The submission that the same request with this key created earlier (`Idempotency-Replayed: true`), or the result of a dry run", body = Created),
        (status = 201, description = "Committed; it will be run", body = Submission, headers(("Location", description = "Path of the submission"), ("ETag", description = "Entity tag of the document"))),
        (status = 400, description = "The request is invalid; the problem names the fields", body = ProblemBody, content_type = "application/problem+json"),
        (status = 409, description = "A submission of the tenant has this `clientId`, or a live submission this unique name", body = ProblemBody, content_type = "application/problem+json"),
        (status = 408, description = "A file of a form arrives too slowly", body = ProblemBody, content_type = "application/problem+json"),
        (status = 413, description = "The body, or a file of a form, is too large", body = ProblemBody, content_type = "application/problem+json"),
        (status = 415, description = "The body is neither JSON nor a form", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "The idempotency key was used for another request", body = ProblemBody, content_type = "application/problem+json"),
        (status = 503, description = "The database can't be reached (`unavailable`: nothing was stored, try again), or its connection was lost during the write (`in-doubt`: the submission may have been accepted), or the gateway is receiving too much at once (`busy`: try again)", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(in crate::v1) async fn create(
    State(state): State<AppState>,
    Caller(caller): Caller,
    Query(query): Query<CreateQuery>,
    request: Request,
) -> Result<Response, Problem> {
    // Its time begins when the body is there, which has a time limit of its own.
    let (request, options, held) = read(&state, &caller, request).await?;
    let limit = state.settings.request_timeout;
    if query.dry_run {
        let plan = answered_within(limit, dry_run(&state.service, &caller, request, options)).await??;
        return Ok(plan.into_response());
    }
    answered_within(limit, submit(state.service, caller, request, options, held)).await?
}

pub(super) async fn submit(
    service: Arc<Service>,
    caller: Session,
    request: CreateSubmissionRequest,
    options: SubmissionOptions,
    held: Held,
) -> Result<Response, Problem> {
    let accepted = service.submissions.submit(&caller, request, options, held).await?;
    let Found { id, document } = accepted.submission;
    let submission =
        document.map_err(|error| Problem::unreadable(&id, "was accepted before under this key", &error))?;
    let location = format!("/v1/submissions/{id}");
    let mut submission = Submission::from(submission);
    submission.warnings = accepted.warnings;
    let reply = Reply::ok(submission).with_header(header::LOCATION, location);
    let reply = match accepted.replayed {
        true => reply.with_header(REPLAYED, "true"),
        false => reply.with_status(StatusCode::CREATED),
    };
    Ok(reply.into_response())
}

/// Reads the body of a create request and its idempotency key.
async fn read(
    state: &AppState,
    caller: &Session,
    request: Request,
) -> Result<(CreateSubmissionRequest, SubmissionOptions, Held), Problem> {
    let key = idempotency_key::read(request.headers());
    let key = key.map_err(|reason| Problem::parameter("Idempotency-Key", reason))?;
    if let Some(boundary) = form::boundary_of(request.headers()) {
        let waits = request.headers().contains_key(header::EXPECT);
        let (state, caller) = (state.clone(), caller.clone());
        // In its own task, so that what was written is removed if the client disconnects.
        let read =
            to_its_end(async move { form::read(&state, &caller, boundary, request.into_body(), waits).await }).await?;
        let (request, mut options, held) = read;
        options.idempotency_key = key;
        return Ok((request, options, held));
    }
    is_json(request.headers())?;
    let (bytes, held) = state.bodies.read(request.into_body()).await?;
    // Its own release is known only after its defaults; the newest one knows all units.
    let (request, mut options) = parse(&bytes, caller.spark_lines().newest())?;
    options.idempotency_key = key;
    Ok((request, options, held))
}

pub(in crate::v1) fn is_json(headers: &HeaderMap) -> Result<(), Problem> {
    let given = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = given.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if essence == "application/json" || essence.ends_with("+json") {
        return Ok(());
    }
    let detail = format!(
        "Content-Type is {given:?}: send application/json (curl has --json), or a form with files, multipart/form-data."
    );
    Err(Problem::new(Code::UnsupportedMediaType, detail))
}

/// A submission with its files.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the parts of a form, which is read as a stream")]
pub(in crate::v1) struct SubmissionForm {
    /// The first part.
    request: NewSubmission,
    /// The files that the request names, each part with its file name.
    #[schema(value_type = Vec<String>, format = Binary)]
    file: Vec<Vec<u8>>,
}

/// A submission, or the result of a dry run.
#[derive(ToSchema)]
#[schema(as = CreatedOrPlanned)]
#[expect(dead_code, reason = "describes two responses with one status")]
#[derive(Serialize)]
#[serde(untagged)]
pub(in crate::v1) enum Created {
    Replayed(Box<Submission>),
    Planned(Box<Plan>),
}

/// The result of a dry run. The id in it is not reserved and never used.
#[derive(Serialize, ToSchema)]
pub(in crate::v1) struct Plan {
    /// The submission as the gateway understands the request.
    submission: Planned,
    /// The Kubernetes objects, in the order of their creation.
    manifest: ObjectList,
    /// What the driver gets in addition to what the request sets, each with its origin.
    defaults: Vec<AppliedDefault>,
    /// Properties that are probably misspelt, each with the one that was probably meant.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    warnings: Vec<String>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = PlannedSubmission)]
pub(in crate::v1) struct Planned {
    name: String,
    namespace: String,
    #[schema(example = "4.3.0")]
    spark_version: String,
    labels: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limits: Option<Limits>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retries: Option<MaxRetries>,
}

#[derive(Serialize, ToSchema)]
pub(in crate::v1) struct AppliedDefault {
    #[schema(example = "spark.kubernetes.container.image")]
    key: String,
    value: String,
    /// `spark-defaults`, `lines/<line>`, `tenant` or `defaults/<name>`: set by the operator; `spark-submit`: set by Spark itself;
    /// `sparkgate`: the gateway's own labels.
    #[schema(example = "spark-defaults")]
    origin: String,
}

async fn dry_run(
    service: &Service,
    caller: &Session,
    request: CreateSubmissionRequest,
    options: SubmissionOptions,
) -> Result<Reply<Plan>, Problem> {
    let plan = service.submissions.dry_run(caller, request, options).await?;
    let options = plan.options();
    let seconds = |time: Option<std::time::Duration>| time.map(|time| time.as_secs());
    let limits = Limits {
        start_seconds: seconds(options.start_timeout),
        run_seconds: seconds(options.run_timeout),
        kill_grace_seconds: seconds(options.kill_grace),
    };
    let retries = MaxRetries {
        infrastructure: options.retries.infrastructure.unwrap_or_default(),
        application: options.retries.application.unwrap_or_default(),
        capacity: options.retries.capacity.unwrap_or_default(),
        quota: options.retries.quota.unwrap_or_default(),
    };
    let submission = Planned {
        name: plan.name().to_owned(),
        namespace: plan.namespace().to_owned(),
        spark_version: plan.spark_version().to_string(),
        labels: options.labels.clone(),
        limits: limits.any(),
        retries: retries.any(),
    };
    let defaults = plan.defaults().into_iter().map(|default| AppliedDefault {
        key: default.key,
        value: default.value,
        origin: default.origin,
    });
    let defaults = defaults.collect();
    let warnings = plan.warnings();
    Ok(Reply::ok(Plan { submission, manifest: plan.objects()?.into(), defaults, warnings }))
}
