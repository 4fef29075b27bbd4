//! Launches through queues of the real Kueue, beside a real kube-apiserver and Postgres. The tests play kubelets and drivers.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod admission;
mod controller;
mod eviction;
mod file;
mod pods;
mod room;
mod world;
