//! The parts of a run: Postgres and the program are real; the API server is a fake ([`apiserver`]). Clients
//! ([`clients`]) record each request with its reply, [`table`] says what the reply means, and [`judge`] compares that
//! with the rows.

pub(crate) mod apiserver;
pub(crate) mod clients;
pub(crate) mod faults;
pub(crate) mod http;
pub(crate) mod judge;
pub(crate) mod run;
pub(crate) mod table;
pub(crate) mod world;
