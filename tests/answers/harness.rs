//! The parts of a run: Postgres and the program are real; the API server is a fake ([`apiserver`]). Clients
//! ([`clients`]) record each request with its reply, [`table`] says what the reply means, and [`judge`] compares that
//! with the rows.

#[path = "../crash/harness/dice.rs"]
pub(crate) mod dice;
#[path = "../crash/harness/guard.rs"]
pub(crate) mod guard;
#[cfg_attr(test, expect(dead_code, reason = "shared with the crash tests, which use the rest"))]
#[path = "../crash/harness/servers/postgres.rs"]
pub(crate) mod postgres;
#[path = "../crash/harness/process.rs"]
pub(crate) mod process;

pub(crate) mod apiserver;
pub(crate) mod clients;
pub(crate) mod faults;
pub(crate) mod http;
pub(crate) mod judge;
pub(crate) mod run;
pub(crate) mod table;
pub(crate) mod world;
