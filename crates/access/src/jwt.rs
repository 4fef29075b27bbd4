//! Signed tokens: JSON Web Tokens of OIDC issuers (RFC 7519), and those for Spark's `JWSFilter`.
//!
//! Only the compact form of a JWS (RFC 7515, section 7.1) is read. Keys never come from the token itself: `jku`, `x5u`, `jwk` and
//! `x5c` of a header are ignored, as RFC 8725, section 3.10 demands.
//!
//! Signatures are verified by `ring`, which has no interface for algorithms without one, and not by a library for tokens: those
//! read the clock themselves, and accept an object that has a member twice.

mod algorithm;
mod claims;
mod compact;
mod error;
mod json;
mod key_set;
mod oidc;
mod shared_secret;
#[cfg(test)]
mod tests;

pub use algorithm::{Algorithm, UnknownAlgorithm};
pub use compact::{unverified_claims, unverified_issuer};
pub use error::JwtError;
pub use key_set::{KeySet, KeySetError};
pub use shared_secret::{SharedSecret, SharedSecretError};
