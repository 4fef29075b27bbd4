//! Programs of the Python environments.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// Returns a directory of `tests/clients`.
pub(crate) fn here(part: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients").join(part)
}

/// Returns a program of the environment that the variable names.
pub(crate) fn program(variable: &str, name: &str) -> Command {
    let venv = std::env::var(variable).unwrap_or_else(|_| panic!("{variable} is not set: run `make test`"));
    let bin = Path::new(&venv).join("bin");
    let mut command = Command::new(bin.join(name));
    command.env("PATH", format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default()));
    command
}

/// Runs the command; returns whether it succeeded, and its output.
pub(crate) fn run(command: &mut Command) -> (bool, String) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    (output.status.success(), said.into_owned())
}
