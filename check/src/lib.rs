//! Checks Sparkgate's promises from outside, through HTTP alone: clients submit, kill, read and follow while faults happen ([`play`]),
//! each call and each reply is recorded ([`history`]), and the history is compared with the promises ([`promises`]).
//!
//! The history is a file of JSON lines, so that the same history can be judged again, or by another program.

pub mod history;
pub mod play;
pub mod promises;

pub use promises::{Promise, judge};
