//! Callers: their authentication, their tenants and rights, API keys, sessions, and the audit.

pub mod access_file;
pub mod access_generation;
pub mod api_keys;
pub mod audit;
pub mod authenticator;
pub mod boundaries;
pub mod session;
pub mod tenancy;
