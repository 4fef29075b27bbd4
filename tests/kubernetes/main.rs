//! Conversations with the Kubernetes API, most of them with a kube-apiserver that these suites share and with the sandbox's API server:
//! requests, the watch, the sandbox's node, the chart. Attacks and the admission objects have API servers with other admission plugins.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod admission;
mod api;
mod attacks;
mod chart;
mod sandbox_node;
mod watch;
