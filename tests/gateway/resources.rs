//! The resource API as clients see it, on a real Postgres.

mod answers;
mod documented;
mod file_list;
mod files;
mod forms;
mod http;
mod idempotency;
mod jobs;
mod listing;
mod problems;
mod spark_versions;
mod submissions;
mod uploads;
mod usage;
mod world;
