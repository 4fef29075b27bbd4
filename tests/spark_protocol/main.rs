//! Spark's REST protocol as clients see it: the router's answers compared with those of real Spark masters.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

mod edges;
mod replay;
mod support;
