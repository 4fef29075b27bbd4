//! A TCP proxy whose faults are switched while it runs. It knows no protocol and passes TLS untouched, so it stands before
//! a kube-apiserver as well as before a Postgres.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

#[path = "fault_proxy/connection.rs"]
mod connection;

/// What happens to bytes and connections from now on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fault {
    None,
    /// New connections are reset at once; live ones stay.
    Refuse,
    /// Each chunk waits that long, both ways.
    Delay(Duration),
    /// Bytes are swallowed and sockets stay open, as if the peer had lost its power. A connection that lost bytes stays
    /// silent for good.
    Silent(Way),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Way {
    ToServer,
    ToClient,
    Both,
}

impl Fault {
    fn swallows(self, way: Way) -> bool {
        matches!(self, Self::Silent(silent) if silent == Way::Both || silent == way)
    }
}

/// Ends with all its connections when it is dropped.
pub(crate) struct FaultProxy {
    address: SocketAddr,
    controls: Arc<Controls>,
    accepting: AbortHandle,
}

struct Controls {
    fault: watch::Sender<Fault>,
    /// Counted up by each cut.
    cuts: watch::Sender<u64>,
    /// The bits of an f64.
    loss: AtomicU64,
    seed: u64,
    connections: AtomicUsize,
    live: AtomicUsize,
    lost: AtomicUsize,
    swallowed: AtomicUsize,
}

impl FaultProxy {
    /// # Panics
    /// No port is free.
    pub(crate) async fn start(upstream: SocketAddr) -> Self {
        Self::seeded(upstream, 0).await
    }

    /// The seed decides which requests lose their reply: the same ones on each run, counted for each connection.
    pub(crate) async fn seeded(upstream: SocketAddr, seed: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let controls = Arc::new(Controls {
            fault: watch::Sender::new(Fault::None),
            cuts: watch::Sender::new(0),
            loss: AtomicU64::new(0),
            seed,
            connections: AtomicUsize::new(0),
            live: AtomicUsize::new(0),
            lost: AtomicUsize::new(0),
            swallowed: AtomicUsize::new(0),
        });
        let accepting = tokio::spawn(accept(listener, upstream, controls.clone())).abort_handle();
        Self { address, controls, accepting }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn set(&self, fault: Fault) {
        self.controls.fault.send_replace(fault);
    }

    /// Resets every live connection.
    pub(crate) fn cut(&self) {
        self.controls.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// With this probability a request is delivered, its reply dropped and the connection reset. A request is what the
    /// client sends after the server's last bytes.
    pub(crate) fn lose_replies(&self, probability: f64) {
        self.controls.loss.store(probability.to_bits(), SeqCst);
    }

    /// How many connections were accepted.
    pub(crate) fn connections(&self) -> usize {
        self.controls.connections.load(SeqCst)
    }

    /// How many connections are open.
    pub(crate) fn live(&self) -> usize {
        self.controls.live.load(SeqCst)
    }

    /// How many replies were dropped by [`Self::lose_replies`].
    pub(crate) fn replies_lost(&self) -> usize {
        self.controls.lost.load(SeqCst)
    }

    /// How many bytes were swallowed in silence.
    pub(crate) fn swallowed(&self) -> usize {
        self.controls.swallowed.load(SeqCst)
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, upstream: SocketAddr, controls: Arc<Controls>) {
    // Dropped with this task, and the connections with it.
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next() => continue,
        };
        let Ok((mut client, _)) = accepted else { continue };
        let number = controls.connections.fetch_add(1, SeqCst) as u64;
        if *controls.fault.borrow() == Fault::Refuse {
            reset(&client);
            continue;
        }
        let live = Live::new(controls.clone());
        // Before the task runs: a cut from now on is a cut of this connection.
        let mut cuts = controls.cuts.subscribe();
        connections.spawn(async move {
            let Ok(mut server) = TcpStream::connect(upstream).await else { return reset(&client) };
            let _ = (client.set_nodelay(true), server.set_nodelay(true));
            let ended = tokio::select! {
                ended = connection::carry(&mut client, &mut server, &live.0, number) => ended,
                _ = cuts.changed() => Err(std::io::ErrorKind::ConnectionReset.into()),
            };
            if ended.is_err() {
                reset(&client);
                reset(&server);
            }
        });
    }
}

/// Closing the socket will send a reset.
fn reset(stream: &TcpStream) {
    let _ = stream.set_zero_linger();
}

/// Counts a connection as live until it is dropped.
struct Live(Arc<Controls>);

impl Live {
    fn new(controls: Arc<Controls>) -> Self {
        controls.live.fetch_add(1, SeqCst);
        Self(controls)
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.0.live.fetch_sub(1, SeqCst);
    }
}
