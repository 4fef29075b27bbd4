//! The client's commands, each in its own file.

mod attempts;
mod audit;
mod connect;
mod context;
mod created;
mod diff;
mod events;
mod executors;
mod files;
mod hold;
mod jobs;
mod kill;
mod list;
mod login;
mod logout;
mod logs;
mod mcp;
mod of_submissions;
mod open;
mod places;
mod queue;
mod request_file;
mod request_options;
mod requeue;
mod rerun;
pub(crate) mod session;
mod status;
mod submit;
mod token;
mod top;
mod usage;
mod wait;
mod webhook;
mod whoami;

use std::{fmt::Display, process::ExitCode};

use clap::Subcommand;

use super::{error::Error, screen::note};

/// The commands that call a gateway.
#[derive(Debug, Subcommand)]
pub enum ClientCommand {
    /// Submit an application with spark-submit's own arguments. Prints the submission's id.
    Submit(Box<submit::Submit>),
    /// Submit the request of an earlier submission again, with changes. Prints the new submission's id.
    Rerun(Box<rerun::Rerun>),
    /// Show a submission: its state, why it waits or failed, driver and executors.
    Status(status::Status),
    /// List submissions, newest first.
    List(list::List),
    /// Show what runs now and with how many executors, until Ctrl-C.
    Top(top::Top),
    /// Show jobs: all runs of a name, how they ended, and what has changed.
    Jobs(jobs::Jobs),
    /// Show what differs between two submissions: their requests and how they ended.
    Diff(diff::Diff),
    /// Open the console in a browser, at a submission or a job. Prints the address.
    Open(open::Open),
    /// List the executors of a submission.
    Executors(executors::Executors),
    /// List the attempts of a submission, and why they failed.
    Attempts(attempts::Attempts),
    /// Print the Kubernetes objects of a submission.
    Manifest(attempts::Manifest),
    /// Print the log of the driver, or of an executor.
    Logs(logs::Logs),
    /// Kill submissions.
    Kill(kill::Kill),
    /// Hold queued submissions: they aren't launched before they are released.
    Hold(hold::Hold),
    /// Release held submissions.
    Release(hold::Release),
    /// Move submissions that wait to another queue, or change their priority.
    Requeue(requeue::Requeue),
    /// Wait until a submission has ended; the exit code is the driver's.
    Wait(wait::Wait),
    /// Follow state changes, of one submission or of all.
    Events(events::Events),
    /// Manage contexts: the gateways that you use, by name.
    #[command(subcommand)]
    Context(context::Context),
    /// Log in to the gateway, in a browser.
    Login(login::Login),
    /// Delete the login and revoke its tokens.
    Logout(logout::Logout),
    /// Show who you are for the gateway, and in which roles.
    Whoami(whoami::Whoami),
    /// Manage tokens for programs.
    #[command(subcommand)]
    Token(token::Token),
    /// List, upload and delete files.
    #[command(subcommand)]
    Files(files::Files),
    /// Manage webhooks: URLs that state changes are sent to.
    #[command(subcommand)]
    Webhook(webhook::Webhook),
    /// List queues, and pause, drain or open them.
    #[command(subcommand)]
    Queue(queue::Queue),
    /// Open a session of Spark Connect, or use it again: print its connection string, or run a command in it.
    Connect(Box<connect::Connect>),
    /// List and end sessions of Spark Connect.
    #[command(subcommand)]
    Session(session::Session),
    /// Show what submissions used, and what it cost.
    Usage(usage::UsageCommand),
    /// Print the audit log: who requested what, and the verdict.
    Audit(audit::Audit),
    /// Serve the gateway's submissions to assistants, by the Model Context Protocol.
    Mcp(mcp::Mcp),
}

/// The exit code of a command without an error, or its error.
type Outcome = Result<u8, Error>;

impl ClientCommand {
    /// Runs the command to its end. Prints errors to standard error.
    pub fn run(self) -> ExitCode {
        let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => {
                note(&format!("error: starting the runtime: {error}"));
                return ExitCode::FAILURE;
            }
        };
        let outcome = runtime.block_on(async {
            match self {
                Self::Submit(command) => command.run().await,
                Self::Rerun(command) => command.run().await,
                Self::Status(command) => command.run().await,
                Self::List(command) => command.run().await,
                Self::Top(command) => command.run().await,
                Self::Jobs(command) => command.run().await,
                Self::Diff(command) => command.run().await,
                Self::Open(command) => command.run().await,
                Self::Executors(command) => command.run().await,
                Self::Attempts(command) => command.run().await,
                Self::Manifest(command) => command.run().await,
                Self::Logs(command) => command.run().await,
                Self::Kill(command) => command.run().await,
                Self::Hold(command) => command.run().await,
                Self::Release(command) => command.run().await,
                Self::Requeue(command) => command.run().await,
                Self::Wait(command) => command.run().await,
                Self::Events(command) => command.run().await,
                Self::Context(command) => command.run(),
                Self::Login(command) => command.run().await,
                Self::Logout(command) => command.run().await,
                Self::Whoami(command) => command.run().await,
                Self::Token(command) => command.run().await,
                Self::Files(command) => command.run().await,
                Self::Webhook(command) => command.run().await,
                Self::Queue(command) => command.run().await,
                Self::Connect(command) => command.run().await,
                Self::Session(command) => command.run().await,
                Self::Usage(command) => command.run().await,
                Self::Audit(command) => command.run().await,
                Self::Mcp(command) => command.run().await,
            }
        });
        // Otherwise a DNS look-up that hangs would block the runtime's shutdown.
        runtime.shutdown_background();
        match outcome {
            Ok(code) => code.into(),
            Err(error) => {
                tell(&error);
                error.exit_code().into()
            }
        }
    }
}

fn tell(error: &Error) {
    if !error.is_silent() {
        note(&format!("error: {error}"));
    }
}

/// Prints the error of one of several objects, and keeps the exit code of the first error.
fn keep(failed: &mut Option<u8>, error: &Error, of: impl Display) {
    note(&format!("error: {of}: {error}"));
    failed.get_or_insert(error.exit_code());
}

/// Parses a label, `key=value`.
fn label(text: &str) -> Result<(String, String), &'static str> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("expected KEY=VALUE"),
    }
}
