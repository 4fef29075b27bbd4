//! Spark's contract, pure: a request in, Kubernetes objects out. No I/O, no clock, no randomness.

mod driver;
mod names;
mod refusal;
mod request;
pub mod rest;
mod version;

pub use driver::{DriverObjects, Object, SubmitContext, build_driver};
pub use names::DriverNames;
pub use refusal::Refusal;
pub use request::CreateSubmissionRequest;
pub use version::SparkVersion;
