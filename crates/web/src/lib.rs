//! The parts that the HTTP interfaces share: routes with their attributes, problems, bodies, parameters, cursors, compression, the
//! protection of browsers, the request log. It has no endpoint.

pub mod body;
pub mod browser;
pub mod change;
pub mod compression;
pub mod cursor;
pub mod face;
pub mod fetch_metadata;
pub mod host;
pub mod id;
pub mod idempotency_key;
pub mod inner;
pub mod json;
pub mod nowhere;
pub mod page_headers;
pub mod problem;
pub mod query;
pub mod request_log;
pub mod routes;
pub mod server_span;
pub mod session;
pub mod settings;
pub mod state;
pub mod suggest;
pub mod tasks;
pub mod time_limit;
