//! The command-line client: a thin one. Each command is a few calls of the resource API; what the gateway answers is
//! printed as it is (JSON) or laid out for people. It knows the gateway through HTTP alone.

mod api;
mod backoff;
mod browser;
mod clean;
mod command;
mod compare;
mod connection;
mod contexts;
mod credentials;
mod dev_token;
mod document;
mod error;
mod fields;
mod follow;
mod lines;
mod mcp;
mod named;
mod oidc;
mod options;
mod pages;
mod paths;
mod private_file;
mod problem;
mod screen;
mod secret;
mod server;
mod span;
mod sse;
mod table;
mod tokens;
mod transport;
mod upload;
mod why;

pub use command::ClientCommand;
