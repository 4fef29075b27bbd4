//! The command line.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use anyhow::{Context, anyhow};
use clap::{
    Args, CommandFactory, Parser, Subcommand,
    builder::{PossibleValuesParser, TypedValueParser},
};
use clap_complete::{Shell, generate};

use super::{
    admission, adopt_cluster,
    arguments::{Loaded, reads_file, with_file},
    bootstrap_key, config, describe, dev, doctor, healthcheck, prune_audit, release_finalizers, render,
    rotate_installation_key, sandbox, serve,
    settings::{
        Admission, AdoptCluster, BootstrapKey, ConfigCommand, Database, Dev, Doctor, Healthcheck, Logs, Place,
        PruneAudit, Render, RotateInstallationKey, Sandbox, Serve,
    },
    telemetry,
};
use sparkgate_client::ClientCommand;
use sparkgate_spark::SecretPattern;
use sparkgate_store::Store;

/// An HTTP gateway for Apache Spark on Kubernetes.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true, mut_subcommands(adapt))]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    logs: Logs,
}

#[derive(Debug, Subcommand)]
enum Command {
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

/// Runs the chosen command to its end. Client commands print their own errors and have their own exit codes.
///
/// # Errors
/// The reason for which the command failed, in words for the user.
pub fn run(loaded: Loaded) -> anyhow::Result<ExitCode> {
    let settings = loaded.settings.clone();
    chosen(loaded).map_err(|error| {
        let text = format!("{error:#}");
        match settings.notes(&text) {
            notes if notes.is_empty() => error,
            notes => anyhow!("{text}{notes}"),
        }
    })
}

fn chosen(loaded: Loaded) -> anyhow::Result<ExitCode> {
    let Loaded { cli: Cli { command, logs }, settings: resolved, file, faults, arguments } = loaded;
    match command {
        Command::Client(command) => return Ok(command.run()),
        Command::Serve(settings) => {
            let log = telemetry::init(&logs)?;
            let reload = file.map(|path| serve::ReloadSource { arguments, path, started: resolved, log });
            runtime()?.block_on(serve::serve(*settings, reload))
        }
        Command::Doctor(settings) => {
            let Doctor { serve, json } = *settings;
            let findings = runtime()?.block_on(doctor::examine(&serve, &logs, &resolved));
            return Ok(doctor::print(&findings, json, io::stdout())?);
        }
        Command::Config(ConfigCommand::Check(settings)) => {
            let report = runtime()?.block_on(config::check(&settings.serve, &logs, &resolved, &faults));
            return Ok(report.print(file.as_deref(), io::stdout())?);
        }
        Command::Config(ConfigCommand::Show(settings)) => {
            ignore_closed_output(config::show(&resolved, settings.json, io::stdout()))
        }
        Command::Config(ConfigCommand::Schema) => {
            let schema = describe::schema(&describe::settings(&Cli::command()));
            ignore_closed_output(writeln!(io::stdout(), "{schema:#}").map_err(anyhow::Error::from))
        }
        Command::Dev(settings) => in_runtime(&logs, dev::dev(*settings)),
        Command::Sandbox(settings) => in_runtime(&logs, sandbox::sandbox(settings)),
        Command::ReleaseFinalizers(place) => in_runtime(&logs, release_finalizers::release_finalizers(place)),
        Command::AdoptCluster(settings) => in_runtime(&logs, adopt_cluster::adopt_cluster(settings)),
        Command::Admission(settings) => ignore_closed_output(admission::admission(&settings)),
        Command::BootstrapKey(settings) => in_runtime(&logs, bootstrap_key::bootstrap_key(settings)),
        Command::Healthcheck(settings) => in_runtime(&logs, async move {
            let answer = healthcheck::healthcheck(&settings).await?;
            ignore_closed_output(writeln!(io::stdout(), "{answer}").map_err(anyhow::Error::from))
        }),
        Command::Migrate(database) => in_runtime(&logs, async move {
            Store::connect(&database.settings()?).await?.close().await;
            tracing::info!("the database is up to date");
            Ok(())
        }),
        Command::PruneAudit(settings) => in_runtime(&logs, prune_audit::prune_audit(settings)),
        Command::RotateInstallationKey(settings) => {
            in_runtime(&logs, rotate_installation_key::rotate_installation_key(settings))
        }
        Command::Render(settings) => {
            settings.spark.secret_pattern.clone().into_iter().for_each(SecretPattern::apply);
            let rendered = render::run(
                io::stdin(),
                io::stdout(),
                io::stderr(),
                &settings.spark.settings(&[])?,
                settings.policy()?.as_ref(),
            );
            ignore_closed_output(rendered.map_err(anyhow::Error::from))
        }
        Command::Openapi => {
            let document = sparkgate_http::openapi().to_pretty_json()?;
            ignore_closed_output(writeln!(io::stdout(), "{document}").map_err(anyhow::Error::from))
        }
        Command::Completions { shell } => {
            let mut script = Vec::new();
            generate(shell, &mut Cli::command(), "sparkgate", &mut script);
            ignore_closed_output(io::stdout().write_all(&script).map_err(anyhow::Error::from))
        }
    }?;
    Ok(ExitCode::SUCCESS)
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

/// Ignores that the reader of standard output has closed it, as in `sparkgate render | head`.
fn ignore_closed_output(written: anyhow::Result<()>) -> anyhow::Result<()> {
    let is_closed = |cause: &(dyn std::error::Error + 'static)| {
        cause.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    };
    written.or_else(|error| if error.chain().any(is_closed) { Ok(()) } else { Err(error) })
}

fn in_runtime(logs: &Logs, work: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    telemetry::init(logs)?;
    runtime()?.block_on(work)
}

fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Runtime::new().context("starting the runtime")
}
