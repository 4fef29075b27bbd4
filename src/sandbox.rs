//! A cluster for a laptop: an API server in memory, a node whose pods are local processes, and a private Postgres.
//!
//! Nothing above knows of it: the gateway meets it through the Kubernetes API alone.

pub mod postgres;
