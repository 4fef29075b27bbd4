//! Queues of the access file: what runs in them, what waits, and their state. Submissions in them that are held, and moved.

pub(super) mod document;
pub(super) mod hold;
pub(crate) mod places;
pub(super) mod requeue;

use axum::{
    body::Bytes,
    extract::{FromRequestParts, State},
    http::{StatusCode, request::Parts},
};
use serde::{Deserialize, de::DeserializeOwned};
use utoipa::{IntoParams, ToSchema};

use self::document::{QueueList, QueueStateWord};
use super::reply::Reply;
use crate::queue_state::{self, state_of};
use sparkgate_web::{
    id::part_of_path,
    json,
    problem::{Code, Problem, ProblemBody, responses::Problems},
    query::{NoParameters, Query},
    session::Caller,
    state::AppState,
};

/// The state that a queue is to have.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewQueueState)]
pub(super) struct NewState {
    #[schema(value_type = QueueStateWord)]
    state: String,
    /// Why, for people.
    #[schema(example = "the cluster is being upgraded", max_length = 256)]
    reason: Option<String>,
}

/// List queues
///
/// The queues that the caller's tenants may use, by name. Without queues in the access file, the list is empty.
#[utoipa::path(
    get, path = "/v1/queues", tag = "Queues", operation_id = "listQueues",
    responses(Problems, (status = 200, description = "The queues", body = QueueList))
)]
pub(super) async fn list(
    State(state): State<AppState>,
    Caller(caller): Caller,
    _: Query<NoParameters>,
) -> Result<Reply<QueueList>, Problem> {
    Ok(Reply::ok(state.service.queues.overview(&caller).await?.into()))
}

/// Pause, drain or open a queue
///
/// A paused queue admits nothing; a draining one accepts nothing. What runs goes on. The state outlives restarts, and changes of the
/// access file. It needs the role operator in every tenant.
#[utoipa::path(
    put, path = "/v1/queues/{queue}/state", tag = "Queues", operation_id = "setQueueState", params(QueueName), request_body = NewState,
    responses(
        Problems,
        (status = 204, description = "The queue has this state"),
        (status = 400, description = "The request is invalid; the problem names the fields", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "There is no such queue", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(super) async fn set_state(
    State(state): State<AppState>,
    Caller(caller): Caller,
    QueueName { queue }: QueueName,
    _: Query<NoParameters>,
    body: Bytes,
) -> Result<StatusCode, Problem> {
    let new: NewState = parsed(&body, "a state of a queue")?;
    let wanted = state_of(&new.state).map_err(|reason| Problem::field("#/state".to_owned(), reason))?;
    state.service.queues.set_state(&caller, &queue, wanted, reason(new.reason.as_deref())?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Reads a body. `what` names it in the problem.
fn parsed<T: DeserializeOwned>(body: &[u8], what: &'static str) -> Result<T, Problem> {
    match json::read(json::object(body)?, what) {
        (Some(value), errors) if errors.is_empty() => Ok(value),
        (_, errors) => Err(Problem::for_fields(Code::InvalidRequest, errors)),
    }
}

/// Reads a reason for people, if there is one.
fn reason(text: Option<&str>) -> Result<Option<&str>, Problem> {
    queue_state::reason(text).map_err(|why| Problem::field("#/reason".to_owned(), format!("it {why}")))
}

/// `{queue}` of the path.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct QueueName {
    /// The queue's name
    #[param(value_type = String)]
    queue: String,
}

impl<S: Send + Sync> FromRequestParts<S> for QueueName {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        Ok(Self { queue: part_of_path(parts, state, "queue").await })
    }
}
