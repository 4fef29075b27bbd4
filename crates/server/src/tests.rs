mod tls;

use std::convert::Infallible;

use axum::{
    Extension,
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
    start_with(ServerSettings { max_connections, ..ServerSettings::default() }).await
}

async fn start_with(settings: ServerSettings) -> (SocketAddr, DropGuard) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, stop) = (listener.local_addr().unwrap(), CancellationToken::new());
    let silent = || async { Body::from_stream(stream::pending::<Result<&str, Infallible>>()) };
    let router = Router::new().route("/", get(async || "done")).route("/silent", get(silent)).route("/peer", get(peer));
    tokio::spawn(serve(listener, router, settings, stop.clone()));
    (address, stop.drop_guard())
}

/// Answers with what a handler sees of the connection.
async fn peer(Extension(peer): Extension<Peer>) -> String {
    let Peer { address, forwarded, certificate, is_secure: _ } = peer;
    let certificate = certificate.map_or(0, |certificate| certificate.len());
    format!("{} {forwarded:?} {certificate} done", address.ip())
}

/// Reads until the response has come.
async fn answered(client: &mut (impl AsyncRead + Unpin)) -> String {
    let mut answer = Vec::new();
    while !answer.ends_with(b"done") {
        assert_ne!(client.read_buf(&mut answer).await.unwrap(), 0, "{}", String::from_utf8_lossy(&answer));
    }
    String::from_utf8(answer).unwrap()
}

async fn is_closed(client: &mut (impl AsyncRead + Unpin)) -> bool {
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

#[tokio::test]
async fn a_handler_sees_the_peer_and_a_proxy_names_the_client_only_if_it_is_trusted() {
    for (proxies, forwarded) in [("127.0.0.0/8", "Some(192.0.2.7)"), ("10.0.0.0/8", "None")] {
        let trusted_proxies = TrustedProxies::parse([proxies]).unwrap();
        let (address, _server) = start_with(ServerSettings { trusted_proxies, ..ServerSettings::default() }).await;
        let mut client = TcpStream::connect(address).await.unwrap();
        let request = b"GET /peer HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: 192.0.2.7\r\n\r\n";
        client.write_all(request).await.unwrap();
        let answer = answered(&mut client).await;
        assert!(answer.contains(&format!("127.0.0.1 {forwarded} 0 done")), "{answer}");
    }
}
