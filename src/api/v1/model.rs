//! What the documents of this API look like.

mod executor;
mod new_submission;
mod submission;

pub(super) use executor::Executor;
pub(in crate::api) use new_submission::NewSubmission;
pub(in crate::api) use submission::{Limits, MaxRetries, State, Submission};
