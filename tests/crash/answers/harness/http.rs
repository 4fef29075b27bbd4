//! A client that may hang up at any point, and knows whether its request can have arrived completely.

use std::{net::SocketAddr, time::Duration};

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: &'static str,
    pub(crate) path: String,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: String,
}

/// The point at which a client hangs up.
#[derive(Debug, Clone, Copy)]
pub(crate) enum HangUp {
    Never,
    /// After so many per cent of the request.
    Within(u64),
    /// This long after the whole request was sent.
    After(Duration),
}

#[derive(Debug, Clone)]
pub(crate) enum Got {
    /// The request can't have arrived completely.
    NotSent,
    /// The request was sent, and there is no reply.
    Nothing,
    Reply(Reply),
}

#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) retry_after: bool,
    pub(crate) replayed: bool,
    pub(crate) body: Value,
}

const LIMIT: Duration = Duration::from_secs(40);

pub(crate) async fn send(address: SocketAddr, request: &Request, hang_up: HangUp) -> Got {
    let Ok(Ok(mut stream)) = timeout(Duration::from_secs(2), TcpStream::connect(address)).await else {
        return Got::NotSent;
    };
    let Request { method, path, headers, body } = request;
    let more: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let text = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n\
         {more}Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    if let HangUp::Within(hundredths) = hang_up {
        let part = text.len() * usize::try_from(hundredths).unwrap() / 100;
        let _ = stream.write_all(&text.as_bytes()[..part.min(text.len() - 1)]).await;
        return Got::NotSent;
    }
    if stream.write_all(text.as_bytes()).await.is_err() {
        return Got::Nothing;
    }
    if let HangUp::After(time) = hang_up {
        tokio::time::sleep(time).await;
        return Got::Nothing;
    }
    let mut answer = Vec::new();
    match timeout(LIMIT, stream.read_to_end(&mut answer)).await {
        Ok(Ok(_)) => parse(&String::from_utf8_lossy(&answer)).map_or(Got::Nothing, Got::Reply),
        _ => Got::Nothing,
    }
}

/// Parses a reply; `None` if it is incomplete.
fn parse(text: &str) -> Option<Reply> {
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let head = head.to_ascii_lowercase();
    let has = |name: &str| head.contains(&format!("\r\n{name}:"));
    let (retry_after, replayed) = (has("retry-after"), has("idempotency-replayed"));
    Some(Reply { status, retry_after, replayed, body: serde_json::from_str(body).ok()? })
}
