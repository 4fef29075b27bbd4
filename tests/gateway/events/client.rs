//! A standards-compliant client of server-sent events: a block without data is no event, but its id counts.

use std::{error::Error, net::SocketAddr};

use axum::{
    body::Bytes,
    http::{Request, Response},
};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpSocket;

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) waited: Option<String>,
    pub(crate) body: Value,
}

/// # Errors
/// The server is shutting down, or has ended.
async fn send(
    address: SocketAddr,
    target: &str,
    headers: &[(&str, String)],
    buffer: Option<u32>,
) -> Result<Response<Incoming>, Box<dyn Error + Send + Sync>> {
    let socket = TcpSocket::new_v4()?;
    if let Some(size) = buffer {
        socket.set_recv_buffer_size(size)?;
    }
    let stream = socket.connect(address).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let mut request = Request::get(target).header("host", "gateway");
    for (name, value) in headers {
        request = request.header(*name, value);
    }
    Ok(sender.send_request(request.body(Empty::<Bytes>::new())?).await?)
}

async fn json(response: Response<Incoming>) -> Answer {
    let status = response.status().as_u16();
    let waited = response.headers().get("sparkgate-wait").map(|value| value.to_str().unwrap().to_owned());
    let body = response.into_body().collect().await.unwrap().to_bytes();
    Answer { status, waited, body: serde_json::from_slice(&body).unwrap() }
}

pub(crate) async fn get(address: SocketAddr, target: &str) -> Answer {
    json(send(address, target, &[], None).await.unwrap()).await
}

#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) id: i64,
    pub(crate) data: String,
}

impl Event {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap()
    }
}

pub(crate) struct Stream {
    body: Incoming,
    text: String,
    read: usize,
    /// The last event id, which the client sends when it reconnects.
    pub(crate) last_id: Option<i64>,
}

impl Stream {
    /// # Errors
    /// A reply that is no stream; it has no status if there was no reply.
    pub(crate) async fn open(address: SocketAddr, target: &str, last_id: Option<i64>) -> Result<Self, Answer> {
        Self::with_buffer(address, target, last_id, None).await
    }

    /// Opens a stream with a small receive window: unread data soon blocks the server's writes.
    pub(crate) async fn with_buffer(
        address: SocketAddr,
        target: &str,
        last_id: Option<i64>,
        buffer: Option<u32>,
    ) -> Result<Self, Answer> {
        let mut headers = vec![("accept", "text/event-stream".to_owned())];
        headers.extend(last_id.map(|id| ("last-event-id", id.to_string())));
        let Ok(response) = send(address, target, &headers, buffer).await else {
            return Err(Answer { status: 0, waited: None, body: Value::Null });
        };
        if response.status() != 200 {
            return Err(json(response).await);
        }
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Ok(Self { body: response.into_body(), text: String::new(), read: 0, last_id })
    }

    /// Returns the first id of the stream, with or without an event.
    pub(crate) async fn begins_at(&mut self) -> i64 {
        while self.last_id.is_none() {
            assert!(self.read_on().await && self.event().is_none());
        }
        self.last_id.unwrap()
    }

    /// Returns the next event; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.event() {
                return Some(event);
            }
            if !self.read_on().await {
                return None;
            }
        }
    }

    /// Returns the next event of the data read so far.
    fn event(&mut self) -> Option<Event> {
        while let Some(length) = self.text[self.read..].find("\n\n") {
            let block = &self.text[self.read..self.read + length];
            let (mut id, mut data) = (None, None);
            for line in block.lines() {
                match line.split_once(": ") {
                    Some(("id", value)) => id = Some(value.parse().unwrap()),
                    Some(("data", value)) => data = Some(value.to_owned()),
                    Some(("event", value)) => assert_eq!(value, "state"),
                    Some(("retry", value)) => assert_eq!(value, "1000"),
                    _ => assert!(line.starts_with(':'), "{line}"),
                }
            }
            self.read += length + 2;
            self.last_id = id.or(self.last_id);
            if let (Some(id), Some(data)) = (id, data) {
                return Some(Event { id, data });
            }
        }
        None
    }

    /// Reads more data; returns whether there was any.
    async fn read_on(&mut self) -> bool {
        self.text.drain(..self.read);
        self.read = 0;
        // A broken connection ends the stream as well.
        let Some(Ok(frame)) = self.body.frame().await else { return false };
        self.text.push_str(std::str::from_utf8(frame.data_ref().unwrap()).unwrap());
        true
    }
}
