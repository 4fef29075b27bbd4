//! Signed tokens: JSON Web Tokens of OIDC issuers (RFC 7519), and those for Spark's `JWSFilter`.

mod algorithm;

pub use algorithm::{Algorithm, UnknownAlgorithm};
