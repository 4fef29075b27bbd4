//! What is fuzzed: `targets/lib.rs` is the library of the programs in `fuzz/`, which has the same modules.

pub(super) mod api;
pub(super) mod callers;
pub(super) mod drivers;
mod input;
pub(super) mod requests;
