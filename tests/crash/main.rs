//! Never lost, never twice: replicas, Postgres, etcd and the API server are killed, stopped and cut off from each other
//! while jobs are submitted and live their lives. Then what Sparkgate recorded is compared with what was played.
//!
//! These are the short runs. `make crash` does the long one.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[expect(dead_code, reason = "shared with other tests, which use the rest")]
#[path = "../support/fault_proxy.rs"]
mod fault_proxy;
mod harness;
#[expect(dead_code, reason = "shared with other tests, which use the rest")]
#[path = "../support/rights.rs"]
mod rights;

mod absence;
mod outage;
mod restored;
mod storm;

/// The logs stay where the complaint says.
fn panic_if_any(what: &str, violations: &[String]) {
    if let Some(complaint) = harness::run::complaint(what, violations) {
        panic!("{complaint}");
    }
}
