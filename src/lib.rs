//! Sparkgate: an HTTP gateway for Apache Spark on Kubernetes.
//!
//! `ARCHITECTURE.md` is the map. Layers import downwards only:
//! `app` → `api`, `sandbox`, `client` → `service` → `store`, `cluster` → `spark`, `submission`.

pub mod api;
pub mod app;
pub mod client;
pub mod cluster;
pub mod sandbox;
pub mod service;
pub mod spark;
pub mod store;
pub mod submission;
