//! An HTTP server for any router.
//!
//! The accept loop: connections of HTTP/1.1 and HTTP/2, with TLS or plain. Plain HTTP/2 needs prior knowledge (RFC 9113,
//! section 3.3).
//!
//! A client that sends nothing, sends slowly or reads nothing loses its connection, and holds up no other: see
//! `request_timer` and `connection`.

mod connection;
mod in_flight;
mod peer;
mod request_timer;
#[cfg(test)]
mod tests;
mod tls;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::{Router, body::Body};
use futures::TryFutureExt;
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::{
        conn::auto::Builder,
        graceful::{GracefulShutdown, Watcher},
    },
};
use socket2::{SockRef, TcpKeepalive};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::sleep,
};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use self::{
    connection::Connection,
    in_flight::{InFlight, Requests},
    tls::Secured,
};

pub use peer::{NetworkError, Peer, TrustedProxies};
pub use tls::{Tls, TlsError, TlsFiles};

/// A peer that is gone is noticed after about two minutes: the first probe after a minute of silence, then one every 15 s.
const KEEP_ALIVE: TcpKeepalive =
    TcpKeepalive::new().with_time(Duration::from_secs(60)).with_interval(Duration::from_secs(15)).with_retries(4);
/// The same for HTTP/2, by PING frames.
const PING: Duration = Duration::from_secs(20);
/// Requests of one HTTP/2 connection at a time.
const STREAMS: u32 = 250;
/// After an error of `accept`, such as too many open files.
const PAUSE: Duration = Duration::from_secs(1);

/// How connections are accepted.
#[derive(Debug, Clone)]
pub struct ServerSettings {
    /// Connections at the same time, 8192 by default; more wait until one ends.
    pub max_connections: usize,
    /// `None` accepts plain connections only, `Some` those with TLS only.
    pub tls: Option<Tls>,
    pub trusted_proxies: TrustedProxies,
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self { max_connections: 8192, tls: None, trusted_proxies: TrustedProxies::default() }
    }
}

/// Serves `router` until `stop`, then ends idle connections and waits for the requests that are in flight.
pub async fn serve(listener: TcpListener, router: Router, settings: ServerSettings, stop: CancellationToken) {
    let ServerSettings { max_connections, tls, trusted_proxies } = settings;
    let mut builder = Builder::new(TokioExecutor::new());
    // `request_timer` limits headers and idle connections.
    builder.http1().timer(TokioTimer::new()).header_read_timeout(None);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(PING)
        .keep_alive_timeout(PING)
        .max_concurrent_streams(STREAMS);
    let connections = Arc::new(Semaphore::new(max_connections.min(Semaphore::MAX_PERMITS)));
    let server = Arc::new(Server { builder, router, tls, trusted_proxies, stop: stop.clone() });
    let graceful = GracefulShutdown::new();
    while let Some(place) = stop.run_until_cancelled(connections.clone().acquire_owned()).await {
        let Some((stream, address)) = stop.run_until_cancelled(accept(&listener)).await else { break };
        let (server, watcher) = (server.clone(), graceful.watcher());
        tokio::spawn(async move {
            server.serve(stream, address, watcher).await;
            drop(place);
        });
    }
    drop(listener);
    graceful.shutdown().await;
}

/// What all connections have in common.
struct Server {
    builder: Builder<TokioExecutor>,
    router: Router,
    tls: Option<Tls>,
    trusted_proxies: TrustedProxies,
    stop: CancellationToken,
}

impl Server {
    /// Serves one connection to its end.
    async fn serve(&self, stream: TcpStream, address: SocketAddr, watcher: Watcher) {
        let requests = Requests::default();
        let connection = Connection::new(stream, requests.clone(), self.stop.clone());
        let Some(tls) = &self.tls else {
            let peer = Peer::new(address, None, false);
            return self.answer(self.builder.clone(), connection, peer, requests, watcher).await;
        };
        match self.stop.run_until_cancelled(tls.accept(connection)).await {
            Some(Ok(Secured { stream, is_http2, certificate })) => {
                let peer = Peer::new(address, certificate, true);
                let builder = self.builder.clone();
                let builder = if is_http2 { builder.http2_only() } else { builder.http1_only() };
                self.answer(builder, stream, peer, requests, watcher).await;
            }
            Some(Err(error)) => tracing::debug!(peer = %address.ip(), %error, "TLS handshake failed"),
            None => {}
        }
    }

    /// Answers the requests of a connection.
    async fn answer(
        &self,
        builder: Builder<TokioExecutor>,
        connection: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        peer: Peer,
        requests: Requests,
        watcher: Watcher,
    ) {
        let (router, proxies) = (self.router.clone(), self.trusted_proxies.clone());
        let service = service_fn(move |mut request: hyper::Request<Incoming>| {
            let in_flight = requests.begin();
            let peer = peer.behind_proxies(request.headers(), &proxies);
            request.extensions_mut().insert(peer);
            router
                .clone()
                .oneshot(request.map(Body::new))
                .map_ok(move |response| response.map(|body| InFlight::new(body, in_flight)))
        });
        let served = builder.serve_connection(TokioIo::new(connection), service).into_owned();
        if let Err(error) = watcher.watch(served).await {
            tracing::debug!(error = &*error, "connection closed");
        }
    }
}

/// Accepts a connection. An error of one connection is that connection's; others pass.
async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok((stream, address)) => {
                // Both only make a connection better.
                let _ = stream.set_nodelay(true);
                let _ = SockRef::from(&stream).set_tcp_keepalive(&KEEP_ALIVE);
                return (stream, address);
            }
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                tracing::error!(%error, retry_in = ?PAUSE, "accepting a connection failed");
                sleep(PAUSE).await;
            }
        }
    }
}

fn is_of_one_connection(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}
