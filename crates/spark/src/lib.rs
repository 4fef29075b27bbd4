//! `spark-submit --master k8s:// --deploy-mode cluster` as a library, without a JVM: a request goes in, the driver's Kubernetes
//! objects come out, leaf for leaf as Spark's own submission client creates them.
//!
//! | | |
//! |---|---|
//! | in | a [`CreateSubmissionRequest`]: the body of Spark's REST protocol ([`rest`]), or a command line in its `appArgs` |
//! | in | a [`SubmitContext`]: the Spark line, names, time, user, and the files that spark-submit would read from its disk |
//! | out | [`DriverObjects`]: the pod, what has to exist before it, and what it owns; the main `ConfigMap` is the last |
//! | out | or a [`Refusal`] that names the property at fault, with Spark's own sentence where Spark has one |
//!
//! The crate is pure: no I/O, no clock, no randomness. The same request and context give the same objects. It creates nothing; a
//! caller sends the objects to an API server, the pod first, and makes the pod their owner.
//!
//! It works in three parts, as spark-submit does: `submit` resolves the properties (`SparkSubmit`), `features` has a file for each
//! of Spark's feature steps, and `builder` folds over them and writes the main `ConfigMap` (`KubernetesDriverBuilder`, `Client`). A
//! [`SparkVersion`] determines which steps and defaults apply. The objects are compared with those of the real spark-submit of five
//! releases (`tests/parity` of the workspace); what differs on purpose is in `docs/internals/parity.md`. [`keys`] lists what becomes of each
//! property.
//!
//! # Example
//!
//! `examples/render.rs` is a whole program: `cargo run -p sparkgate-spark --example render < request.json`.
//!
//! ```
//! use chrono::DateTime;
//! use sparkgate_spark::{
//!     CreateSubmissionRequest, DriverNames, NameEntropy, NamedRequest, SparkVersion, SubmitContext, SubmitterFiles,
//!     build_driver,
//! };
//! use uuid::Uuid;
//!
//! let request = CreateSubmissionRequest {
//!     app_resource: "local:///opt/spark/examples/src/main/python/pi.py".to_owned(),
//!     spark_properties: [("spark.kubernetes.container.image".to_owned(), "spark:4.3.0".to_owned())].into(),
//!     ..Default::default()
//! };
//! // The caller supplies time and randomness, and stores the names: the same names give the same objects.
//! let submitted_at = DateTime::from_timestamp_millis(1_767_323_045_678).unwrap_or_default();
//! let entropy = NameEntropy::from_uuids(Uuid::nil(), Uuid::nil(), Uuid::nil(), Uuid::nil());
//! let request = NamedRequest::new(request, SparkVersion::V4_3)?;
//! let names = DriverNames::for_request(&request, submitted_at.timestamp_millis(), &entropy);
//! let context = SubmitContext {
//!     version: SparkVersion::V4_3,
//!     names: &names,
//!     submitted_at,
//!     user: "spark",
//!     submitter: &SubmitterFiles::default(),
//!     properties: &[],
//! };
//!
//! let driver = build_driver(&request, &context)?;
//! assert_eq!(driver.pod.metadata.name.as_deref(), Some("pi-py-0000009b7ca98f2e-driver"));
//! assert_eq!(driver.resources.len(), 3); // Service, NetworkPolicy, ConfigMap
//! # Ok::<(), sparkgate_spark::Refusal>(())
//! ```

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
