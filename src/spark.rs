//! Spark's contract, pure: a request in, Kubernetes objects out. No I/O, no clock, no randomness.

mod conf;
mod defaults;
mod driver;
mod features;
mod names;
mod properties;
mod refusal;
mod request;
pub mod rest;
mod submit;
mod unsupported;
mod version;

pub use defaults::parse_properties;
pub use driver::{DriverObjects, Object, SubmitContext, build_driver};
pub use names::{DriverNames, NameEntropy};
pub use refusal::Refusal;
pub use request::CreateSubmissionRequest;
pub use version::{SparkVersion, UnknownSparkVersion};
