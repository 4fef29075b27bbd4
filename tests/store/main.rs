//! The store on a real Postgres: every statement, alone and beside others, with faults, other roles and other clocks.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

mod support;

mod accept;
mod attempts;
mod bounds;
mod browser_sessions;
mod claims;
mod clean_up;
mod clocks;
mod connect_sessions;
mod connections;
mod events;
mod executors;
mod faults;
mod figures;
mod files;
mod listing;
mod migrations;
mod no_room;
mod pooler;
mod queues;
mod recorded_drivers;
mod records;
mod roles;
mod spark_summaries;
mod starts;
mod state_log;
mod traces;
mod transitions;
mod usage;
mod watch_positions;
