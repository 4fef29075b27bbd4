//! Spark's contract, pure: a request in, Kubernetes objects out. No I/O, no clock, no randomness.

mod defaults;
mod driver;
mod names;
mod refusal;
mod request;
mod version;

pub use defaults::parse_properties;
pub use driver::{DriverObjects, Object, SubmitContext, build_driver};
pub use names::{DriverNames, NameEntropy};
pub use refusal::Refusal;
pub use request::CreateSubmissionRequest;
pub use version::SparkVersion;
