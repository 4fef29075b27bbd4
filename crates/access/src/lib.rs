//! Who a caller is and what it may do, without I/O: the access file, principals, roles, and the decisions that they lead to.
//!
//! [`Access`] is what a gateway knows of its callers: [`Access::parse`] reads the access file, and [`Access::open`] is a gateway
//! without one. Credentials become a [`Principal`], and [`Access::may`] decides what that principal may do.

mod access;
mod api_key;
mod authentication;
mod certificate;
mod file;
pub mod jwt;
mod name;
mod pattern;
mod principal;
mod queue;
mod rate;
mod role;
mod tenant;

pub use access::{Access, TenantError, Visible};
pub use api_key::{ApiKey, ApiKeyError, KeyDigest, NoRandomNumbers};
pub use authentication::{
    Authentication, CertificateSubject, Certificates, ClaimPath, ConsoleClient, Kubernetes, OidcIssuer, Proxy,
    SESSION_IDLE, SESSION_LIFETIME, SparkJws, SparkListener,
};
pub use certificate::{CertificateError, ClientCertificate};
pub use file::{AccessFileError, Entries, Fault, Text};
pub use name::{is_label, is_subdomain};
pub use pattern::{InvalidPattern, Pattern, Patterns};
pub use principal::{Grant, InvalidGrant, InvalidName, LONGEST_NAME, Principal, Provider};
pub use queue::{DynamicAllocation, KueueQueue, Queue, Queues};
pub use rate::{InvalidRate, Rate, Rates};
pub use role::{Action, Role, UnknownRole};
pub use tenant::{Caps, Namespaces, Tenant, TenantLimits, TenantPrices, is_price};
