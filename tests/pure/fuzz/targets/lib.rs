//! What is fuzzed: every parser that reads the input of others, and the rules that judge it. A target takes any bytes. It panics if
//! the parser does, or if an accepted input breaks a rule that the target states.
//!
//! `fuzz_targets/` runs them with libFuzzer; `tests/pure/fuzz.rs` replays `corpus/` and mutations of it on every run of the tests.

#[cfg(feature = "gateway")]
mod api;
mod callers;
mod drivers;
mod input;
mod requests;

#[cfg(feature = "gateway")]
pub use api::{cursor, query, request};
pub use callers::{access, certificate, identity, jwt, key_set, pattern};
pub use drivers::{driver, policy, template};
pub use requests::{command_line, path, properties, spark_request};
