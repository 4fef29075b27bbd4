//! Following events over HTTP: a real server, a real Postgres, and clients that disconnect, reconnect and stop reading.

mod client;
mod failover;
mod following;
mod paging;
mod slow;
mod waiting;
mod world;
