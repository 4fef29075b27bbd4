//! An object store that speaks the protocol of S3 and keeps its objects in memory, with faults that are switched at run time.

mod call;
mod listing;
mod objects;
mod request;

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::StatusCode,
    response::Response,
};
use chrono::TimeDelta;
use http_body_util::BodyExt;
use tokio::{net::TcpListener, sync::watch};
use tokio_util::task::AbortOnDropHandle;

use self::{
    call::Call,
    objects::Objects,
    request::{answer, carry_out},
};

pub use self::objects::StoreFault;

struct Shared {
    objects: Mutex<Objects>,
    fault: watch::Sender<StoreFault>,
    requests: AtomicUsize,
    harmed: AtomicUsize,
}

impl Shared {
    fn objects(&self) -> MutexGuard<'_, Objects> {
        self.objects.lock().unwrap()
    }
}

/// The store. It ends when it is dropped.
pub struct ObjectStore {
    address: SocketAddr,
    shared: Arc<Shared>,
    _served: AbortOnDropHandle<()>,
}

impl ObjectStore {
    /// Starts an empty store, in which every bucket exists.
    ///
    /// # Panics
    /// No port is free.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            objects: Mutex::default(),
            fault: watch::Sender::new(StoreFault::None),
            requests: AtomicUsize::new(0),
            harmed: AtomicUsize::new(0),
        });
        let router = Router::new().fallback(serve).with_state(shared.clone());
        let served = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { address, shared, _served: AbortOnDropHandle::new(served) }
    }

    /// Returns the variables that lead a client of S3 to this store.
    pub fn environment(&self) -> Vec<(String, String)> {
        let endpoint = format!("http://{}", self.address);
        let variables = [
            ("AWS_ENDPOINT", endpoint.as_str()),
            ("AWS_ALLOW_HTTP", "true"),
            ("AWS_REGION", "us-east-1"),
            ("AWS_ACCESS_KEY_ID", "test"),
            ("AWS_SECRET_ACCESS_KEY", "test"),
        ];
        variables.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    /// Sets what happens to requests from now on.
    pub fn set(&self, fault: StoreFault) {
        self.shared.fault.send_replace(fault);
    }

    /// Returns the keys of a bucket.
    pub fn keys(&self, bucket: &str) -> Vec<String> {
        let objects = self.shared.objects();
        objects.objects.keys().filter(|(of, _)| of == bucket).map(|(_, key)| key.clone()).collect()
    }

    /// Makes all objects older.
    pub fn age(&self, by: Duration) {
        let by = TimeDelta::from_std(by).unwrap();
        self.shared.objects().objects.values_mut().for_each(|object| object.written -= by);
    }

    /// Returns how many requests came, and how many of them a fault has harmed.
    pub fn counts(&self) -> (usize, usize) {
        (self.shared.requests.load(SeqCst), self.shared.harmed.load(SeqCst))
    }
}

async fn serve(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let nth = shared.requests.fetch_add(1, SeqCst);
    let fault = *shared.fault.borrow();
    let unavailable = || {
        shared.harmed.fetch_add(1, SeqCst);
        answer(StatusCode::SERVICE_UNAVAILABLE, "<Error><Code>SlowDown</Code><Message>a fault</Message></Error>")
    };
    if fault == StoreFault::Refuse {
        return unavailable();
    }
    let (head, body) = request.into_parts();
    let Ok(body) = body.collect().await else { return Response::new(Body::empty()) };
    let call = Call::new(&head, body.to_bytes());
    if fault == StoreFault::BreakLists && call.is_next_page() {
        return unavailable();
    }
    let answered = carry_out(&mut shared.objects(), &call, fault);
    if fault == StoreFault::LoseReplies && nth % 2 == 0 { unavailable() } else { answered }
}
