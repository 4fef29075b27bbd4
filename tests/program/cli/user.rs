//! A user with a home of its own: contexts and logins.

use std::{
    fs::{self, Permissions},
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::PathBuf,
    process::Command,
};

use tempfile::TempDir;

use crate::cli::run::{Ended, command};

pub(crate) struct User {
    home: TempDir,
}

impl User {
    /// Creates a user without contexts.
    pub(crate) fn new() -> Self {
        Self { home: tempfile::tempdir().unwrap() }
    }

    /// Creates a user with one context, which is the current one.
    pub(crate) fn with_context(name: &str, url: &str) -> Self {
        let user = Self::new();
        user.write_config(&format!("current: {name}\ncontexts:\n  {name}: {{server: '{url}'}}\n"));
        user
    }

    /// Returns a path below the home.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.path(".config/sparkgate/config.yaml")
    }

    pub(crate) fn credentials(&self) -> PathBuf {
        self.path(".config/sparkgate/credentials.yaml")
    }

    /// Writes the contexts, in a file that only the user can read.
    pub(crate) fn write_config(&self, text: &str) {
        self.write(".config/sparkgate/config.yaml", text, 0o600);
    }

    /// Writes a file below the home. Returns its path.
    pub(crate) fn write(&self, name: &str, text: &str, mode: u32) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        path
    }

    pub(crate) fn mode(&self, name: &str) -> u32 {
        fs::metadata(self.path(name)).unwrap().mode() & 0o777
    }

    /// Returns the command in this user's environment, which names no gateway.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = command("", words);
        command.env_remove("SPARKGATE_URL").env("HOME", self.home.path()).env("SPARKGATE_DEV_DIR", self.path("dev"));
        command
    }

    pub(crate) fn run(&self, words: &[&str]) -> Ended {
        self.run_with(words, &[])
    }

    /// Runs a command with further variables.
    pub(crate) fn run_with(&self, words: &[&str], variables: &[(&str, &str)]) -> Ended {
        Ended::from(self.command(words).envs(variables.iter().copied()).output().unwrap())
    }
}
