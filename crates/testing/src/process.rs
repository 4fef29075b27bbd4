//! A child process with a log, and signals for it.

use std::{
    fs::{File, OpenOptions},
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

use crate::guard::guard;

/// A process that ends with its children when it is dropped, or when this process ends.
pub struct Process(Child);

impl Process {
    /// Starts the command; appends its output to `log`.
    pub fn spawn(command: &mut Command, log: &Path) -> Self {
        let log: File = OpenOptions::new().create(true).append(true).open(log).unwrap();
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        let child = command.spawn().unwrap_or_else(|error| panic!("starting {command:?}: {error}"));
        guard().add(child.id());
        Self(child)
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        // A process that has already ended needs no signal.
        let _ = kill_process(self.pid(), signal);
    }

    /// Returns how it ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.0.try_wait().unwrap()
    }

    /// Sends SIGKILL to it and to the processes that it started, and waits for its end.
    pub fn kill(&mut self) {
        let children = children_of(self.0.id());
        self.signal(Signal::KILL);
        for child in children {
            let _ = kill_process(child, Signal::KILL);
        }
        self.0.wait().unwrap();
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.0)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        guard().remove(self.0.id());
    }
}

/// Returns the child processes. Only Linux lists them; on other systems orphans end by themselves a moment later.
fn children_of(pid: u32) -> Vec<Pid> {
    let listed = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    listed.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect()
}

/// Returns a port that no process listens on, below the range of ephemeral ports: a server that is killed must get it
/// back.
pub fn free_port() -> u16 {
    loop {
        let port = 12_000 + u16::from_le_bytes(uuid::Uuid::new_v4().as_bytes()[..2].try_into().unwrap()) % 20_000;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// Returns an address of this machine with a port that no process listens on.
pub fn free_address() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, free_port()).into()
}

/// Polls until the condition holds, and panics after `limit`.
pub async fn until(what: &str, limit: Duration, mut so: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + limit;
    while !so().await {
        assert!(Instant::now() < deadline, "not within {limit:?}: {what}. Logs: {}", {
            guard().keep();
            guard().directory().display()
        });
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
