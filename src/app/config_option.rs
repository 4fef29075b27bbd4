//! The option `--config`, which names the file of settings.

use std::path::PathBuf;

use clap::{Arg, Command};

/// The commands that read the file.
const WITH_FILE: [&str; 11] = [
    "serve",
    "healthcheck",
    "doctor",
    "config",
    "migrate",
    "bootstrap-key",
    "adopt-cluster",
    "rotate-installation-key",
    "release-finalizers",
    "admission",
    "render",
];
/// The id of the option that names the file.
pub(super) const FILE: &str = "config";

/// Adds the option that names the file to a command that reads it.
pub(super) fn with_file(command: Command) -> Command {
    if command.has_subcommands() {
        return command.mut_subcommands(with_file);
    }
    let file =
        Arg::new(FILE).env("SPARKGATE_CONFIG_FILE").value_name("FILE").value_parser(clap::value_parser!(PathBuf)).help(
            "A file with settings, as TOML: keys are the long names of the options of `serve` (docs/operate/operations.md)",
        );
    let file = file.help_heading(None::<&str>);
    match command.get_name() {
        // A check and a list of the settings don't need those that come from elsewhere where the gateway runs.
        // And a doctor says which are missing.
        "check" => command.mut_args(|option| option.required(false)).arg(file),
        "show" => command.mut_args(|option| option.required(false)).arg(file.long(FILE)),
        "doctor" => command.mut_args(|option| option.required(false)).arg(file.long(FILE)),
        "schema" => command,
        _ => command.arg(file.long(FILE)),
    }
}

/// Returns whether a command reads the file.
pub(super) fn reads_file(command: &Command) -> bool {
    is_reader(command.get_name())
}

/// Returns whether the command of this name reads the file.
pub(super) fn is_reader(name: &str) -> bool {
    WITH_FILE.contains(&name)
}
