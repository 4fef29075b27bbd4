//! The command-line client: a thin one. Each command is a few calls of the resource API; what the gateway answers is
//! printed as it is (JSON) or laid out for people. It knows the gateway through HTTP alone.

mod api;
mod backoff;
mod clean;
mod command;
mod document;
mod error;
mod follow;
mod lines;
mod problem;
mod screen;
mod server;
mod span;
mod sse;
mod table;
mod why;

pub use command::ClientCommand;
