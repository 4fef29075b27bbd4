//! A minimal HTTP/1.1 client.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use serde_json::Value;

/// A reply with its head and body.
pub struct Reply {
    pub status: u16,
    /// The header lines.
    pub head: String,
    pub body: String,
}

impl Reply {
    /// Returns the document in the body.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("not JSON: {}", self.body))
    }
}

/// Sends a GET.
///
/// # Errors
/// There is no reply.
pub fn get(address: SocketAddr, path: &str) -> std::io::Result<Reply> {
    exchange(address, "GET", path, "")
}

/// Sends a POST with a JSON document.
///
/// # Errors
/// There is no reply.
pub fn post(address: SocketAddr, path: &str, body: &str) -> std::io::Result<Reply> {
    exchange(address, "POST", path, body)
}

/// Sends a POST with further headers.
pub fn post_with(address: SocketAddr, path: &str, headers: &[&str], body: &str) -> std::io::Result<Reply> {
    exchange_with(address, "POST", path, headers, body)
}

fn exchange(address: SocketAddr, method: &str, path: &str, body: &str) -> std::io::Result<Reply> {
    exchange_with(address, method, path, &[], body)
}

fn exchange_with(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[&str],
    body: &str,
) -> std::io::Result<Reply> {
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(5))?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    let length = body.len();
    let head =
        format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {length}\r\n");
    let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
    stream.write_all(format!("{head}{headers}Content-Type: application/json\r\n\r\n{body}").as_bytes())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
    let chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
    Ok(Reply { status, head: head.to_owned(), body: if chunked { unchunk(body) } else { body.to_owned() } })
}

/// Joins the chunks of a body (these tests only read ASCII in chunks).
fn unchunk(mut rest: &str) -> String {
    let mut body = String::new();
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        if size == 0 || after.len() < size {
            break;
        }
        body.push_str(&after[..size]);
        rest = after[size..].trim_start_matches("\r\n");
    }
    body
}
