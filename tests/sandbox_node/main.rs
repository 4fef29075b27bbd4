//! The sandbox's node against an API server: what becomes of a pod's process, status and log.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod deleting;
mod restarting;
mod running;
mod spark;
mod starting;
mod world;
