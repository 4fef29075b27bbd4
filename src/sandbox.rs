//! The sandbox: a stand-in for a Kubernetes cluster on one machine, in parts that know each other only through its API.

pub mod apiserver;
pub mod node;
