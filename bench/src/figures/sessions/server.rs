//! The server of a driver, as far as its answers are moved: a small result, a large one, and one that doesn't end.

use std::{convert::Infallible, net::SocketAddr, time::Duration};

use futures::{StreamExt, stream};
use http_body_util::{BodyExt, StreamBody, combinators::UnsyncBoxBody};
use hyper::{
    HeaderMap, Request, Response,
    body::{Bytes, Frame, Incoming},
    header::HeaderValue,
    server::conn::http2,
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;

/// A message of a large result, as Spark sends them, and how many it has.
const MESSAGE: usize = 4 << 20;
const MESSAGES: usize = 1_000_000_000 / MESSAGE;
/// gRPC's length of a message, before it.
const PREFIX: usize = 5;
const SMALL: usize = 1 << 10;

pub(super) struct Driver {
    pub(super) address: SocketAddr,
}

impl Driver {
    /// Listens until this process ends.
    pub(super) async fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                // Its errors are the connection's.
                let _ = stream.set_nodelay(true);
                let mut server = http2::Builder::new(TokioExecutor::new());
                server.adaptive_window(true);
                tokio::spawn(server.serve_connection(TokioIo::new(stream), service_fn(answer)));
            }
        });
        Ok(Self { address })
    }
}

async fn answer(request: Request<Incoming>) -> Result<Response<UnsyncBoxBody<Bytes, Infallible>>, Infallible> {
    let path = request.uri().path().to_owned();
    // Its errors are the client's.
    let _ = request.into_body().collect().await;
    let data = |bytes: Bytes| Ok(Frame::data(bytes));
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from_static("0"));
    let end = stream::iter([Ok(Frame::trailers(trailers))]);
    let body = match path.rsplit('/').next() {
        Some("Large") => {
            let message = message(MESSAGE);
            stream::iter((0..MESSAGES).map(move |_| data(message.clone()))).chain(end).boxed()
        }
        Some("Open") => {
            // Spark reports the progress of a query that runs.
            let progress = stream::unfold((), move |()| async move {
                tokio::time::sleep(Duration::from_secs(2)).await;
                Some((data(message(SMALL)), ()))
            });
            stream::iter([data(message(SMALL))]).chain(progress).boxed()
        }
        _ => stream::iter([data(message(SMALL))]).chain(end).boxed(),
    };
    let mut response = Response::new(StreamBody::new(body).boxed_unsync());
    response.headers_mut().insert("content-type", HeaderValue::from_static("application/grpc"));
    Ok(response)
}

fn message(length: usize) -> Bytes {
    let mut message = vec![0; PREFIX + length];
    message[1..PREFIX].copy_from_slice(&(length as u32).to_be_bytes());
    message.into()
}
