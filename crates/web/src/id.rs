//! What a path names.

use axum::{
    extract::{FromRequestParts, RawPathParams},
    http::request::Parts,
};
use utoipa::IntoParams;

use super::problem::{Code, Problem};
use sparkgate_service::{Document, Service, Session, Submission};
use sparkgate_submission::SubmissionId;

/// `{id}` of the path. A malformed id is answered as an unknown one.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub struct Id {
    /// The submission's id
    #[param(value_type = String, pattern = "^driver-[0-9-]+$")]
    pub id: SubmissionId,
}

impl<S: Send + Sync> FromRequestParts<S> for Id {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let text = part_of_path(parts, state, "id").await;
        text.parse().map(|id| Self { id }).map_err(|_| not_found(&text))
    }
}

/// Returns a part of the path, without escapes.
pub async fn part_of_path<S: Send + Sync>(parts: &mut Parts, state: &S, name: &str) -> String {
    let params = RawPathParams::from_request_parts(parts, state).await.ok();
    let part = params.and_then(|params| params.iter().find(|(key, _)| *key == name).map(|(_, part)| part.to_owned()));
    part.unwrap_or_default()
}

/// Returns the submission with this id. One that the caller may not see is answered as an unknown one.
pub async fn find(service: &Service, caller: &Session, id: &SubmissionId) -> Result<Submission, Problem> {
    service.submissions.submission(caller, id).await?.ok_or_else(|| not_found(id))
}

/// Returns the document of the submission with this id, as [`find`] does.
pub async fn document(service: &Service, caller: &Session, id: &SubmissionId) -> Result<Document, Problem> {
    service.submissions.document(caller, id, &service.usage).await?.ok_or_else(|| not_found(id))
}

/// Returns the problem of an unknown id.
pub fn not_found(id: impl std::fmt::Display) -> Problem {
    Problem::new(Code::SubmissionNotFound, format!("There is no submission {id}, or it is no longer kept."))
}
