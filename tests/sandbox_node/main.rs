//! The sandbox's node with an API server: the process, status and log of a pod.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod deleting;
mod real;
mod restarting;
mod running;
mod spark;
mod starting;
mod world;
