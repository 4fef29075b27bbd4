//! Generates the Kubernetes objects with which a cluster enforces the boundaries of tenants by itself.
//!
//! A driver is the code of a tenant, with an account that creates pods: what it does, the gateway can't judge. So each namespace
//! of a tenant has a Pod Security label, a quota, network policies, accounts with least rights, and admission policies
//! (`ValidatingAdmissionPolicy`, Kubernetes 1.30 or later).
//!
//! | | |
//! |---|---|
//! | in | an [`Access`](sparkgate_access::Access), with the tenants of the access file and their policies |
//! | in | the [`GatewayAccount`] and the [`NonZeroU32`](std::num::NonZeroU32) number of applications that a quota has room for |
//! | out | [`objects`]; [`to_yaml`] writes them, and [`missing`] compares them with those of a cluster |
//!
//! The crate is pure: no I/O, no clock, no randomness. `docs/operate/admission.md` describes the objects.

mod admission_policy;
mod cel;
mod compare;
mod error;
mod gateway;
mod generate;
mod namespace;
mod network;
mod object;
mod rbac;
mod tenant;
mod yaml;

pub use compare::missing;
pub use error::AdmissionError;
pub use gateway::{GatewayAccount, InvalidAccount};
pub use generate::objects;
pub use network::NETWORK_POLICY;
pub use object::Object;
pub use yaml::to_yaml;

#[cfg(test)]
mod tests;
