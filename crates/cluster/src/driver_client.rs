//! The HTTP client for drivers.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};

/// Timeout for the connection to a driver, which is in the same network.
const CONNECT: Duration = Duration::from_secs(5);
/// The most bytes of the head of a response.
const HEAD: usize = 64 << 10;

/// A client for drivers. It has no credentials, follows no redirects, uses no proxy, and opens a connection for each request: what
/// a driver sends after its response can't become the response to another request.
pub(super) type DriverClient = Client<HttpConnector, Full<Bytes>>;

/// Creates the client.
pub(super) fn client() -> DriverClient {
    let mut connector = HttpConnector::new();
    connector.set_connect_timeout(Some(CONNECT));
    connector.set_nodelay(true);
    Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_max_idle_per_host(0)
        .retry_canceled_requests(false)
        .http1_max_buf_size(HEAD)
        .build(connector)
}
