//! The commands of the client as a user runs them, against a gateway that is played: what it answers and how it fails is
//! up to each test. (`tests/program/` has them against the real one.)
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod played;
mod run;

mod events;
mod faults;
mod kill;
mod list;
mod logs;
mod output;
mod submit;
mod wait;
