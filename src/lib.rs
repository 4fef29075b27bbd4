//! Sparkgate: an HTTP gateway for Apache Spark on Kubernetes.
//!
//! `ARCHITECTURE.md` is the map. This package combines the parts: `app` has the commands and their settings. Each layer is a crate.

pub mod app;

pub use sparkgate_access as access;
pub use sparkgate_client as client;
pub use sparkgate_cluster as cluster;
pub use sparkgate_files as files;
pub use sparkgate_http as api;
pub use sparkgate_metrics as metrics;
pub use sparkgate_policy as policy;
pub use sparkgate_sandbox as sandbox;
pub use sparkgate_server as server;
pub use sparkgate_service as service;
pub use sparkgate_spark as spark;
pub use sparkgate_store as store;
pub use sparkgate_submission as submission;
pub use sparkgate_traces as traces;
