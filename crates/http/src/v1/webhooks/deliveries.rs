//! Deliveries of webhooks.

use axum::{
    extract::{FromRequestParts, State},
    http::{StatusCode, request::Parts},
    response::{IntoResponse, Response},
};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use utoipa::{IntoParams, ToSchema};

use super::{WebhookId, not_found};
use crate::v1::{reply::Reply, submissions::document::State as StateWord};
use sparkgate_service as service;
use sparkgate_web::{
    cursor,
    id::part_of_path,
    problem::{Code, Problem, ProblemBody, responses::Problems},
    query::{NoParameters, Query, limit},
    session::Caller,
    state::AppState,
};

const LIMIT: u32 = 100;
const STATUSES: [&str; 3] = ["pending", "delivered", "dead"];

/// What became of sending one state change to one webhook.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = WebhookDelivery)]
pub(in crate::v1) struct Delivery {
    #[schema(example = "4711")]
    id: String,
    #[schema(example = "driver-20260102030405-0000")]
    submission_id: String,
    /// The event's position in the order of all events.
    #[schema(example = 17)]
    sequence: i64,
    #[schema(example = 1)]
    attempt: i32,
    #[schema(value_type = StateWord)]
    state: String,
    #[schema(value_type = StatusWord)]
    status: String,
    /// How often it was tried.
    tries: i32,
    queued_at: DateTime<Utc>,
    /// When it is tried again, if it is pending.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_try_at: Option<DateTime<Utc>>,
    /// When it arrived or was given up.
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<DateTime<Utc>>,
    /// The status of the receiver's last response.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = 500)]
    http_status: Option<i32>,
    /// Why the last try failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Whether a delivery is to be sent, arrived, or was given up.
#[derive(ToSchema)]
#[schema(as = WebhookDeliveryStatus, rename_all = "lowercase")]
#[expect(dead_code, reason = "only describes the field")]
enum StatusWord {
    Pending,
    Delivered,
    Dead,
}

/// A page of deliveries, the newest first.
#[derive(Serialize, ToSchema)]
#[schema(as = WebhookDeliveryList)]
pub(in crate::v1) struct DeliveryList {
    items: Vec<Delivery>,
    /// The `cursor` of the next page. The last page has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// How many deliveries were queued again.
#[derive(Serialize, ToSchema)]
#[schema(as = WebhookReplay)]
pub(in crate::v1) struct Replayed {
    deliveries: u64,
}

#[derive(Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields, default)]
pub(in crate::v1) struct DeliveryQuery {
    /// Only deliveries that are to be sent (`pending`), arrived (`delivered`), or were given up (`dead`)
    #[serde(deserialize_with = "status")]
    #[param(value_type = Option<StatusWord>)]
    status: Option<String>,
    /// Page size; 100 by default
    #[serde(deserialize_with = "limit::<500, _>")]
    #[param(minimum = 1, maximum = 500)]
    limit: Option<u32>,
    /// `next` of the previous page, with the same filter
    cursor: Option<String>,
}

/// List the deliveries of a webhook
///
/// The newest first. Those that arrived are kept for a day, those that were given up for 30 days.
#[utoipa::path(
    get, path = "/v1/webhooks/{id}/deliveries", tag = "Webhooks", operation_id = "listWebhookDeliveries",
    params(WebhookId, DeliveryQuery),
    responses(
        Problems,
        (status = 200, description = "One page", body = DeliveryList),
        (status = 404, description = "There is no such webhook", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(in crate::v1) async fn deliveries(
    State(state): State<AppState>,
    Caller(caller): Caller,
    WebhookId { id }: WebhookId,
    Query(query): Query<DeliveryQuery>,
) -> Result<Reply<DeliveryList>, Problem> {
    let limit = query.limit.unwrap_or(LIMIT);
    let status = query.status.as_deref();
    let (keys, list) = (state.service.submissions.cursor_keys(), format!("deliveries of {id} {status:?}"));
    let before = query.cursor.map(|text| cursor::read(&keys, &list, &text)).transpose()?;
    let deliveries = state.service.webhooks.deliveries(&caller, &id, status, before, limit + 1).await?;
    let mut deliveries = deliveries.ok_or_else(|| not_found(&id))?;
    let next = cursor::cut(&keys, &list, &mut deliveries, limit, |last| last.id)?;
    Ok(Reply::ok(DeliveryList { items: deliveries.into_iter().map(Delivery::from).collect(), next }))
}

/// Queue all dead deliveries of a webhook again
///
/// Those that were given up are tried for another day.
#[utoipa::path(
    post, path = "/v1/webhooks/{id}/replay", tag = "Webhooks", operation_id = "replayWebhook", params(WebhookId),
    responses(
        Problems,
        (status = 202, description = "They are queued", body = Replayed),
        (status = 404, description = "There is no such webhook", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(in crate::v1) async fn replay(
    State(state): State<AppState>,
    Caller(caller): Caller,
    WebhookId { id }: WebhookId,
    _: Query<NoParameters>,
) -> Result<Response, Problem> {
    let deliveries = state.service.webhooks.replay(&caller, &id, None).await?.ok_or_else(|| not_found(&id))?;
    Ok(Reply::ok(Replayed { deliveries }).with_status(StatusCode::ACCEPTED).into_response())
}

/// Queue a delivery of a webhook again
///
/// Whether it arrived or was given up. It is sent before later changes of its submission that are pending.
#[utoipa::path(
    post, path = "/v1/webhooks/{id}/deliveries/{delivery}/replay", tag = "Webhooks", operation_id = "replayWebhookDelivery",
    params(WebhookId, DeliveryId),
    responses(
        Problems,
        (status = 202, description = "It is queued", body = Replayed),
        (status = 404, description = "There is no such webhook, or no such delivery that has ended", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(in crate::v1) async fn replay_one(
    State(state): State<AppState>,
    Caller(caller): Caller,
    WebhookId { id }: WebhookId,
    DeliveryId { delivery }: DeliveryId,
    _: Query<NoParameters>,
) -> Result<Response, Problem> {
    let replayed = state.service.webhooks.replay(&caller, &id, Some(delivery)).await?.ok_or_else(|| not_found(&id))?;
    match replayed {
        0 => {
            let detail = format!("Webhook {id} has no delivery {delivery}, or it is pending already.");
            Err(Problem::new(Code::DeliveryNotFound, detail))
        }
        deliveries => Ok(Reply::ok(Replayed { deliveries }).with_status(StatusCode::ACCEPTED).into_response()),
    }
}

impl From<service::Delivery> for Delivery {
    fn from(row: service::Delivery) -> Self {
        let is_pending = row.status == "pending";
        Self {
            id: row.id.to_string(),
            submission_id: row.submission_id,
            sequence: row.sequence,
            attempt: row.attempt,
            state: row.state,
            status: row.status,
            tries: row.tries,
            queued_at: row.queued_at,
            next_try_at: is_pending.then_some(row.next_try_at),
            ended_at: row.ended_at,
            http_status: row.http_status,
            error: row.error,
        }
    }
}

/// `{delivery}` of the path. A malformed id is answered as an unknown one.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(in crate::v1) struct DeliveryId {
    /// The delivery's id
    #[param(value_type = String)]
    delivery: i64,
}

impl<S: Send + Sync> FromRequestParts<S> for DeliveryId {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        // No delivery has the other id.
        Ok(Self { delivery: part_of_path(parts, state, "delivery").await.parse().unwrap_or(-1) })
    }
}

fn status<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let status = String::deserialize(deserializer)?;
    match STATUSES.contains(&status.as_str()) {
        true => Ok(Some(status)),
        false => Err(D::Error::custom(format!("{status:?} is none of {}", STATUSES.join(", ")))),
    }
}
