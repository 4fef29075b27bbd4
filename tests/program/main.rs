//! The program as a user runs it: real processes, a real Spark, real clients. `cli` has the commands of the client, `monitoring` the
//! metrics in a real Prometheus.
//!
//! Requires what `make test` provides: `DATABASE_URL`, the kube-apiserver's binaries, `SPARK_HOME` (4.3),
//! `SPARK_HOME_3_5`, `SPARKGATE_COLLECTOR`, `prometheus` and `promtool`.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod client;
mod collector;
mod crash;
mod dev;
mod doctor;
mod executors;
mod history;
mod queues;
mod reload;
mod render;
mod settings;
mod spark_submit;
mod standby;
mod start;
mod traces;
mod uninstall;
mod uploads;

mod cli;
mod monitoring;
