//! kube's client over connections of our own: HTTP/2 where the server offers it, so that many calls share one connection
//! and a dead one is noticed by its silence. Who we are, whom we trust and where we go stays kube's business.

use std::time::Duration;

use hyper_rustls::{FixedServerNameResolver, HttpsConnectorBuilder};
use hyper_timeout::TimeoutConnector;
use hyper_util::{
    client::legacy::{self, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use kube::{
    Client, Config,
    client::{Body, ClientBuilder, ConfigExt, RustlsTlsError},
};
use tower::{BoxError, ServiceBuilder};

/// The TCP and TLS handshakes together.
const CONNECT: Duration = Duration::from_secs(5);
/// An HTTP/2 connection is asked this often whether it lives, and has this long to answer.
const PING: Duration = Duration::from_secs(10);
const PING_ANSWER: Duration = Duration::from_secs(5);
/// Over HTTP/1.1 there is no such question. A watch ends before this by itself, so whatever is silent for longer is dead.
const SILENCE: Duration = Duration::from_secs(60);
/// What may be on its way to one reader, and to all of them: a reader that stops reading must not stop the others.
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 64 * 1024 * 1024;

/// A client that never repeats a call by itself: kube's own retries would repeat creates and hide outages for minutes.
///
/// # Errors
/// The credentials or certificates of the configuration can't be used.
pub(super) fn client(config: &Config) -> kube::Result<Client> {
    if config.proxy_url.is_some() {
        return through_proxy(config.clone());
    }
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
    let http: legacy::Client<_, Body> = legacy::Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .http2_keep_alive_interval(PING)
        .http2_keep_alive_timeout(PING_ANSWER)
        .http2_keep_alive_while_idle(true)
        .http2_initial_stream_window_size(STREAM_WINDOW)
        .http2_initial_connection_window_size(CONNECTION_WINDOW)
        .build(connector);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(http);
    Ok(ClientBuilder::new(service, config.default_namespace.clone()).build())
}

/// kube's own stack, which knows proxies and speaks HTTP/1.1.
fn through_proxy(mut config: Config) -> kube::Result<Client> {
    config.default_retry = false;
    config.connect_timeout = Some(CONNECT);
    config.read_timeout = Some(SILENCE);
    config.reset_reader_on_write = true;
    Client::try_from(config)
}
