//! One `sparkgate serve` behind two fault proxies. It is started again whenever it ends, as by a Deployment.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::Command,
    sync::Mutex,
    time::Duration,
};

use rustix::process::Signal;
use sparkgate_testing::fault_proxy::{Fault, FaultProxy};
use sparkgate_testing::{
    dice::Dice,
    guard::guard,
    process::{Process, free_port, until},
};
use tokio::time::{Instant, sleep};

use super::{pages::PageProxy, servers::Servers};

/// The number of the replica that reaches the API server through a proxy which answers by itself at times.
const BEHIND_PAGES: usize = 1;

pub(crate) struct Replica {
    pub(crate) address: SocketAddr,
    /// Between the replica and Postgres.
    pub(crate) database: FaultProxy,
    /// Between the replica and the API server.
    pub(crate) cluster: FaultProxy,
    /// In front of that, for one replica: a proxy that speaks HTTP.
    pub(crate) pages: Option<PageProxy>,
    program: Mutex<PathBuf>,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    database_url: String,
    pub(crate) log: PathBuf,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    process: Option<Process>,
    /// Whether to start it again when it ends.
    wanted: bool,
    paused: bool,
    starts: usize,
    /// The exit codes of ends that no fault caused.
    own_ends: Vec<Option<i32>>,
}

impl Replica {
    pub(crate) async fn new(
        program: PathBuf,
        number: usize,
        namespace: &str,
        options: &[String],
        servers: &Servers,
        seed: u64,
        environment: Vec<(String, String)>,
    ) -> Self {
        let upstream = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let database = FaultProxy::seeded(upstream(servers.postgres.port), seed ^ number as u64).await;
        let cluster = FaultProxy::seeded(upstream(servers.kubernetes.port), !seed ^ number as u64).await;
        let name = format!("{namespace}-replica-{number}");
        let kubeconfig = guard().directory().join(format!("{name}.kubeconfig"));
        let direct = servers.kubernetes.kubeconfig(cluster.address().port());
        let pages = if number == BEHIND_PAGES { Some(PageProxy::start(&direct).await) } else { None };
        let mut file = std::fs::File::create(&kubeconfig).unwrap();
        match &pages {
            Some(pages) => pages.write_kubeconfig(&mut file),
            None => std::io::Write::write_all(&mut file, direct.as_bytes()).unwrap(),
        }
        let address = upstream(free_port());
        let mut arguments: Vec<String> = ["serve", "--kubeconfig"].iter().map(|&word| word.to_owned()).collect();
        arguments.extend([kubeconfig.display().to_string(), "--listen".to_owned(), address.to_string()]);
        arguments.extend_from_slice(options);
        let database_url = servers.postgres.gateway_url(namespace, database.address().port()).unwrap();
        let log = guard().directory().join(format!("{name}.log"));
        let program = Mutex::new(program);
        let state = Mutex::default();
        Self { address, database, cluster, pages, program, arguments, environment, database_url, log, state }
    }

    /// Marks it as wanted, and starts it.
    pub(crate) fn start(&self) {
        let mut state = self.state.lock().unwrap();
        state.wanted = true;
        if state.process.is_none() {
            let mut command = Command::new(&*self.program.lock().unwrap());
            command.args(&self.arguments).envs(self.environment.iter().cloned());
            command.env("SPARKGATE_DATABASE_URL", &self.database_url).env("RUST_BACKTRACE", "1");
            state.process = Some(Process::spawn(command.env_remove("KUBECONFIG"), &self.log));
            state.starts += 1;
        }
    }

    /// Sends SIGKILL; returns whether it was running. It is started again if it is wanted.
    pub(crate) fn kill(&self) -> bool {
        let mut state = self.state.lock().unwrap();
        state.paused = false;
        state.process.take().is_some()
    }

    /// Sends SIGKILL, and doesn't start it again.
    pub(crate) fn down(&self) {
        self.state.lock().unwrap().wanted = false;
        self.kill();
    }

    /// Replaces its program as a rolling update does: SIGTERM, its end, then the start of the other one.
    pub(crate) async fn replace(&self, program: &Path) {
        let old = {
            let mut state = self.state.lock().unwrap();
            state.wanted = false;
            state.process.take()
        };
        if let Some(mut old) = old {
            old.signal(Signal::TERM);
            until("a replica shuts down", Duration::from_secs(60), async || old.ended().is_some()).await;
        }
        *self.program.lock().unwrap() = program.to_owned();
        self.start();
    }

    /// Returns whether it can be killed or paused: it runs, and isn't paused.
    pub(crate) fn is_up(&self) -> bool {
        let state = self.state.lock().unwrap();
        state.process.is_some() && !state.paused
    }

    /// Stops it with SIGSTOP for `time`.
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

    /// Ends all faults of its connections, and closes the connections that had any.
    pub(crate) fn calm(&self) {
        for proxy in [&self.database, &self.cluster] {
            proxy.lose_replies(0.0);
            proxy.set(Fault::None);
            proxy.cut();
        }
        if let Some(pages) = &self.pages {
            pages.set(None);
        }
    }

    /// Starts it again after each end, with a delay. Runs forever.
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

    /// Returns whether it should run and doesn't.
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

    /// Returns the exit codes of the times that it ended by itself.
    pub(crate) fn own_ends(&self) -> Vec<Option<i32>> {
        self.state.lock().unwrap().own_ends.clone()
    }
}
