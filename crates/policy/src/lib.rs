//! Judges the final objects of a driver by the policy of its tenant.
//!
//! | | |
//! |---|---|
//! | in | a [`PolicyDocument`], which [`Policy::compile`] checks once |
//! | in | a [`Judged`] driver: its objects as they will be created, and the properties from which it will create executors |
//! | out | all [`Violation`]s, each with its rule, the path of the value, and the property or template field that caused it |
//!
//! The result is judged, not the request: a property, an alias of it, a template and an operator's default that lead to the same
//! pod lead to the same verdict. Executors are created by the driver, so their pod is derived from the properties and the
//! executors' template, as Spark's feature steps do, and judged by the same rules. Every field has a place in a table
//! (`schema`), and every property of Spark for Kubernetes has a class (`classes`): what is in neither is refused.
//!
//! [`ApplicationSize`] is computed from the same model of executors: what an application reserves before any of its pods exists.
//!
//! The crate is pure: no I/O, no clock, no randomness. `docs/operate/policy.md` describes the rules.

mod application_size;
mod cause;
mod classes;
mod compiled;
mod document;
mod executor;
mod expression;
mod image;
mod judged;
mod judgement;
pub mod kueue;
mod names;
mod node;
mod pattern;
mod pod_size;
mod policy;
mod quota;
mod rules;
mod schema;
mod uri;
mod violation;
mod volume;

pub use application_size::{ApplicationSize, Executors, PodSize, UnknownSize};
pub use document::{
    Amount, CelRule, DEFAULT_PROJECTED_SOURCES, DEFAULT_VOLUMES, InlineSecrets, Keys, Limits, Packages, PodLimits,
    PodSecurity, PolicyDocument, ServiceAccountTokens,
};
pub use executor::{ExecutorCount, ExecutorMemory, ExecutorSet, executors};
pub use image::IMAGE;
pub use judged::Judged;
pub use names::{MetadataKeys, Names};
pub use policy::Policy;
pub use quota::Quota;
pub use rules::{IDENTITY_LABELS, PERMITTED_KEYS};
pub use sparkgate_spark::{SECRET_RULES, SecretPattern, SecretRules};
pub use violation::{Fault, Violation};
pub use volume::PROJECTED_SOURCES;

#[cfg(test)]
mod tests;
