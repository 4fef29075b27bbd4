//! The documents of the resource API.

mod attempt;
mod executor;
mod new_submission;
mod submission;
mod why;
mod word;

pub(in crate::api) use attempt::Attempt;
pub(super) use executor::Executor;
pub(in crate::api) use new_submission::NewSubmission;
pub(in crate::api) use submission::{Limits, MaxRetries, State, Submission};
pub(in crate::api) use why::Why;
