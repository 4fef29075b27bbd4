//! Settings of `sparkgate config` and `sparkgate doctor`: those of `serve`.

use clap::{Args, Subcommand};

use super::serve::Serve;

#[derive(Debug, Subcommand)]
pub(in crate::app) enum ConfigCommand {
    /// Check the file of settings, the variables, and the files that they name: prints all faults, and the exit code is 1 if there
    /// is one. Needs neither the database nor the cluster.
    Check(Box<Check>),
    /// Show each setting with its value and its origin. Secrets are hidden.
    Show(Box<Show>),
    /// Print the JSON Schema of the file of settings, for editors.
    Schema,
}

#[derive(Debug, Args)]
pub(in crate::app) struct Check {
    #[command(flatten)]
    pub(in crate::app) serve: Serve,
}

#[derive(Debug, Args)]
pub(in crate::app) struct Show {
    /// Print JSON.
    #[arg(long)]
    pub(in crate::app) json: bool,
    #[command(flatten)]
    _serve: Serve,
}

#[derive(Debug, Args)]
pub(in crate::app) struct Doctor {
    /// Print JSON.
    #[arg(long)]
    pub(in crate::app) json: bool,
    #[command(flatten)]
    pub(in crate::app) serve: Serve,
}
