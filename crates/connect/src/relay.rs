//! One request to the server of a session, and its response. Both are streamed as they arrive, and neither is parsed: no more than the
//! windows of HTTP/2 is in memory.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, future::BoxFuture, stream};
use http::{
    HeaderMap, HeaderName, Request, Response, StatusCode, Uri,
    header::{CONTENT_TYPE, TE, USER_AGENT},
    uri::{PathAndQuery, Scheme},
};
use http_body_util::{BodyExt, StreamBody};
use hyper::{
    body::{Body, Frame, Incoming},
    client::conn::http2::{self, SendRequest},
};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use socket2::{SockRef, TcpKeepalive};
use tokio::{
    net::TcpStream,
    time::{MissedTickBehavior, interval, timeout},
};

use super::{
    Connect,
    body::{BoxError, RelayBody, empty},
    lock,
    status::{STATUS, Status, is_grpc},
};
use sparkgate_common::{error::error_chain, tenant_slots::TenantSlot};
use sparkgate_submission::SubmissionId;

/// How long a driver, which is in the same network, may take to accept a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// A driver that is gone is noticed after about two minutes. Servers before Spark 4.3 end connections whose clients send PINGs.
const KEEP_ALIVE: TcpKeepalive =
    TcpKeepalive::new().with_time(Duration::from_secs(60)).with_interval(Duration::from_secs(15)).with_retries(4);
/// The most bytes of the headers of a response, and of its trailers.
const HEADERS: u32 = 64 << 10;
/// The most requests of a session under way at once.
pub(crate) const OF_SESSION: u32 = 64;
/// The most bytes of a response that wait for its reader. The window of a connection has room for all requests that a session may have
/// under way, so that a slow reader stops only its own.
const WINDOW: u32 = 1 << 20;
/// How often a stream counts as a use of its session.
const USE: Duration = Duration::from_secs(15);

/// Places of a session and of its tenant.
pub(crate) type Slots = (TenantSlot, TenantSlot);

/// What a request holds until its response has ended.
pub(crate) struct Held {
    pub(crate) connect: Arc<Connect>,
    pub(crate) session: SubmissionId,
    pub(crate) slots: Slots,
    /// The stream has to end: the process shuts down, or the client's credentials are no longer valid.
    pub(crate) end: BoxFuture<'static, ()>,
}

/// The connections to the servers of sessions. Each session has one of its own, so that a hostile driver affects no other.
#[derive(Default)]
pub(crate) struct Drivers(Mutex<HashMap<(SubmissionId, SocketAddr), SendRequest<RelayBody>>>);

impl Drivers {
    /// Sends a request to the server of a session, on the connection of earlier ones as long as that lives.
    pub(crate) async fn send(
        &self,
        session: &SubmissionId,
        address: SocketAddr,
        mut request: Request<RelayBody>,
    ) -> Result<Response<Incoming>, Status> {
        let of = (session.clone(), address);
        let no_response = |error: hyper::Error| {
            tracing::debug!(submission = %session, "the server of a session sent no response: {}", error_chain(&error));
            Status::unavailable("the driver of the session sent no response: try again")
        };
        let open = lock(&self.0).get(&of).filter(|driver| !driver.is_closed()).cloned();
        if let Some(mut driver) = open {
            match driver.try_send_request(request).await {
                Ok(response) => return Ok(response),
                // The connection ended before the request was sent.
                Err(mut error) => match error.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(no_response(error.into_error())),
                },
            }
        }
        let mut driver = connect(address).await?;
        {
            let mut drivers = lock(&self.0);
            drivers.retain(|_, driver| !driver.is_closed());
            drivers.insert(of, driver.clone());
        }
        driver.send_request(request).await.map_err(no_response)
    }
}

async fn connect(address: SocketAddr) -> Result<SendRequest<RelayBody>, Status> {
    let refused = |why: &dyn std::fmt::Display| {
        tracing::debug!(%address, "no connection to the server of a session: {why}");
        Status::unavailable("the driver of the session accepts no connection: it starts, or has just ended; try again")
    };
    let stream = match timeout(CONNECT, TcpStream::connect(address)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return Err(refused(&error)),
        Err(_) => return Err(refused(&"it timed out")),
    };
    // Both only make a connection better.
    let _ = stream.set_nodelay(true);
    let _ = SockRef::from(&stream).set_tcp_keepalive(&KEEP_ALIVE);
    let mut client = http2::Builder::new(TokioExecutor::new());
    client.timer(TokioTimer::new()).max_header_list_size(HEADERS);
    client.initial_stream_window_size(WINDOW).initial_connection_window_size(WINDOW * OF_SESSION);
    let (sender, connection) = client.handshake(TokioIo::new(stream)).await.map_err(|error| refused(&error))?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection to the server of a session broke off");
        }
    });
    Ok(sender)
}

