//! Composition: the commands of the program, their settings, and what runs together.

mod admission;
mod adopt_cluster;
mod arguments;
mod audit_log;
mod bootstrap_key;
mod cli;
mod config;
mod config_option;
mod describe;
mod dev;
mod doctor;
mod healthcheck;
mod prune_audit;
mod release_finalizers;
pub mod render;
mod rotate_installation_key;
mod run;
mod sandbox;
mod serve;
mod settings;
mod telemetry;
mod traces;

pub use arguments::{Arguments, LoadError};
pub use cli::Cli;
pub use run::run;
pub use telemetry::log_filter;
