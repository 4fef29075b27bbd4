//! The accept loop: connections of HTTP/1.1, and of HTTP/2 with prior knowledge (RFC 9113, section 3.3).
//!
//! A client that sends nothing, sends slowly or reads nothing loses its connection, and holds up no other: see
//! [`request_timer`] and [`connection`].

mod connection;
mod in_flight;
mod request_timer;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::{Router, body::Body};
use futures::TryFutureExt;
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::{conn::auto::Builder, graceful::GracefulShutdown},
};
use socket2::{SockRef, TcpKeepalive};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::sleep,
};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use self::{
    connection::Connection,
    in_flight::{InFlight, Requests},
};

/// A peer that is gone is noticed after about two minutes: the first probe after a minute of silence, then one every 15 s.
const KEEP_ALIVE: TcpKeepalive =
    TcpKeepalive::new().with_time(Duration::from_secs(60)).with_interval(Duration::from_secs(15)).with_retries(4);
/// The same for HTTP/2, by PING frames.
const PING: Duration = Duration::from_secs(20);
/// Requests of one HTTP/2 connection at a time.
const STREAMS: u32 = 250;
/// After an error of `accept`, such as too many open files.
const PAUSE: Duration = Duration::from_secs(1);

/// Serves `router` on at most `max_connections` connections until `stop`, then ends idle connections and waits for the
/// requests that are in flight.
pub async fn serve(listener: TcpListener, router: Router, max_connections: usize, stop: CancellationToken) {
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
    let graceful = GracefulShutdown::new();
    while let Some(place) = stop.run_until_cancelled(connections.clone().acquire_owned()).await {
        let Some((stream, _)) = stop.run_until_cancelled(accept(&listener)).await else { break };
        let requests = Requests::default();
        let connection = TokioIo::new(Connection::new(stream, requests.clone(), stop.clone()));
        let router = router.clone();
        let service = service_fn(move |request: hyper::Request<Incoming>| {
            let requests = requests.clone();
            let in_flight = requests.begin();
            router
                .clone()
                .oneshot(request.map(Body::new))
                .map_ok(move |response| response.map(|body| InFlight::new(body, in_flight)))
        });
        let served = graceful.watch(builder.serve_connection(connection, service).into_owned());
        tokio::spawn(async move {
            if let Err(error) = served.await {
                tracing::debug!(error = &*error, "connection closed");
            }
            drop(place);
        });
    }
    drop(listener);
    graceful.shutdown().await;
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

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use axum::{
        http::{Request, Version},
        routing::get,
    };
    use futures::stream;
    use hyper_util::client::legacy::Client;
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        time::Instant,
    };
    use tokio_util::sync::DropGuard;

    use super::*;

    const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";

    async fn start(max_connections: usize) -> (SocketAddr, DropGuard) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, stop) = (listener.local_addr().unwrap(), CancellationToken::new());
        let silent = || async { Body::from_stream(stream::pending::<Result<&str, Infallible>>()) };
        let router = Router::new().route("/", get(async || "done")).route("/silent", get(silent));
        tokio::spawn(serve(listener, router, max_connections, stop.clone()));
        (address, stop.drop_guard())
    }

    /// Reads until the response has come.
    async fn answered(client: &mut TcpStream) {
        let mut answer = Vec::new();
        while !answer.ends_with(b"done") {
            assert_ne!(client.read_buf(&mut answer).await.unwrap(), 0, "{}", String::from_utf8_lossy(&answer));
        }
    }

    async fn is_closed(client: &mut TcpStream) -> bool {
        matches!(client.read(&mut [0; 64]).await, Ok(0) | Err(_))
    }

    #[tokio::test(start_paused = true)]
    async fn headers_that_arrive_byte_by_byte_end_their_connection() {
        let (address, _server) = start(10).await;
        let mut client = TcpStream::connect(address).await.unwrap();
        let began = Instant::now();
        let (mut reads, mut writes) = client.split();
        let slow = async {
            for byte in GET.iter().cycle().filter(|byte| **byte != b'\r') {
                if writes.write_all(&[*byte]).await.is_err() {
                    break;
                }
                sleep(Duration::from_secs(4)).await;
            }
        };
        tokio::select! {
            () = slow => {}
            read = reads.read_u8() => assert!(read.is_err()),
        }
        let after = began.elapsed();
        assert!(after >= request_timer::HEADERS && after <= Duration::from_secs(30), "{after:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_connection_serves_another_request_and_ends_after_two_minutes() {
        let (address, _server) = start(10).await;
        let mut client = TcpStream::connect(address).await.unwrap();
        for _ in 0..3 {
            sleep(Duration::from_secs(100)).await;
            client.write_all(GET).await.unwrap();
            answered(&mut client).await;
        }
        let idle = Instant::now();
        assert!(is_closed(&mut client).await);
        assert!(idle.elapsed() >= request_timer::IDLE, "{:?}", idle.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn a_response_that_is_silent_for_hours_goes_on() {
        let (address, _server) = start(10).await;
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(b"GET /silent HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
        let mut headers = [0; 12];
        client.read_exact(&mut headers).await.unwrap();
        assert_eq!(&headers, b"HTTP/1.1 200");
        let silent = async { while !is_closed(&mut client).await {} };
        assert!(tokio::time::timeout(Duration::from_secs(10_000), silent).await.is_err());
    }

    #[tokio::test]
    async fn a_connection_above_the_limit_waits_for_another_to_end() {
        let (address, _server) = start(1).await;
        let mut first = TcpStream::connect(address).await.unwrap();
        first.write_all(GET).await.unwrap();
        answered(&mut first).await;
        let mut second = TcpStream::connect(address).await.unwrap();
        second.write_all(GET).await.unwrap();
        first.write_all(GET).await.unwrap();
        answered(&mut first).await;
        let mut byte = [0; 1];
        assert!(second.try_read(&mut byte).is_err(), "the second one is served beside the first");
        drop(first);
        answered(&mut second).await;
    }

    #[tokio::test]
    async fn http_2_is_served_without_tls() {
        let (address, _server) = start(10).await;
        let client = Client::builder(TokioExecutor::new()).http2_only(true).build_http::<Body>();
        let request = Request::get(format!("http://{address}/")).body(Body::empty()).unwrap();
        let response = client.request(request).await.unwrap();
        assert_eq!((response.status().as_u16(), response.version()), (200, Version::HTTP_2));
    }
}
