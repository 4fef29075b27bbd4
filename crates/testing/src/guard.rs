//! Ensures that no process and no file outlives this process, even if it is killed.

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Mutex, OnceLock},
};

/// A `guard` script with the files of this process in its directory.
pub struct Guard {
    directory: PathBuf,
    /// The end of this process closes its standard input.
    script: Mutex<Child>,
}

static GUARD: OnceLock<Guard> = OnceLock::new();

/// Returns the one guard of this process.
pub fn guard() -> &'static Guard {
    GUARD.get_or_init(Guard::start)
}

impl Guard {
    fn start() -> Self {
        let directory = tempfile::Builder::new().prefix("sparkgate-servers-").tempdir().unwrap().keep();
        // Postgres runs as another user.
        let passable = std::os::unix::fs::PermissionsExt::from_mode(0o711);
        std::fs::set_permissions(&directory, passable).unwrap();
        let script = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/guard"))
            .arg(&directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Self { directory, script: Mutex::new(script) }
    }

    /// Returns the directory for files of this process.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Adds a process, which ends with this one.
    pub fn add(&self, pid: u32) {
        self.tell(&format!("+{pid}"));
    }

    /// Removes a process that has ended.
    pub fn remove(&self, pid: u32) {
        self.tell(&format!("-{pid}"));
    }

    /// Keeps the directory with its logs.
    pub fn keep(&self) {
        self.tell("keep");
    }

    fn tell(&self, line: &str) {
        writeln!(self.script.lock().unwrap().stdin.as_mut().unwrap(), "{line}").unwrap();
    }
}
