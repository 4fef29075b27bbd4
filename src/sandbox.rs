//! A cluster for a laptop: an API server in memory, a node whose pods are local processes, and a private Postgres.
//!
//! Nothing above knows of it, and the two parts of the cluster know each other only through the Kubernetes API.

pub mod apiserver;
pub mod node;
pub mod postgres;
