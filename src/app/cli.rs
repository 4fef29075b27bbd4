//! The command line.

mod groups;

use clap::{
    Args, Parser, Subcommand,
    builder::{PossibleValuesParser, TypedValueParser},
};
use clap_complete::Shell;

use super::{
    config_option::{reads_file, with_file},
    settings::{
        Admission, AdoptCluster, BootstrapKey, ConfigCommand, Database, Dev, Doctor, Healthcheck, Logs, Place,
        PruneAudit, Render, RotateInstallationKey, Sandbox, Serve,
    },
};
use sparkgate_client::ClientCommand;

/// An HTTP gateway for Apache Spark on Kubernetes.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true, help_template = groups::template(), mut_subcommands(adapt))]
pub struct Cli {
    #[command(subcommand)]
    pub(super) command: Command,
    #[command(flatten)]
    pub(super) logs: Logs,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Run the gateway. Needs a Postgres database and a Kubernetes cluster.
    Serve(Box<Serve>),
    /// Check all that the gateway needs, with the same settings: files, database, rights, cluster, pods. Changes nothing. The exit
    /// code is 1 if there is a failure.
    Doctor(Box<Doctor>),
    /// Check the settings, or show them.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Run everything on this machine: a private Postgres, a sandbox cluster and the gateway.
    Dev(Box<Dev>),
    /// Read a request (JSON) and print the Kubernetes objects that it would create.
    Render(Render),
    /// Remove the gateway's finalizer from all driver pods, before an uninstall. This includes the pods of every
    /// installation in these namespaces.
    ReleaseFinalizers(Place),
    /// Assign the database to the cluster of the kubeconfig. A gateway refuses to run on any cluster but its database's own.
    AdoptCluster(AdoptCluster),
    /// Print the Kubernetes objects with which a cluster itself enforces the boundaries of tenants.
    Admission(Admission),
    /// Create an API key in the database and print it: the first one, before anyone can log in.
    BootstrapKey(BootstrapKey),
    /// Ask the gateway on this machine whether it is ready: exit code 0, or 1 and the reason.
    Healthcheck(Healthcheck),
    /// Apply all pending database migrations.
    Migrate(Database),
    /// Delete old entries of the audit. Needs the database as the owner of the tables: the role of the gateway can't do it.
    PruneAudit(PruneAudit),
    /// Replace the key in the database that signs the identities of driver pods, and, without an encryption key file, URLs and tickets.
    /// Former keys stay valid for what they signed.
    RotateInstallationKey(RotateInstallationKey),
    /// Print the `OpenAPI` document of the HTTP interface.
    Openapi,
    /// Run only the sandbox: a simulated cluster whose pods are local processes.
    Sandbox(Sandbox),
    /// Print a script that completes commands and options in a shell. For bash: `source <(sparkgate completions bash)`.
    Completions {
        #[arg(value_name = "SHELL", value_parser = PossibleValuesParser::new(["bash", "zsh", "fish"])
            .try_map(|name| name.parse::<Shell>()))]
        shell: Shell,
    },
    #[command(flatten)]
    Client(Box<ClientCommand>),
}

impl Cli {
    /// Returns the settings of `serve`, if that is the command.
    pub(super) fn into_serve(self) -> Option<(Serve, Logs)> {
        match self.command {
            Command::Serve(settings) => Some((*settings, self.logs)),
            _ => None,
        }
    }
}

/// Adds the file of settings to the commands that read it. Hides the options of the log in the help of client commands, which write
/// none. They are still accepted.
fn adapt(command: clap::Command) -> clap::Command {
    match command.get_name() {
        name if ClientCommand::has_subcommand(name) => without_log(command),
        _ if reads_file(&command) => with_file(command),
        _ => command,
    }
}

/// Hides the options of the log in the help of a command and of its subcommands.
fn without_log(command: clap::Command) -> clap::Command {
    let logs = Logs::augment_args(clap::Command::new("log"));
    command.args(logs.get_arguments().map(|option| option.clone().hide(true))).mut_subcommands(without_log)
}
