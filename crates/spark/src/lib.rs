#![doc = include_str!("../README.md")]
//!
//! # Parts
//!
//! It works in three parts, as `spark-submit` does: `submit` resolves the properties (`SparkSubmit`), `features` has a file for each
//! of Spark's feature steps, and `builder` folds over them and writes the main `ConfigMap` (`KubernetesDriverBuilder`, `Client`). A
//! [`SparkVersion`] determines which steps and defaults apply. [`keys`] lists what becomes of each property, [`rest`] parses and
//! writes the bodies of Spark's protocol, and [`build_driver`] is where to begin.

mod builder;
mod conf;
mod context;
mod defaults;
mod driver;
mod features;
pub mod keys;
mod named_request;
mod names;
mod pod_template;
mod properties;
mod quantity;
mod redaction;
mod refusal;
mod request;
pub mod rest;
pub mod sizes;
mod submit;
mod submitter;
mod version;
mod volumes;
mod yaml;

pub use builder::build_driver;
pub use context::SubmitContext;
pub use defaults::parse_properties;
pub use driver::{DriverObjects, Object, PodGroup, executor_template_of};
pub use features::ExecutorTemplateMount;
pub use named_request::NamedRequest;
pub use names::{DriverNames, NameEntropy};
pub use properties::with_properties;
pub use quantity::Quantity;
pub use redaction::{
    REDACTED, SECRET_RULES, SecretPattern, SecretRules, has_secrets, is_secret, is_secret_name, may_hold_secrets,
    redacted_argument,
};
pub use refusal::Refusal;
pub use request::CreateSubmissionRequest;
pub use submit::{expand_command_line, has_command_line, options_without_effect};
pub use submitter::SubmitterFiles;
pub use version::{SparkLine, SparkVersion, UnknownSparkVersion};
