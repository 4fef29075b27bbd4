//! The watch of pods on a real kube-apiserver, through a proxy that breaks its connections.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../support/fault_proxy.rs"]
mod fault_proxy;
mod proxy;
