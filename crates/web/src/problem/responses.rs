//! The problems that many operations answer, as the description lists them.

use std::collections::BTreeMap;

use utoipa::{
    IntoResponses, ToSchema,
    openapi::{Content, Ref, RefOr, Response},
};

use super::ProblemBody;

type Responses = BTreeMap<String, RefOr<Response>>;

const INVALID: (u16, &str) = (400, "A parameter is invalid");
const NO_SUBMISSION: (u16, &str) = (404, "There is no such submission");
const UNAVAILABLE: (u16, &str) = (503, "The database can't be reached; try again");

/// The problems of every operation. One that describes a status itself names it after this type.
pub struct Problems;

/// The problems of an operation on one submission.
pub struct SubmissionProblems;

impl IntoResponses for Problems {
    fn responses() -> Responses {
        described([INVALID, UNAVAILABLE])
    }
}

impl IntoResponses for SubmissionProblems {
    fn responses() -> Responses {
        described([INVALID, NO_SUBMISSION, UNAVAILABLE])
    }
}

fn described<const N: usize>(problems: [(u16, &str); N]) -> Responses {
    let content = || Content::new(Some(Ref::from_schema_name(ProblemBody::name())));
    let described = |(status, description): (u16, &str)| {
        let mut response = Response::new(description);
        response.content.insert("application/problem+json".to_owned(), RefOr::T(content()));
        (status.to_string(), RefOr::T(response))
    };
    problems.map(described).into()
}
