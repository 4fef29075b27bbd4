//! A cluster for a laptop: an API server in memory, a node whose pods are local processes, and a private Postgres.
//!
//! No higher layer depends on it, and the two parts of the cluster use each other only through the Kubernetes API.

pub mod apiserver;
pub mod node;
pub mod postgres;
