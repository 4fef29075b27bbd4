//! A `sparkgate dev` for a client.

use std::{
    fs,
    net::SocketAddr,
    os::unix::fs::PermissionsExt,
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
};

use sparkgate_testing::{
    gateway::{Gateway, sparkgate},
    process::free_address,
};
use tempfile::TempDir;

/// One test at a time: each runs several JVMs, and the machine may be small.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

pub(crate) struct Dev {
    pub(crate) gateway: Gateway,
    /// The port of Livy's clients.
    pub(crate) livy: SocketAddr,
    /// A directory for the test's files, readable by every account.
    pub(crate) dir: TempDir,
    _alone: MutexGuard<'static, ()>,
}

impl Dev {
    /// Starts one whose drivers are real.
    pub(crate) fn with_spark() -> Self {
        Self::start(|command, _| {
            command.env("SPARK_HOME", std::env::var("SPARK_HOME").expect("SPARK_HOME is not set: run `make test`"));
        })
    }

    /// Starts one with tenants and queues, whose drivers are real. `management` is the address of its metrics.
    pub(crate) fn with_tenants(management: SocketAddr) -> Self {
        Self::start(|command, _| {
            command.env("SPARK_HOME", std::env::var("SPARK_HOME").expect("SPARK_HOME is not set: run `make test`"));
            command.args(["--access-file", concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/access.dev.yaml")]);
            command.args(["--management-listen", &management.to_string()]);
        })
    }

    /// Starts one whose drivers are fakes: each runs for two seconds and succeeds.
    pub(crate) fn played() -> Self {
        Self::start(|command, dir| {
            // This machine's Python may have a pyspark; this one has none.
            let programs = dir.join("bin");
            fs::create_dir(&programs).unwrap();
            write_program(&programs.join("python3"), "#!/bin/sh\nexit 1\n");
            let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
            command.env("SPARK_HOME", "").env("PATH", path);
        })
    }

    fn start(prepare: impl FnOnce(&mut std::process::Command, &Path)) -> Self {
        let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let dir = TempDir::with_prefix("sparkgate-clients-").unwrap();
        // If this runs as root, Postgres runs as another account.
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let (address, livy, sandbox) = (free_address(), free_address(), free_address());
        let mut command = sparkgate();
        command.args(["dev", "--listen", &address.to_string(), "--sandbox-listen", &sandbox.to_string(), "--dir"]);
        command.arg(dir.path().join("dev")).args(["--livy-listen", &livy.to_string()]);
        command.args(["--connect-listen", &free_address().to_string()]);
        prepare(&mut command, dir.path());
        Self { gateway: Gateway::start(command, address, true), livy, dir, _alone: alone }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.gateway.address)
    }
}

pub(crate) fn write_program(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}
