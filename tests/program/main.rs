//! The program as a user runs it: real processes, a real Spark, real clients.
//!
//! Requires what `make test` provides: `DATABASE_URL`, the kube-apiserver's binaries, `SPARK_HOME` (4.3),
//! `SPARK_HOME_3_5` and `SPARKGATE_COLLECTOR`.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod client;
mod collector;
mod crash;
mod dev;
mod doctor;
mod executors;
mod history;
mod reload;
mod render;
mod settings;
mod spark_submit;
mod standby;
mod start;
mod traces;
mod uninstall;
mod uploads;
