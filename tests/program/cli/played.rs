//! A fake gateway: it records each request and answers as configured, or closes the connection.

use std::{
    collections::HashMap,
    io::{BufRead, BufReader, Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex, mpsc::Receiver},
    thread,
};

use serde_json::{Value, json};

/// One request.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    /// Method and path without the query: `GET /v1/submissions`.
    pub(crate) what: String,
    pub(crate) query: String,
    /// Headers by their names in lower case.
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: String,
    /// The number of earlier requests with the same `what`.
    pub(crate) before: usize,
}

impl Asked {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

/// What the gateway does with a request.
pub(crate) enum Reply {
    Answer {
        status: u16,
        headers: Vec<(&'static str, String)>,
        body: String,
    },
    /// Closes the connection without a reply.
    HangUp,
    /// A stream: the pieces as they arrive, then its proper end, or the connection breaks.
    Stream {
        content_type: &'static str,
        pieces: Receiver<String>,
        ends: bool,
    },
}

pub(crate) fn json_answer(status: u16, body: &Value) -> Reply {
    Reply::Answer { status, headers: vec![("content-type", "application/json".to_owned())], body: body.to_string() }
}

pub(crate) fn problem(status: u16, code: &str, title: &str, detail: &str) -> Reply {
    let body = json!({"type": format!("https://sparkgate.dev/problems/{code}"), "title": title, "status": status,
        "detail": detail, "code": code, "requestId": "request-1"});
    let headers = vec![("content-type", "application/problem+json".to_owned()), ("retry-after", "0".to_owned())];
    Reply::Answer { status, headers, body: body.to_string() }
}

/// Returns a stream whose pieces are all available.
pub(crate) fn stream(content_type: &'static str, pieces: &[&str], ends: bool) -> Reply {
    let (send, receive) = std::sync::mpsc::channel();
    for piece in pieces {
        send.send((*piece).to_owned()).unwrap();
    }
    Reply::Stream { content_type, pieces: receive, ends }
}

/// Returns a submission as the API shows it.
pub(crate) fn submission(id: &str, state: &str) -> Value {
    json!({"id": id, "name": "Pi", "state": state, "owner": "alice", "namespace": "spark", "attempt": 1,
        "createdAt": "2026-01-02T03:04:05.000Z"})
}

pub(crate) struct Played {
    pub(crate) address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Played {
    pub(crate) fn new(script: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        Self::at(([127, 0, 0, 1], 0).into(), script)
    }

    /// Listens on an address.
    pub(crate) fn at(address: SocketAddr, script: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (script, notes) = (Arc::new(script), Arc::clone(&asked));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (script, notes) = (Arc::clone(&script), Arc::clone(&notes));
                thread::spawn(move || serve(stream, &*script, &notes));
            }
        });
        Self { address, asked }
    }

    /// Returns the requests so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

/// Serves one request on one connection.
fn serve(stream: TcpStream, script: &dyn Fn(&Asked) -> Reply, notes: &Mutex<Vec<Asked>>) {
    let Some(mut asked) = read(&stream) else { return };
    {
        let mut notes = notes.lock().unwrap();
        asked.before = notes.iter().filter(|before| before.what == asked.what).count();
        notes.push(asked.clone());
    }
    // The client may have closed the connection.
    let _ = answer(&stream, script(&asked));
    let _ = stream.shutdown(Shutdown::Both);
}

fn read(stream: &TcpStream) -> Option<Asked> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace();
    let (method, path) = (words.next()?, words.next()?);
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let body = String::from_utf8(body).unwrap();
    Some(Asked { what: format!("{method} {path}"), query: query.to_owned(), headers, body, before: 0 })
}

fn answer(mut stream: &TcpStream, reply: Reply) -> std::io::Result<()> {
    match reply {
        Reply::HangUp => Ok(()),
        Reply::Answer { status, headers, body } => {
            write!(stream, "HTTP/1.1 {status} played\r\nconnection: close\r\ncontent-length: {}\r\n", body.len())?;
            for (name, value) in headers {
                write!(stream, "{name}: {value}\r\n")?;
            }
            write!(stream, "\r\n{body}")
        }
        Reply::Stream { content_type, pieces, ends } => {
            write!(stream, "HTTP/1.1 200 played\r\nconnection: close\r\ncontent-type: {content_type}\r\n")?;
            write!(stream, "transfer-encoding: chunked\r\n\r\n")?;
            for piece in pieces {
                write!(stream, "{:x}\r\n{piece}\r\n", piece.len())?;
            }
            if ends { write!(stream, "0\r\n\r\n") } else { Ok(()) }
        }
    }
}
