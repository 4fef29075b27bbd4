//! A TCP proxy whose faults are switched at run time. It is independent of the protocol and passes TLS through, so it
//! works in front of a kube-apiserver and of a Postgres.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

mod connection;

/// What happens to bytes and connections from now on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    None,
    /// New connections are reset at once; open ones stay.
    Refuse,
    /// Each chunk is delayed, in both directions.
    Delay(Duration),
    /// Bytes are dropped and sockets stay open, as if the peer had lost power. A connection that lost bytes stays
    /// silent for good.
    Silent(Way),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Way {
    ToServer,
    ToClient,
    Both,
}

impl Fault {
    fn swallows(self, way: Way) -> bool {
        matches!(self, Self::Silent(silent) if silent == Way::Both || silent == way)
    }
}

/// The proxy. It ends with all its connections when it is dropped.
pub struct FaultProxy {
    address: SocketAddr,
    controls: Arc<Controls>,
    accepting: AbortHandle,
}

struct Controls {
    upstream: watch::Sender<SocketAddr>,
    fault: watch::Sender<Fault>,
    /// Incremented by each cut.
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
    pub async fn start(upstream: SocketAddr) -> Self {
        Self::seeded(upstream, 0).await
    }

    /// Starts a proxy with a seed, which determines the requests that lose their reply: the same ones in each run,
    /// counted per connection.
    pub async fn seeded(upstream: SocketAddr, seed: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let controls = Arc::new(Controls {
            upstream: watch::Sender::new(upstream),
            fault: watch::Sender::new(Fault::None),
            cuts: watch::Sender::new(0),
            loss: AtomicU64::new(0),
            seed,
            connections: AtomicUsize::new(0),
            live: AtomicUsize::new(0),
            lost: AtomicUsize::new(0),
            swallowed: AtomicUsize::new(0),
        });
        let accepting = tokio::spawn(accept(listener, controls.clone())).abort_handle();
        Self { address, controls, accepting }
    }

    /// Returns the address for clients.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sets the fault from now on.
    pub fn set(&self, fault: Fault) {
        self.controls.fault.send_replace(fault);
    }

    /// Leads new connections to another server.
    pub fn redirect(&self, upstream: SocketAddr) {
        self.controls.upstream.send_replace(upstream);
    }

    /// Resets every open connection.
    pub fn cut(&self) {
        self.controls.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// Sets the probability that a request is delivered, its reply dropped and the connection reset. A request is what
    /// the client sends after the server's last bytes.
    pub fn lose_replies(&self, probability: f64) {
        self.controls.loss.store(probability.to_bits(), SeqCst);
    }

    /// Returns the number of accepted connections.
    pub fn connections(&self) -> usize {
        self.controls.connections.load(SeqCst)
    }

    /// Returns the number of open connections.
    pub fn live(&self) -> usize {
        self.controls.live.load(SeqCst)
    }

    /// Returns the number of replies dropped by [`Self::lose_replies`].
    pub fn replies_lost(&self) -> usize {
        self.controls.lost.load(SeqCst)
    }

    /// Returns the number of bytes dropped silently.
    pub fn swallowed(&self) -> usize {
        self.controls.swallowed.load(SeqCst)
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, controls: Arc<Controls>) {
    // Dropped with this task, which ends the connections.
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
        let upstream = *controls.upstream.borrow();
        // Subscribes before the task runs: a cut from now on also applies to this connection.
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

/// Makes the socket send a reset when it is closed.
fn reset(stream: &TcpStream) {
    let _ = stream.set_zero_linger();
}

/// Counts a connection as open until it is dropped.
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
