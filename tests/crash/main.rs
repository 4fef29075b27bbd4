//! Never lost, never twice: replicas, Postgres, etcd and the API server are killed, stopped and isolated from each
//! other while jobs are submitted and run. Then the outcomes that Sparkgate recorded are compared with the simulated
//! ones.
//!
//! These are the short runs. `make crash` does the long one. `answers` compares what each reply says with the database.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod harness;

mod absence;
mod answers;
mod failover;
mod outage;
mod restored;
mod storm;
mod upgrade;

/// Keeps the logs; the message names their directory.
fn panic_if_any(what: &str, violations: &[String]) {
    if let Some(complaint) = harness::run::complaint(what, violations) {
        panic!("{complaint}");
    }
}
