//! One `sparkgate serve` behind two fault proxies, started again whenever it ends, as a Deployment would.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    process::Command,
    sync::Mutex,
    time::Duration,
};

use rustix::process::Signal;
use tokio::time::{Instant, sleep};

use super::{
    dice::Dice,
    guard::guard,
    process::{Process, free_port},
    servers::Servers,
};
use crate::fault_proxy::{Fault, FaultProxy};

pub(crate) struct Replica {
    pub(crate) address: SocketAddr,
    /// Between it and Postgres.
    pub(crate) database: FaultProxy,
    /// Between it and the API server.
    pub(crate) cluster: FaultProxy,
    program: PathBuf,
    arguments: Vec<String>,
    database_url: String,
    pub(crate) log: PathBuf,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    process: Option<Process>,
    /// It is to be started again when it ends.
    wanted: bool,
    paused: bool,
    starts: usize,
    /// Ends that nobody here caused, by exit code.
    own_ends: Vec<Option<i32>>,
}

impl Replica {
    pub(crate) async fn new(
        program: PathBuf,
        number: usize,
        namespace: &str,
        options: &[&str],
        servers: &Servers,
        seed: u64,
    ) -> Self {
        let upstream = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let database = FaultProxy::seeded(upstream(servers.postgres.port), seed ^ number as u64).await;
        let cluster = FaultProxy::seeded(upstream(servers.kubernetes.port), !seed ^ number as u64).await;
        let name = format!("{namespace}-replica-{number}");
        let kubeconfig = guard().directory().join(format!("{name}.kubeconfig"));
        std::fs::write(&kubeconfig, servers.kubernetes.kubeconfig(cluster.address().port())).unwrap();
        let address = upstream(free_port());
        let mut arguments: Vec<String> =
            ["serve", "--namespaces", namespace, "--kubeconfig"].iter().map(|&word| word.to_owned()).collect();
        arguments.extend([kubeconfig.display().to_string(), "--listen".to_owned(), address.to_string()]);
        arguments.extend(options.iter().map(|&option| option.to_owned()));
        let database_url = servers.postgres.url(namespace, database.address().port()).unwrap();
        let log = guard().directory().join(format!("{name}.log"));
        Self { address, database, cluster, program, arguments, database_url, log, state: Mutex::default() }
    }

    /// Wants it up, and starts it.
    pub(crate) fn start(&self) {
        let mut state = self.state.lock().unwrap();
        state.wanted = true;
        if state.process.is_none() {
            let mut command = Command::new(&self.program);
            command.args(&self.arguments).env("SPARKGATE_DATABASE_URL", &self.database_url).env("RUST_BACKTRACE", "1");
            state.process = Some(Process::spawn(command.env_remove("KUBECONFIG"), &self.log));
            state.starts += 1;
        }
    }

    /// SIGKILL. Answers whether there was something to kill. It is started again, if it is wanted.
    pub(crate) fn kill(&self) -> bool {
        let mut state = self.state.lock().unwrap();
        state.paused = false;
        state.process.take().is_some()
    }

    /// SIGKILL, and stays down.
    pub(crate) fn down(&self) {
        self.state.lock().unwrap().wanted = false;
        self.kill();
    }

    /// Whether it can be killed or paused: it runs, and isn't paused.
    pub(crate) fn is_up(&self) -> bool {
        let state = self.state.lock().unwrap();
        state.process.is_some() && !state.paused
    }

    /// SIGSTOP, for so long.
    pub(crate) async fn pause(&self, time: Duration) {
        self.signal(Signal::STOP, true);
        sleep(time).await;
        self.signal(Signal::CONT, false);
    }

    fn signal(&self, signal: Signal, paused: bool) {
        let mut state = self.state.lock().unwrap();
        state.paused = paused;
        if let Some(process) = &state.process {
            process.signal(signal);
        }
    }

    /// Ends all faults of its connections, and the connections that had any.
    pub(crate) fn calm(&self) {
        for proxy in [&self.database, &self.cluster] {
            proxy.lose_replies(0.0);
            proxy.set(Fault::None);
            proxy.cut();
        }
    }

    /// Starts it again for ever, some time after each end.
    pub(crate) async fn keep_up(&self, mut dice: Dice) {
        let mut down_since = None;
        let mut pause = Duration::ZERO;
        loop {
            sleep(Duration::from_millis(20)).await;
            if !self.is_down() {
                down_since = None;
            } else if Instant::now()
                > *down_since.get_or_insert_with(|| {
                    pause = dice.millis(50, 600);
                    Instant::now()
                }) + pause
            {
                self.start();
            }
        }
    }

    /// Whether it should run and doesn't.
    fn is_down(&self) -> bool {
        let mut state = self.state.lock().unwrap();
        if let Some(status) = state.process.as_mut().and_then(Process::ended) {
            state.own_ends.push(status.code());
            state.process = None;
        }
        state.wanted && state.process.is_none()
    }

    pub(crate) fn starts(&self) -> usize {
        self.state.lock().unwrap().starts
    }

    /// How often it ended by itself, with what codes.
    pub(crate) fn own_ends(&self) -> Vec<Option<i32>> {
        self.state.lock().unwrap().own_ends.clone()
    }
}
