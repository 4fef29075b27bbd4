//! Webhooks.

pub(super) mod deliveries;
pub(super) mod document;

use axum::{
    body::Bytes,
    extract::{FromRequestParts, State},
    http::{StatusCode, request::Parts},
    response::{IntoResponse, Response},
};
use secrecy::ExposeSecret;
use serde::Deserialize;
use utoipa::IntoParams;

use super::reply::Reply;
use document::{NewWebhook, Webhook, WebhookList};
use sparkgate_service::CreatedWebhook;
use sparkgate_submission::SubmissionId;
use sparkgate_web::{
    id::part_of_path,
    json,
    problem::{Code, Problem, ProblemBody, responses::Problems},
    query::{NoParameters, Query, submission_id},
    session::Caller,
    state::AppState,
};

#[derive(Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields, default)]
pub(super) struct WebhookQuery {
    /// The webhooks of this submission, which its request named. Without it, those of no single submission
    #[serde(deserialize_with = "submission_id")]
    #[param(value_type = Option<String>, pattern = "^driver-[0-9-]+$")]
    submission: Option<SubmissionId>,
}

/// List webhooks
///
/// The newest first: those that the caller may manage.
#[utoipa::path(
    get, path = "/v1/webhooks", tag = "Webhooks", operation_id = "listWebhooks", params(WebhookQuery),
    responses(Problems, (status = 200, description = "The webhooks", body = WebhookList))
)]
pub(super) async fn list(
    State(state): State<AppState>,
    Caller(caller): Caller,
    Query(query): Query<WebhookQuery>,
) -> Result<Reply<WebhookList>, Problem> {
    let webhooks = state.service.webhooks.list(&caller, query.submission.as_ref()).await?;
    Ok(Reply::ok(WebhookList { items: webhooks.into_iter().map(Webhook::from).collect() }))
}

/// Create a webhook
///
/// State changes from now on are sent to the URL, signed. `secret` is in this response only.
#[utoipa::path(
    post, path = "/v1/webhooks", tag = "Webhooks", operation_id = "createWebhook", request_body = NewWebhook,
    responses(
        Problems,
        (status = 201, description = "The new webhook, with its secret", body = Webhook),
        (status = 400, description = "The request is invalid, or the URL leads where webhooks may not", body = ProblemBody, content_type = "application/problem+json"),
        (status = 403, description = "The caller may not have this webhook", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(super) async fn create(
    State(state): State<AppState>,
    Caller(caller): Caller,
    _: Query<NoParameters>,
    body: Bytes,
) -> Result<Response, Problem> {
    let new: NewWebhook = json::parsed(&body, "a webhook")?;
    let request = new.into_request()?;
    let created = state.service.webhooks.create(&caller, request).await?;
    Ok(Reply::ok(with_secret(created)).with_status(StatusCode::CREATED).into_response())
}

/// Get a webhook
#[utoipa::path(
    get, path = "/v1/webhooks/{id}", tag = "Webhooks", operation_id = "getWebhook", params(WebhookId),
    responses(
        Problems,
        (status = 200, description = "The webhook", body = Webhook),
        (status = 404, description = "There is no such webhook", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(super) async fn get(
    State(state): State<AppState>,
    Caller(caller): Caller,
    WebhookId { id }: WebhookId,
    _: Query<NoParameters>,
) -> Result<Reply<Webhook>, Problem> {
    let webhook = state.service.webhooks.get(&caller, &id).await?;
    webhook.map(|webhook| Reply::ok(webhook.into())).ok_or_else(|| not_found(&id))
}

/// Delete a webhook
///
/// What is queued for it is not sent.
#[utoipa::path(
    delete, path = "/v1/webhooks/{id}", tag = "Webhooks", operation_id = "deleteWebhook", params(WebhookId),
    responses(
        Problems,
        (status = 204, description = "The webhook is deleted"),
        (status = 404, description = "There is no such webhook", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(super) async fn delete(
    State(state): State<AppState>,
    Caller(caller): Caller,
    WebhookId { id }: WebhookId,
    _: Query<NoParameters>,
) -> Result<StatusCode, Problem> {
    match state.service.webhooks.delete(&caller, &id).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(not_found(&id)),
    }
}

/// Rotate the secret of a webhook
///
/// The new secret is in this response only. For a day, each message has a signature with the previous secret, too.
#[utoipa::path(
    post, path = "/v1/webhooks/{id}/rotate", tag = "Webhooks", operation_id = "rotateWebhookSecret", params(WebhookId),
    responses(
        Problems,
        (status = 200, description = "The webhook, with its new secret", body = Webhook),
        (status = 404, description = "There is no such webhook", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(super) async fn rotate(
    State(state): State<AppState>,
    Caller(caller): Caller,
    WebhookId { id }: WebhookId,
    _: Query<NoParameters>,
) -> Result<Reply<Webhook>, Problem> {
    let rotated = state.service.webhooks.rotate(&caller, &id).await?;
    rotated.map(|rotated| Reply::ok(with_secret(rotated))).ok_or_else(|| not_found(&id))
}

fn with_secret(CreatedWebhook { webhook, secret }: CreatedWebhook) -> Webhook {
    let mut webhook = Webhook::from(webhook);
    webhook.secret = Some(secret.expose_secret().to_owned());
    webhook
}

fn not_found(id: &str) -> Problem {
    Problem::new(Code::WebhookNotFound, format!("There is no webhook {id}."))
}

/// `{id}` of the path.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct WebhookId {
    /// The webhook's id
    #[param(value_type = String)]
    id: String,
}

impl<S: Send + Sync> FromRequestParts<S> for WebhookId {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        Ok(Self { id: part_of_path(parts, state, "id").await })
    }
}
