//! The resource API as clients see it, on a real Postgres.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

mod answers;
mod documented;
mod file_list;
mod files;
mod forms;
mod http;
mod idempotency;
mod listing;
mod problems;
mod spark_versions;
mod submissions;
#[path = "../spark_protocol/support.rs"]
mod support;
mod uploads;
mod usage;
mod world;
