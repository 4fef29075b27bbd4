//! Conversations with the Kubernetes API, most of them with a kube-apiserver that these suites share and with the sandbox's API server:
//! requests, the watch, the sandbox's node, the chart. Attacks, the admission objects and the node on a real API server have one of their
//! own, because they change what pods are admitted or run.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod admission;
mod api;
mod attacks;
mod chart;
mod sandbox_node;
mod server;
mod watch;
