//! The account that Postgres runs as, which is never root.

use std::{
    fs,
    io::Write,
    os::unix::fs::{OpenOptionsExt, PermissionsExt, chown},
    path::Path,
};

use anyhow::Context;
use rustix::process::geteuid;
use tokio::process::Command;

/// The account of this process, or an unprivileged one if that is root.
#[derive(Debug, Clone)]
pub(super) struct Account {
    other: Option<(u32, u32)>,
}

impl Account {
    pub(super) fn for_postgres() -> anyhow::Result<Self> {
        if !geteuid().is_root() {
            return Ok(Self { other: None });
        }
        let accounts = fs::read_to_string("/etc/passwd").context("reading /etc/passwd")?;
        let find = |name: &str| {
            let fields: Vec<&str> =
                accounts.lines().map(|line| line.split(':').collect()).find(|f: &Vec<&str>| f[0] == name)?;
            Some((fields.get(2)?.parse().ok()?, fields.get(3)?.parse().ok()?))
        };
        let other = find("postgres").or_else(|| find("nobody"));
        let other = other.context("Postgres can't run as root: create an account named `postgres` for it")?;
        Ok(Self { other: Some(other) })
    }

    /// Returns a command that runs as this account, in a directory that the account may enter.
    pub(super) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir("/").stdin(std::process::Stdio::null());
        if let Some((uid, gid)) = self.other {
            command.uid(uid).gid(gid);
        }
        command
    }

    /// Creates a directory that only this account may enter.
    pub(super) fn make_dir(&self, dir: &Path) -> anyhow::Result<()> {
        let make = || {
            fs::create_dir_all(dir)?;
            fs::set_permissions(dir, fs::Permissions::from_mode(0o700))?;
            self.give(dir)
        };
        make().with_context(|| format!("creating the directory {}", dir.display()))
    }

    /// Writes a file that only this account may read.
    pub(super) fn write_secret(&self, path: &Path, text: &str) -> anyhow::Result<()> {
        let write = || {
            let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
            file.write_all(text.as_bytes())?;
            self.give(path)
        };
        write().with_context(|| format!("writing {}", path.display()))
    }

    fn give(&self, path: &Path) -> std::io::Result<()> {
        self.other.map_or(Ok(()), |(uid, gid)| chown(path, Some(uid), Some(gid)))
    }
}
