//! The costs of a submission that don't depend on the machine: allocations, statements, calls of the Kubernetes API.
//! They are compared with `expected.json`; `make allocations` writes that file.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod accept;
mod access;
mod bodies;
mod expected;
mod life;
mod pod;
mod read;
mod render;
mod statements;
mod watch;
mod world;
