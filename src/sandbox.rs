//! The embedded stand-in for a cluster, for trying things on a laptop without Kubernetes.

pub mod node;
