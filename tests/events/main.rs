//! Following events over HTTP: a real server, a real Postgres, and clients that disconnect, reconnect and stop reading.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod client;
mod failover;
mod following;
mod paging;
mod slow;
mod waiting;
mod world;