/// Makes the request to the driver: with the token of its server, and without whatever else the client sent for the gateway.
pub(crate) fn outgoing<B>(request: Request<B>, address: SocketAddr, token: &str) -> Option<Request<RelayBody>>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let (parts, body) = request.into_parts();
    let path = PathAndQuery::try_from(parts.uri.path()).ok()?;
    let uri = Uri::builder().scheme(Scheme::HTTP).authority(address.to_string()).path_and_query(path).build().ok()?;
    // The trailers of a request mean nothing to gRPC.
    let data = body.into_data_stream().map_ok(Frame::data).map_err(Into::into);
    let mut outgoing = Request::new(StreamBody::new(data).boxed_unsync());
    *outgoing.method_mut() = parts.method;
    *outgoing.uri_mut() = uri;
    let passed = parts.headers.iter().filter(|(name, _)| is_of_request(name));
    outgoing.headers_mut().extend(passed.map(|(name, value)| (name.clone(), value.clone())));
    outgoing.headers_mut().insert(TE, http::HeaderValue::from_static("trailers"));
    let mut token = http::HeaderValue::try_from(format!("Bearer {token}")).ok()?;
    token.set_sensitive(true);
    outgoing.headers_mut().insert(http::header::AUTHORIZATION, token);
    Some(outgoing)
}

fn is_of_request(name: &HeaderName) -> bool {
    [CONTENT_TYPE, USER_AGENT].contains(name) || is_of_grpc(name)
}

fn is_of_grpc(name: &HeaderName) -> bool {
    name.as_str().starts_with("grpc-")
}

/// Returns the response for the client.
pub(crate) fn answered(response: Response<Incoming>, held: Held) -> Response<RelayBody> {
    if response.status() != StatusCode::OK || !is_grpc(response.headers()) {
        let status = response.status();
        return Status::unavailable(format!("the driver of the session answered with {status}, which isn't gRPC"))
            .response();
    }
    let (parts, body) = response.into_parts();
    // Headers with a status are trailers, too. They have to end the stream: clients take an empty frame after them for a broken one.
    let body = if parts.headers.contains_key(STATUS) { empty() } else { relayed(body, held) };
    let headers = permitted(parts.headers, |name| *name == CONTENT_TYPE || is_of_grpc(name));
    let mut response = Response::new(body);
    *response.headers_mut() = headers;
    response
}

fn permitted(headers: HeaderMap, is_permitted: impl Fn(&HeaderName) -> bool) -> HeaderMap {
    let passed = headers.iter().filter(|(name, _)| is_permitted(name));
    passed.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Streams a body. Whatever ends it but the driver's own trailers ends it with a status, after which clients continue elsewhere: a
/// stream that just ends would look like one that is complete.
pub(crate) fn relayed<B>(body: B, held: Held) -> RelayBody
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: std::fmt::Display,
{
    let mut uses = interval(USE);
    uses.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let open = Some((body, held, uses));
    let frames = stream::unfold(open, move |open| async move {
        let (mut body, mut held, mut uses) = open?;
        let ended = loop {
            tokio::select! {
                biased;
                () = &mut held.end => break Status::unavailable("the gateway ends this stream: continue in another one"),
                frame = body.frame() => match frame {
                    Some(Ok(frame)) => match frame.into_trailers() {
                        Ok(trailers) => return Some((Frame::trailers(permitted(trailers, is_of_grpc)), None)),
                        Err(frame) => return Some((frame, Some((body, held, uses)))),
                    },
                    Some(Err(error)) => {
                        tracing::debug!(submission = %held.session, %error, "the response of a session's server broke off");
                        break Status::unavailable("the connection to the driver of the session broke off");
                    }
                    None => break Status::unavailable("the driver of the session ended its response without a status"),
                },
                _ = uses.tick() => {
                    let (connect, session) = (held.connect.clone(), held.session.clone());
                    tokio::spawn(async move { connect.note_use(&session).await });
                }
            }
        };
        drop(held.slots);
        Some((Frame::trailers(ended.trailers()), None))
    });
    StreamBody::new(frames.map(Ok)).boxed_unsync()
}
