//! The time limit of requests.

use std::time::Duration;

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::Response,
};

use super::problem::{Code, Problem};

/// Answers a request that takes too long with a problem. Work that it began in a task of its own goes on.
pub async fn in_time(State(limit): State<Duration>, request: Request, next: Next) -> Result<Response, Problem> {
    answered_within(limit, next.run(request)).await
}

/// Waits for an answer, but not for longer than `limit`.
pub async fn answered_within<T>(limit: Duration, answer: impl Future<Output = T>) -> Result<T, Problem> {
    tokio::time::timeout(limit, answer).await.map_err(|_| {
        let detail = format!("The request timed out after {limit:?}. The requested action may still be carried out.");
        Problem::new(Code::TimedOut, detail)
    })
}
