//! A client of Spark Connect that looks into no message.

use std::net::SocketAddr;

use anyhow::{Context, ensure};
use http_body_util::{BodyExt, Full};
use hyper::{
    Request,
    body::{Bytes, Incoming},
    client::conn::http2::{self, SendRequest},
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;

#[derive(Clone)]
pub(super) struct Client {
    address: SocketAddr,
    session: Option<String>,
}

pub(super) struct Connection<'a> {
    client: &'a Client,
    sender: SendRequest<Full<Bytes>>,
}

impl Client {
    pub(super) fn new(address: SocketAddr) -> Self {
        Self { address, session: None }
    }

    /// Returns a client that names its session, for the gateway.
    pub(super) fn of_session(address: SocketAddr, id: &str) -> Self {
        Self { address, session: Some(id.to_owned()) }
    }

    pub(super) async fn connect(&self) -> anyhow::Result<Connection<'_>> {
        let stream =
            TcpStream::connect(self.address).await.with_context(|| format!("connecting to {}", self.address))?;
        stream.set_nodelay(true)?;
        let mut client = http2::Builder::new(TokioExecutor::new());
        client.adaptive_window(true);
        let (sender, connection) = client.handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(Connection { client: self, sender })
    }
}

impl Connection<'_> {
    /// Calls a method and reads its answer to the end. Returns its bytes.
    pub(super) async fn call(&mut self, method: &str) -> anyhow::Result<usize> {
        let (mut body, mut bytes) = (self.begin(method).await?, 0);
        while let Some(frame) = body.frame().await {
            let frame = frame.with_context(|| format!("reading the answer of {method}"))?;
            bytes += frame.data_ref().map_or(0, Bytes::len);
            if let Some(trailers) = frame.trailers_ref() {
                ensure!(trailers.get("grpc-status").is_some_and(|status| status == "0"), "{method}: {trailers:?}");
            }
        }
        Ok(bytes)
    }

    /// Begins a stream that doesn't end, and reads it until this is dropped.
    pub(super) async fn stream(&mut self) -> anyhow::Result<tokio::task::JoinHandle<()>> {
        let mut body = self.begin("Open").await?;
        body.frame().await.context("the stream has ended")??;
        Ok(tokio::spawn(async move { while let Some(Ok(_)) = body.frame().await {} }))
    }

    async fn begin(&mut self, method: &str) -> anyhow::Result<Incoming> {
        let uri = format!("http://{}/spark.connect.SparkConnectService/{method}", self.client.address);
        let mut request = Request::post(uri).header("content-type", "application/grpc").header("te", "trailers");
        if let Some(session) = &self.client.session {
            request = request.header("x-sparkgate-session", session);
        }
        self.sender.ready().await?;
        let answer = self.sender.send_request(request.body(Full::new(Bytes::from_static(&[0; 64])))?).await?;
        let refused = answer.headers().get("grpc-message");
        ensure!(answer.status() == 200 && refused.is_none(), "{method}: {} {refused:?}", answer.status());
        Ok(answer.into_body())
    }
}
