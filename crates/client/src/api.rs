//! HTTP calls to the gateway, with retries where they are safe and may help.

mod call;

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use tokio::time::{sleep, timeout};

use super::{
    backoff::{self, Miss},
    error::{Error, root},
    problem::Problem,
    screen::note,
    server::Server,
};
pub(super) use call::Call;

const CONNECT: Duration = Duration::from_secs(5);
/// TCP keep-alive. It detects a peer that is gone during a stream that may be silent for hours.
const KEEPALIVE: Duration = Duration::from_secs(30);
/// The shortest pause before a retry that the user is informed of.
const LONG: Duration = Duration::from_secs(1);

/// The connection to a gateway.
#[derive(Debug)]
pub(super) struct Api {
    server: Server,
    http: Http,
}

#[derive(Debug)]
enum Http {
    Plain(Client<HttpConnector, Full<Bytes>>),
    Tls(Client<HttpsConnector<HttpConnector>, Full<Bytes>>),
}

/// A successful response with its whole body.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

/// The error of one try, and whether a retry may help.
struct Failed {
    error: Error,
    miss: Option<Miss>,
}

impl Api {
    /// Creates a client for a gateway.
    ///
    /// # Errors
    /// The server is an `https` URL, and the system has no trusted certificates.
    pub(super) fn new(server: &Server) -> Result<Self, Error> {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT));
        tcp.set_keepalive(Some(KEEPALIVE));
        let mut client = Client::builder(TokioExecutor::new());
        client.timer(TokioTimer::new()).pool_timer(TokioTimer::new());
        let http = if server.is_https() {
            let tls = HttpsConnectorBuilder::new().with_native_roots().map_err(|error| {
                Error::Here(format!(
                    "the trusted certificates of this system can't be read: {error}. Set SSL_CERT_FILE to a file \
                     of certificates"
                ))
            })?;
            Http::Tls(client.build(tls.https_only().enable_http1().wrap_connector(tcp)))
        } else {
            Http::Plain(client.build(tcp))
        };
        Ok(Self { server: server.clone(), http })
    }

    /// Makes a call and reads the whole response.
    ///
    /// # Errors
    /// The gateway can't be reached or is overloaded, also after retries; or it refuses the request, which is not retried.
    pub(super) async fn send(&self, call: &Call) -> Result<Answer, Error> {
        repeated(async || {
            let response = self.once(call).await?;
            let (head, body) = response.into_parts();
            let body = whole(call, body).await?;
            Ok(Answer { headers: head.headers, body })
        })
        .await
    }

    /// Makes a call whose response is read as it arrives.
    ///
    /// # Errors
    /// As [`Api::send`].
    pub(super) async fn open(&self, call: &Call) -> Result<Response<Incoming>, Error> {
        repeated(async || self.once(call).await).await
    }

    async fn once(&self, call: &Call) -> Result<Response<Incoming>, Failed> {
        let request = self.request(call)?;
        let sent = match &self.http {
            Http::Plain(http) => http.request(request),
            Http::Tls(http) => http.request(request),
        };
        let response = match timeout(call.patience, sent).await {
            Err(_) => return Err(broken(call, format!("no response within {} seconds", call.patience.as_secs()))),
            Ok(Ok(response)) => response,
            Ok(Err(error)) if error.is_connect() => {
                let error = Error::NoGateway { server: self.server.clone(), cause: self.unreachable(&root(&error)) };
                return Err(Failed { error, miss: Some(Miss::NoConnection) });
            }
            Ok(Err(error)) => return Err(broken(call, root(&error))),
        };
        if response.status().is_success() { Ok(response) } else { Err(self.refused(call, response).await) }
    }

    /// Returns why no connection could be made. The TLS library's words for a server without TLS don't help.
    fn unreachable(&self, cause: &str) -> String {
        if cause.contains("InvalidContentType") {
            let plain = self.server.to_string().replacen("https:", "http:", 1);
            return format!("the server there speaks HTTP without TLS: try {plain}");
        }
        cause.to_owned()
    }

    /// Reads the error from a response that is not a success.
    async fn refused(&self, call: &Call, response: Response<Incoming>) -> Failed {
        let (head, body) = response.into_parts();
        let body = match whole(call, body).await {
            Ok(body) => body,
            Err(failed) => return failed,
        };
        let text = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok());
        let mut problem = Problem::of_answer(head.status, &body, text("x-request-id"));
        if let (true, Some(place)) = (head.status.is_redirection(), text("location")) {
            problem.detail = format!("it points to {place}: give --server the URL of the gateway itself");
        }
        // An unknown path, or an unknown version of Spark's protocol.
        let is_lost = problem.code.is_empty() && matches!(problem.status, 404 | 468);
        if let (true, Some(above)) = (is_lost, self.server.above_v1()) {
            problem.detail = format!("the URL {} ends in /v1, which this client adds itself: use {above}", self.server);
        }
        let busy = matches!(
            head.status,
            StatusCode::TOO_MANY_REQUESTS
                | StatusCode::BAD_GATEWAY
                | StatusCode::SERVICE_UNAVAILABLE
                | StatusCode::GATEWAY_TIMEOUT
        );
        let miss = busy.then(|| Miss::Busy(backoff::retry_after(text("retry-after"))));
        Failed { error: Error::Problem(Box::new(problem)), miss }
    }

    fn request(&self, call: &Call) -> Result<Request<Full<Bytes>>, Failed> {
        let mut request = Request::builder()
            .method(call.method.clone())
            .uri(format!("{}{}", self.server, call.path))
            .header(header::USER_AGENT, concat!("sparkgate/", env!("CARGO_PKG_VERSION")))
            .header(header::ACCEPT, call.accept);
        for (name, value) in &call.headers {
            request = request.header(*name, value);
        }
        request.body(Full::new(call.body.clone())).map_err(|error| {
            let error = Error::Here(format!("{}: the request can't be built: {error}", call.action));
            Failed { error, miss: None }
        })
    }
}

fn broken(call: &Call, cause: String) -> Failed {
    Failed { error: Error::Broken { action: call.action.clone(), cause }, miss: Some(Miss::Broken) }
}

async fn whole(call: &Call, body: Incoming) -> Result<Bytes, Failed> {
    match timeout(call.patience, body.collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) => Err(broken(call, root(&error))),
        Err(_) => Err(broken(call, format!("the response was incomplete after {} seconds", call.patience.as_secs()))),
    }
}

/// Retries a call until it succeeds or is refused, or until the retries are used up.
async fn repeated<T>(once: impl AsyncFn() -> Result<T, Failed>) -> Result<T, Error> {
    let mut misses = 0;
    loop {
        let Failed { error, miss } = match once().await {
            Ok(answer) => return Ok(answer),
            Err(failed) => failed,
        };
        misses += 1;
        let Some(pause) = miss.and_then(|miss| backoff::pause(misses, miss)) else { return Err(error) };
        if pause >= LONG {
            note(&format!("{error}\n  retrying in {}s", pause.as_secs()));
        }
        sleep(pause).await;
    }
}
