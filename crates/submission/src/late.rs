//! Runs that take longer than expected.

/// The reason of the event that reports one. It changes no state.
pub const LATE: &str = "Late";
