//! The submission that a path names.

use axum::{
    extract::{FromRequestParts, RawPathParams},
    http::request::Parts,
};
use utoipa::IntoParams;

use super::{Problem, problem::Code};
use crate::{
    service::{Service, Session, Submission},
    submission::SubmissionId,
};

/// `{id}` of the path. A malformed id is answered as an unknown one.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(in crate::api) struct Id {
    /// The submission's id
    #[param(value_type = String, pattern = "^driver-[0-9-]+$")]
    pub(in crate::api) id: SubmissionId,
}

impl<S: Send + Sync> FromRequestParts<S> for Id {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let params = RawPathParams::from_request_parts(parts, state).await;
        let text = params
            .ok()
            .and_then(|params| params.iter().find(|(name, _)| *name == "id").map(|(_, text)| text.to_owned()));
        let text = text.unwrap_or_default();
        text.parse().map(|id| Self { id }).map_err(|_| not_found(&text))
    }
}

/// Returns the submission with this id. One that the caller may not see is answered as an unknown one.
pub(in crate::api) async fn find(
    service: &Service,
    caller: &Session,
    id: &SubmissionId,
) -> Result<Submission, Problem> {
    service.submissions.submission(caller, id).await?.ok_or_else(|| not_found(id))
}

pub(in crate::api) fn not_found(id: impl std::fmt::Display) -> Problem {
    Problem::new(Code::SubmissionNotFound, format!("There is no submission {id}, or it is no longer kept."))
}
