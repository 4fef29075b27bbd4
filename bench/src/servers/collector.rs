//! A collector of traces, which takes everything and keeps nothing.

use std::{convert::Infallible, net::Ipv4Addr};

use anyhow::Context;
use http_body_util::{BodyExt, Empty};
use hyper::{
    Request, Response,
    body::{Bytes, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{net::TcpListener, task::JoinHandle};

/// The collector. Its server ends when this is dropped.
pub(crate) struct Collector {
    url: String,
    server: JoinHandle<()>,
}

impl Collector {
    pub(crate) async fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("listening")?;
        let url = format!("http://{}", listener.local_addr()?);
        Ok(Self { url, server: tokio::spawn(serve(listener)) })
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn serve(listener: TcpListener) {
    while let Ok((stream, _)) = listener.accept().await {
        let service = service_fn(async |request: Request<Incoming>| {
            let _ = request.into_body().collect().await;
            Ok::<_, Infallible>(Response::new(Empty::<Bytes>::new()))
        });
        tokio::spawn(async move {
            let _ =
                http1::Builder::new().timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), service).await;
        });
    }
}
