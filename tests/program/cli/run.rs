//! Running the program.

use std::process::{Child, Command, Stdio};

pub(crate) use sparkgate_testing::gateway::Ended;

use crate::cli::played::Played;

/// Returns the command, in an environment without settings.
pub(crate) fn command(url: &str, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sparkgate"));
    command.args(words).env_clear().env("SPARKGATE_URL", url).env("USER", "alice").stdin(Stdio::null());
    command
}

pub(crate) fn run(gateway: &Played, words: &[&str]) -> Ended {
    run_at(&gateway.url(), words)
}

pub(crate) fn run_at(url: &str, words: &[&str]) -> Ended {
    command(url, words).output().unwrap().into()
}

/// Starts the command with a pipe for its output.
pub(crate) fn start(gateway: &Played, words: &[&str]) -> Child {
    command(&gateway.url(), words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}
