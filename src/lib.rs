//! Sparkgate: an HTTP gateway for Apache Spark on Kubernetes.
//!
//! `ARCHITECTURE.md` is the map. This package is the service: `app` (commands, settings) → `api` (HTTP) → `service` (use cases
//! and their loops). The layers below are crates of their own.

pub mod api;
pub mod app;
pub mod service;

pub use sparkgate_access as access;
pub use sparkgate_client as client;
pub use sparkgate_cluster as cluster;
pub use sparkgate_files as files;
pub use sparkgate_metrics as metrics;
pub use sparkgate_policy as policy;
pub use sparkgate_sandbox as sandbox;
pub use sparkgate_spark as spark;
pub use sparkgate_store as store;
pub use sparkgate_submission as submission;
pub use sparkgate_traces as traces;
