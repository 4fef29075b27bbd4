//! Runs the commands.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use anyhow::{Context, anyhow};
use clap::CommandFactory;
use clap_complete::generate;

use super::{
    admission, adopt_cluster,
    arguments::Loaded,
    bootstrap_key,
    cli::{Cli, Command},
    config, describe, dev, doctor, healthcheck, prune_audit, release_finalizers, render, rotate_installation_key,
    sandbox, serve,
    settings::{ConfigCommand, Doctor, Logs},
    telemetry,
};
use sparkgate_spark::SecretPattern;
use sparkgate_store::Store;

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
