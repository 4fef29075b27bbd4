//! A client over TCP.

use std::net::SocketAddr;

use axum::{
    body::Bytes,
    http::{Request, header},
};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

/// A client of the gateway that remembers all replies.
pub(super) struct Caller {
    pub(super) address: SocketAddr,
    pub(super) token: String,
    /// Each with its request.
    pub(super) replies: Vec<(String, String)>,
}

impl Caller {
    /// Sends a request, again while a busy machine answers 503.
    pub(super) async fn send(
        &mut self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: String,
    ) -> (u16, String) {
        loop {
            let reply = self.try_send(method, target, headers, body.clone()).await;
            if reply.0 != 503 {
                return reply;
            }
        }
    }

    async fn try_send(&mut self, method: &str, target: &str, headers: &[(&str, &str)], body: String) -> (u16, String) {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let mut request = Request::builder().method(method).uri(target).header(header::HOST, "gateway");
        if !headers.iter().any(|(name, _)| *name == "authorization") {
            request = request.header(header::AUTHORIZATION, format!("Bearer {}", self.token));
        }
        if !body.is_empty() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(Bytes::from(body))).unwrap();
        let (head, mut body) = sender.send_request(request).await.unwrap().into_parts();
        let mut text = format!("{:?}\n", head.headers);
        // A stream of events has no end: it is left after the end of a submission.
        while let Some(frame) = body.frame().await {
            let frame = frame.unwrap().into_data().unwrap_or_default();
            text += &String::from_utf8_lossy(&frame);
            if text.contains("text/event-stream") && text.contains("FINISHED") {
                break;
            }
        }
        let status = head.status.as_u16();
        self.replies
            .push((format!("the reply {status} of {method} {}", target.split('?').next().unwrap()), text.clone()));
        (status, text)
    }

    pub(super) async fn post(&mut self, target: &str, body: &Value) -> (u16, String) {
        self.send("POST", target, &[], body.to_string()).await
    }

    pub(super) async fn get(&mut self, target: &str) -> (u16, String) {
        self.send("GET", target, &[], String::new()).await
    }
}
