//! A driver: a server of HTTP/2 that answers as gRPC servers do, or as none does.

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use axum::body::Bytes;
use futures::{StreamExt, stream};
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::{BodyExt, Empty, StreamBody, combinators::UnsyncBoxBody};
use hyper::{
    body::{Frame, Incoming},
    server::conn::http2,
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::{net::TcpListener, task::JoinSet};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

type Seen = Arc<Mutex<Vec<(String, HeaderMap)>>>;
type Body = UnsyncBoxBody<Bytes, String>;

pub(super) struct Driver {
    pub(super) address: SocketAddr,
    seen: Seen,
    accepted: Arc<AtomicUsize>,
    stop: CancellationToken,
    _serving: AbortOnDropHandle<()>,
}

impl Driver {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, seen, stop) = (listener.local_addr().unwrap(), Seen::default(), CancellationToken::new());
        let accepted = Arc::default();
        let serving = tokio::spawn(serve(listener, seen.clone(), Arc::clone(&accepted), stop.clone()));
        Self { address, seen, accepted, stop, _serving: AbortOnDropHandle::new(serving) }
    }

    /// Returns the paths and headers of the requests since the last call.
    pub(super) fn seen(&self) -> Vec<(String, HeaderMap)> {
        std::mem::take(&mut self.seen.lock().unwrap())
    }

    /// Returns how many connections it has accepted.
    pub(super) fn accepted(&self) -> usize {
        self.accepted.load(Relaxed)
    }

    /// Ends it: nothing listens at its address any more.
    pub(super) fn stop(self) {
        self.stop.cancel();
    }
}

async fn serve(listener: TcpListener, seen: Seen, accepted: Arc<AtomicUsize>, stop: CancellationToken) {
    let mut connections = JoinSet::new();
    while let Some(Ok((stream, _))) = stop.run_until_cancelled(listener.accept()).await {
        accepted.fetch_add(1, Relaxed);
        let seen = seen.clone();
        let service = service_fn(move |request| answer(request, seen.clone()));
        connections.spawn(http2::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service));
    }
}

async fn answer(request: Request<Incoming>, seen: Seen) -> Result<Response<Body>, Infallible> {
    let path = request.uri().path().to_owned();
    seen.lock().unwrap().push((path.clone(), request.headers().clone()));
    let sent = request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let data = |bytes: &[u8]| Ok(Frame::data(Bytes::copy_from_slice(bytes)));
    let trailers = || {
        let evil = [("grpc-status", "0"), ("x-evil", "1")];
        Ok(Frame::trailers(
            evil.map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value))).into_iter().collect(),
        ))
    };
    let body = match path.rsplit('/').next().unwrap_or_default() {
        "Broken" => stream::iter([data(b"x"), Err("broken".to_owned())]).boxed(),
        "NoStatus" => stream::iter([data(b"x")]).boxed(),
        "Refused" => return Ok(refused()),
        "Flood" => stream::repeat(()).map(move |()| data(&[0; 1 << 16])).boxed(),
        "Hang" => stream::iter([data(b"first")]).chain(stream::pending()).boxed(),
        _ => stream::iter([data(&sent), data(b", executed"), trailers()]).boxed(),
    };
    let media = if path.ends_with("Html") { "text/html" } else { "application/grpc" };
    let mut response = Response::new(StreamBody::new(body).boxed_unsync());
    response.headers_mut().insert("content-type", HeaderValue::from_static(media));
    response.headers_mut().insert("set-cookie", HeaderValue::from_static("evil=1"));
    Ok(response)
}

/// Headers that are trailers, too: how servers refuse a request before they have begun a response.
fn refused() -> Response<Body> {
    let response = Response::builder().header("content-type", "application/grpc");
    let response = response.header("grpc-status", "13").header("grpc-message", "no such table");
    response.body(Empty::new().map_err(|never| match never {}).boxed_unsync()).unwrap()
}
