//! A receiver of webhooks, which answers as a test wants.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    convert::Infallible,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{Request, State},
    http::{StatusCode, header},
    response::Response,
};
use futures::stream;
use http_body_util::BodyExt;
use serde_json::Value;
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::task::AbortOnDropHandle;

/// A message that arrived.
#[derive(Debug, Clone)]
pub struct Received {
    pub path: String,
    pub headers: BTreeMap<String, String>,
    pub body: String,
    /// The status that it was answered with; 0 if it wasn't.
    pub status: u16,
}

impl Received {
    /// Returns the document in the body.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// Returns the submission and the number of the event.
    pub fn change(&self) -> (String, i64) {
        let data = &self.json()["data"];
        (data["submissionId"].as_str().unwrap().to_owned(), data["sequence"].as_i64().unwrap())
    }
}

/// How a message is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    Status(u16),
    /// Never.
    Hang,
    /// A success with a body that doesn't end.
    Endless,
    /// A redirect to the path `/elsewhere`.
    Redirect,
}

/// Decides about a message and how often the same one came before.
type Decide = Box<dyn Fn(&Received, usize) -> Answer + Send + Sync>;

#[derive(Default)]
struct Inbox {
    received: Mutex<Vec<Received>>,
    tries: Mutex<HashMap<(String, String), usize>>,
    /// The ids of the messages that were taken, by path.
    taken: Mutex<HashMap<String, HashSet<String>>>,
}

/// A server that records messages. It ends when it is dropped.
pub struct Receiver {
    pub address: SocketAddr,
    inbox: Arc<Inbox>,
    _served: AbortOnDropHandle<()>,
}

impl Receiver {
    /// Starts a receiver that answers each message as `decide` says.
    pub async fn start(decide: impl Fn(&Received, usize) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let inbox = Arc::<Inbox>::default();
        let decide: Arc<Decide> = Arc::new(Box::new(decide));
        let router = Router::new().fallback(answer).with_state((inbox.clone(), decide));
        let served: JoinHandle<()> = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { address, inbox, _served: AbortOnDropHandle::new(served) }
    }

    /// Returns the URL of a path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Returns what arrived, in order.
    pub fn received(&self) -> Vec<Received> {
        self.inbox.received.lock().unwrap().clone()
    }

    /// Returns how many messages arrived.
    pub fn count(&self) -> usize {
        self.inbox.received.lock().unwrap().len()
    }

    /// Returns how many different messages were taken at a path.
    pub fn distinct(&self, path: &str) -> usize {
        self.inbox.taken.lock().unwrap().get(path).map_or(0, HashSet::len)
    }

    /// Returns what was taken at a path.
    pub fn taken(&self, path: &str) -> Vec<Received> {
        let is_taken = |received: &Received| received.path == path && (200..300).contains(&received.status);
        self.received().into_iter().filter(is_taken).collect()
    }
}

async fn answer(State((inbox, decide)): State<(Arc<Inbox>, Arc<Decide>)>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let text = |value: &header::HeaderValue| value.to_str().unwrap().to_owned();
    let mut received = Received {
        path: head.uri.path().to_owned(),
        headers: head.headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect(),
        body: String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap(),
        status: 0,
    };
    let id = received.headers.get("webhook-id").cloned().unwrap_or_default();
    let before = {
        let mut tries = inbox.tries.lock().unwrap();
        let tries = tries.entry((received.path.clone(), id.clone())).or_default();
        *tries += 1;
        *tries - 1
    };
    let answer = decide(&received, before);
    received.status = match answer {
        Answer::Status(status) => status,
        Answer::Hang => 0,
        Answer::Endless => 200,
        Answer::Redirect => 307,
    };
    let status = received.status;
    if (200..300).contains(&status) {
        inbox.taken.lock().unwrap().entry(received.path.clone()).or_default().insert(id);
    }
    inbox.received.lock().unwrap().push(received);
    let response = Response::builder();
    match answer {
        Answer::Status(_) => response.status(status).body(Body::from("<garbage>")).unwrap(),
        Answer::Hang => std::future::pending().await,
        Answer::Endless => {
            let chunks = stream::repeat_with(|| Ok::<_, Infallible>(Bytes::from_static(&[b'x'; 4096])));
            response.body(Body::from_stream(chunks)).unwrap()
        }
        Answer::Redirect => response
            .status(StatusCode::TEMPORARY_REDIRECT)
            .header(header::LOCATION, "/elsewhere")
            .body(Body::empty())
            .unwrap(),
    }
}
