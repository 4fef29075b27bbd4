//! Clients that send one request after the other, each on a connection of its own.

use std::{
    net::SocketAddr,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    time::Duration,
};

use anyhow::ensure;
use futures::future::try_join_all;
use tokio::time::Instant;

use super::http::{Answer, Connection};
use crate::{gateway::Gateway, process::Process, samples::Samples};

/// A server that is called.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) process: Process,
}

impl From<&Gateway> for Server {
    fn from(gateway: &Gateway) -> Self {
        Self { address: gateway.address, process: gateway.process() }
    }
}

/// The measurements of the clients, and the CPU time that the server used.
#[derive(Default)]
pub(crate) struct Seen {
    /// The latency of each call.
    pub(crate) milliseconds: Samples,
    /// From the first call to the end of the last.
    took: Duration,
    /// CPU time of the server.
    cpu: Duration,
}

impl Seen {
    /// Returns calls per second.
    pub(crate) fn rate(&self) -> f64 {
        self.milliseconds.len() as f64 / self.took.as_secs_f64()
    }

    /// Returns milliseconds of the server's CPU time per call.
    pub(crate) fn cpu_of_each(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e3 / self.milliseconds.len() as f64
    }

    /// Adds later measurements of the same clients.
    pub(crate) fn add(&mut self, later: Self) {
        self.milliseconds.extend(later.milliseconds.values().iter().copied());
        self.took += later.took;
        self.cpu += later.cpu;
    }
}

/// The measurements of several runs.
#[derive(Default)]
pub(crate) struct Calls {
    pub(crate) rate: Samples,
    pub(crate) p50: Samples,
    pub(crate) p99: Samples,
    pub(crate) cpu: Samples,
}

impl Calls {
    /// Adds a run.
    pub(crate) fn take(&mut self, seen: &Seen) {
        self.rate.push(seen.rate());
        self.p50.push(seen.milliseconds.median());
        self.p99.push(seen.milliseconds.quantile(0.99));
        self.cpu.push(seen.cpu_of_each());
    }
}

/// Returns `1 client`, `16 clients`, and so on.
pub(crate) fn in_words(clients: usize) -> String {
    if clients == 1 { "1 client".to_owned() } else { format!("{clients} clients") }
}

/// Runs `count` clients for `time`. `call` gets the number of calls before it. Every reply has to be a 200.
pub(crate) async fn clients(
    server: impl Into<Server>,
    count: usize,
    time: Duration,
    call: impl AsyncFn(&mut Connection, usize) -> anyhow::Result<Answer>,
) -> anyhow::Result<Seen> {
    let Server { address, process } = server.into();
    let number = AtomicUsize::new(0);
    let cpu = process.cpu()?;
    let begun = Instant::now();
    let client = async || -> anyhow::Result<Samples> {
        let mut connection = Connection::open(address).await?;
        let mut milliseconds = Samples::default();
        while begun.elapsed() < time {
            let sent = Instant::now();
            let answer = call(&mut connection, number.fetch_add(1, Relaxed)).await?;
            milliseconds.push(sent.elapsed().as_secs_f64() * 1e3);
            ensure!(answer.status == 200, "{}: {}", answer.status, String::from_utf8_lossy(&answer.body));
        }
        Ok(milliseconds)
    };
    let all = try_join_all((0..count).map(|_| client())).await?;
    let (took, cpu) = (begun.elapsed(), process.cpu()? - cpu);
    Ok(Seen { milliseconds: all.iter().flat_map(|one| one.values()).copied().collect(), took, cpu })
}
