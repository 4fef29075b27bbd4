//! Spark's REST protocol as clients meet it: the router's answers beside those of real Spark masters.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

#[path = "spark_protocol/edges.rs"]
mod edges;
#[path = "spark_protocol/replay.rs"]
mod replay;
#[path = "spark_protocol/support.rs"]
mod support;
