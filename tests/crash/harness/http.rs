//! An HTTP client that reports whether a request without a reply may have been carried out.

use std::{net::SocketAddr, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, Request};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use sparkgate_check::history::{self, Answer, Document};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};
use tokio_util::task::AbortOnDropHandle;

/// A gateway as its clients reach it.
#[derive(Debug, Clone)]
pub(crate) struct Gateway {
    pub(crate) address: SocketAddr,
    /// The `Authorization` header of their requests, if there are tenants.
    pub(crate) credentials: Option<String>,
}

impl Gateway {
    /// Returns the head of a request, without its end.
    pub(crate) fn head(&self, method: &str, path: &str, version: &str) -> String {
        let credentials = self.credentials.iter().map(|value| format!("Authorization: {value}\r\n"));
        let credentials: String = credentials.collect();
        format!("{method} {path} {version}\r\nHost: localhost\r\n{credentials}")
    }
}

#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) retry_after: bool,
    pub(crate) body: serde_json::Value,
}

/// The reason that there is no reply.
#[derive(Debug)]
pub(crate) enum NoReply {
    /// No process listened, so nothing was done.
    NotSent,
    /// The request was sent, and may have been carried out.
    InDoubt,
}

/// Returns what a client learned, for the history. What was created is QUEUED then, or has been; Spark's reply to a kill has no state.
pub(crate) fn answer(reply: Result<&Reply, &NoReply>) -> Answer {
    let reply = match reply {
        Ok(reply) => reply,
        Err(NoReply::NotSent) => return Answer::NotSent,
        Err(NoReply::InDoubt) => return Answer::Lost,
    };
    let id = reply.body["submissionId"].as_str().or_else(|| reply.body["id"].as_str());
    let field = |name: &str| reply.body[name].as_str();
    let has_state = reply.body["action"].as_str().is_none_or(|action| action == "CreateSubmissionResponse");
    let document = id.filter(|_| has_state).map(|id| Document {
        id: id.to_owned(),
        state: field("state").filter(|_| !reply.body["attempt"].is_null()).unwrap_or("QUEUED").to_owned(),
        attempt: reply.body["attempt"].as_i64().unwrap_or(1),
        exit_code: reply.body["exitCode"].as_i64(),
    });
    let detail = field("detail").map(str::to_owned);
    Answer::Reply(history::Reply { status: reply.status, retry_after: reply.retry_after, detail, document })
}

pub(crate) async fn post(gateway: &Gateway, path: &str, body: &str, limit: Duration) -> Result<Reply, NoReply> {
    let Ok(Ok(stream)) = timeout(Duration::from_secs(1), TcpStream::connect(gateway.address)).await else {
        return Err(NoReply::NotSent);
    };
    match timeout(limit, exchange(stream, &gateway.head("POST", path, "HTTP/1.1"), body)).await {
        Ok(Ok(text)) => parse(&text).ok_or(NoReply::InDoubt),
        Ok(Err(_)) | Err(_) => Err(NoReply::InDoubt),
    }
}

/// Reads a document; `None` without a reply.
pub(crate) async fn get(gateway: &Gateway, path: &str) -> Option<Reply> {
    let stream = TcpStream::connect(gateway.address).await.ok()?;
    let head = gateway.head("GET", path, "HTTP/1.1");
    let text = timeout(Duration::from_secs(5), exchange(stream, &head, "")).await.ok()?.ok()?;
    parse(&text)
}

async fn exchange(mut stream: TcpStream, head: &str, body: &str) -> std::io::Result<String> {
    let rest = format!("Connection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n", body.len());
    stream.write_all(format!("{head}{rest}{body}").as_bytes()).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// Parses a reply; `None` if it is incomplete.
fn parse(text: &str) -> Option<Reply> {
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let retry_after = head.to_ascii_lowercase().contains("\r\nretry-after:");
    Some(Reply { status, retry_after, body: serde_json::from_str(body).ok()? })
}

/// A reply whose body needn't be a document.
#[derive(Debug)]
pub(crate) struct Content {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// Sends a request with any body, and returns the whole reply. One that breaks off is none.
pub(crate) async fn transfer(gateway: &Gateway, method: &str, path: &str, body: Bytes) -> Result<Content, NoReply> {
    const LIMIT: Duration = Duration::from_secs(5);
    let Ok(Ok(stream)) = timeout(Duration::from_secs(1), TcpStream::connect(gateway.address)).await else {
        return Err(NoReply::NotSent);
    };
    let exchanged = async {
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let _driven = AbortOnDropHandle::new(tokio::spawn(connection));
        let mut request = Request::builder().method(method).uri(path).header("Host", "localhost");
        if let Some(credentials) = &gateway.credentials {
            request = request.header("Authorization", credentials);
        }
        let (head, body) = sender.send_request(request.body(Full::new(body)).unwrap()).await?.into_parts();
        let body = body.collect().await?.to_bytes();
        Ok::<_, hyper::Error>(Content { status: head.status.as_u16(), headers: head.headers, body })
    };
    match timeout(LIMIT, exchanged).await {
        Ok(Ok(content)) => Ok(content),
        Ok(Err(_)) | Err(_) => Err(NoReply::InDoubt),
    }
}
