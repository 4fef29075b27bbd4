//! One HTTP/1.1 keep-alive connection to the gateway, like a dashboard's or a scheduler's.

use std::net::SocketAddr;

use anyhow::{Context, ensure};
use http_body_util::{BodyExt, Full};
use hyper::{
    Request,
    body::{Bytes, Incoming},
    client::conn::http1::{self, SendRequest},
    header::{ACCEPT_ENCODING, AUTHORIZATION, HeaderName, HeaderValue},
};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

pub(crate) struct Connection {
    sender: SendRequest<Full<Bytes>>,
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Bytes,
}

impl Answer {
    /// Returns the body as JSON.
    pub(crate) fn json<T: serde::de::DeserializeOwned>(&self) -> anyhow::Result<T> {
        serde_json::from_slice(&self.body)
            .with_context(|| format!("reading an answer: {}", String::from_utf8_lossy(&self.body)))
    }
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).await.with_context(|| format!("connecting to {address}"))?;
        stream.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(Self { sender })
    }

    pub(crate) async fn get(&mut self, path: &str) -> anyhow::Result<Answer> {
        self.send("GET", path, Bytes::new(), &[]).await
    }

    /// Gets with credentials, if there are any: the value of `Authorization`.
    pub(crate) async fn get_as(&mut self, credentials: Option<&HeaderValue>, path: &str) -> anyhow::Result<Answer> {
        let credentials = credentials.map(|value| (AUTHORIZATION, value.clone()));
        self.send("GET", path, Bytes::new(), credentials.as_slice()).await
    }

    /// Gets a document as browsers do; the body stays compressed.
    pub(crate) async fn get_compressed(&mut self, path: &str) -> anyhow::Result<Answer> {
        self.send("GET", path, Bytes::new(), &[(ACCEPT_ENCODING, HeaderValue::from_static("gzip"))]).await
    }

    pub(crate) async fn post(&mut self, path: &str, body: Bytes) -> anyhow::Result<Answer> {
        self.send("POST", path, body, &[]).await
    }

    /// Posts with credentials, if there are any: the value of `Authorization`.
    pub(crate) async fn post_as(
        &mut self,
        credentials: Option<&HeaderValue>,
        path: &str,
        body: Bytes,
    ) -> anyhow::Result<Answer> {
        let credentials = credentials.map(|value| (AUTHORIZATION, value.clone()));
        self.send("POST", path, body, credentials.as_slice()).await
    }

    /// Opens a stream of server-sent events.
    pub(crate) async fn stream(&mut self, path: &str) -> anyhow::Result<Incoming> {
        let request = Request::builder().uri(path).header("host", "localhost").header("accept", "text/event-stream");
        self.sender.ready().await?;
        let answer = self.sender.send_request(request.body(Full::default())?).await?;
        ensure!(answer.status().is_success(), "GET {path}: {}", answer.status());
        Ok(answer.into_body())
    }

    async fn send(
        &mut self,
        method: &str,
        path: &str,
        body: Bytes,
        headers: &[(HeaderName, HeaderValue)],
    ) -> anyhow::Result<Answer> {
        let request = Request::builder().method(method).uri(path).header("host", "localhost");
        let mut request = request.header("content-type", "application/json").body(Full::new(body))?;
        request.headers_mut().extend(headers.iter().cloned());
        self.sender.ready().await?;
        let answer = self.sender.send_request(request).await.with_context(|| format!("{method} {path}"))?;
        let status = answer.status().as_u16();
        let body = answer.into_body().collect().await.with_context(|| format!("{method} {path}"))?.to_bytes();
        Ok(Answer { status, body })
    }
}
