//! kube's client over our own connections: HTTP/2 where the server offers it, so that many calls share one connection, and a
//! dead connection is detected by its silence. kube still handles credentials, certificates and the server's address.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Poll},
    time::Duration,
};

use futures::{FutureExt, future::BoxFuture};
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_timeout::TimeoutConnector;
use hyper_util::{
    client::legacy::{self, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use kube::{
    Client, Config,
    client::{Body, ClientBuilder, ConfigExt, RustlsTlsError},
};
use tower::{BoxError, Service, ServiceBuilder, layer::layer_fn, util::MapResponseLayer};

use super::{measured::Measured, retry_after};

/// Timeout for the TCP and TLS handshakes together.
const CONNECT: Duration = Duration::from_secs(5);
/// Interval of the keep-alive pings of an HTTP/2 connection, and the timeout for the answer.
const PING: Duration = Duration::from_secs(10);
const PING_ANSWER: Duration = Duration::from_secs(5);
/// Read timeout. HTTP/1.1 has no pings; a watch ends by itself before this, so a connection that is silent for longer is dead.
const SILENCE: Duration = Duration::from_secs(60);
/// Calls on one connection before another one is used. An API server works on a hundred calls of one connection at once.
const CALLS: usize = 80;
/// Flow-control windows for one stream and for a whole connection: a reader that stops reading must not stop the others.
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 64 * 1024 * 1024;

/// Creates a client that never retries a call by itself: kube's own retries would repeat creates and hide outages for minutes.
/// The client has up to this many connections, so that slow calls don't keep others waiting.
///
/// # Errors
/// The credentials or certificates of the configuration can't be used.
pub(super) fn client(config: &Config, connections: usize) -> kube::Result<Client> {
    if config.proxy_url.is_some() {
        return through_proxy(config.clone());
    }
    let connection = || Ok(Connection { service: connection(config)?, under_way: Arc::default() });
    let connections = Spread((0..connections).map(|_| connection()).collect::<kube::Result<_>>()?);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .map_response(retry_after::keep)
        .service(Measured(connections));
    Ok(ClientBuilder::new(service, config.default_namespace.clone()).build())
}

type Http = legacy::Client<TimeoutConnector<HttpsConnector<HttpConnector>>, Body>;

/// Creates an HTTP client, which uses a single connection if the server supports HTTP/2.
fn connection(config: &Config) -> kube::Result<Http> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    let mut tls = HttpsConnectorBuilder::new().with_tls_config(config.rustls_client_config()?).https_or_http();
    if let Some(name) = config.tls_server_name.clone() {
        let name = name.try_into().map_err(|error| kube::Error::RustlsTls(RustlsTlsError::InvalidServerName(error)))?;
        tls = tls.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    let mut connector = TimeoutConnector::new(tls.enable_all_versions().wrap_connector(tcp));
    connector.set_connect_timeout(Some(CONNECT));
    connector.set_read_timeout(Some(SILENCE));
    connector.set_reset_reader_on_write(true);
    Ok(legacy::Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .http2_keep_alive_interval(PING)
        .http2_keep_alive_timeout(PING_ANSWER)
        .http2_keep_alive_while_idle(true)
        .http2_initial_stream_window_size(STREAM_WINDOW)
        .http2_initial_connection_window_size(CONNECTION_WINDOW)
        .build(connector))
}

/// Several connections; a call uses the first one that has room.
#[derive(Clone)]
struct Spread<S>(Arc<[Connection<S>]>);

struct Connection<S> {
    service: S,
    /// Calls that are not answered yet.
    under_way: Arc<AtomicUsize>,
}

impl<S, Request> Service<Request> for Spread<S>
where
    S: Service<Request, Response: 'static, Error: 'static, Future: Send + 'static> + Clone,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<S::Response, S::Error>>;

    /// Is always ready: each call waits for its own connection, as hyper's client does.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let count = |connection: &&Connection<S>| connection.under_way.load(Relaxed);
        let with_room = self.0.iter().find(|connection| count(connection) < CALLS);
        match with_room.or_else(|| self.0.iter().min_by_key(count)) {
            Some(connection) => {
                let counted = Counted::new(&connection.under_way);
                connection.service.clone().call(request).inspect(move |_| drop(counted)).boxed()
            }
            // Unreachable: there is at least one connection.
            None => std::future::pending().boxed(),
        }
    }
}

/// A call that counts as in flight until this is dropped.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Relaxed);
        Self(count.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// Creates a client of kube's own stack, which supports proxies and uses HTTP/1.1.
fn through_proxy(mut config: Config) -> kube::Result<Client> {
    config.default_retry = false;
    config.connect_timeout = Some(CONNECT);
    config.read_timeout = Some(SILENCE);
    config.reset_reader_on_write = true;
    let client = ClientBuilder::try_from(config)?.with_layer(&layer_fn(Measured));
    Ok(client.with_layer(&MapResponseLayer::new(retry_after::keep)).build())
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, sync::Mutex};

    use super::*;

    #[tokio::test]
    async fn slow_calls_leave_connections_to_others() {
        let taken = Arc::new(Mutex::new(Vec::new()));
        let connection = |name: &'static str| {
            let taken = taken.clone();
            let service = tower::service_fn(move |_: ()| {
                taken.lock().unwrap().push(name);
                std::future::pending::<Result<(), Infallible>>()
            });
            Connection { service, under_way: Arc::default() }
        };
        let mut spread = Spread([connection("one"), connection("two")].into());
        let mut calls: Vec<_> = (0..CALLS * 2).map(|_| spread.call(())).collect();
        let counted = |name: &str| taken.lock().unwrap().iter().filter(|one| **one == name).count();
        assert_eq!((counted("one"), counted("two")), (CALLS, CALLS));
        calls.truncate(1);
        calls.push(spread.call(()));
        assert_eq!((counted("one"), counted("two")), (CALLS + 1, CALLS), "a dropped call doesn't count");
    }
}
