//! Counts the requests of a connection, from their headers to the last byte of their responses.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{
            AtomicUsize,
            Ordering::{Acquire, Relaxed, Release},
        },
    },
    task::{Context, Poll},
};

use axum::body::HttpBody;
use futures::task::AtomicWaker;
use hyper::body::{Frame, SizeHint};

/// The requests of one connection.
#[derive(Debug, Clone, Default)]
pub(super) struct Requests(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    begun: AtomicUsize,
    ended: AtomicUsize,
    /// The connection waits for the end of a request.
    waiting: AtomicWaker,
}

/// One request, until this is dropped.
#[derive(Debug)]
pub(super) struct Request(Requests);

impl Requests {
    /// Counts a request whose headers have arrived.
    pub(super) fn begin(&self) -> Request {
        self.0.begun.fetch_add(1, Relaxed);
        Request(self.clone())
    }

    /// Returns how many have begun since the connection was made.
    pub(super) fn begun(&self) -> usize {
        self.0.begun.load(Relaxed)
    }

    /// Whether one is being answered.
    pub(super) fn any_in_flight(&self) -> bool {
        self.begun() != self.0.ended.load(Acquire)
    }

    /// Is ready while none is being answered.
    pub(super) fn poll_none_in_flight(&self, context: &Context<'_>) -> Poll<()> {
        if self.any_in_flight() {
            self.0.waiting.register(context.waker());
            // One may have ended before the waker was there.
            if self.any_in_flight() {
                return Poll::Pending;
            }
        }
        Poll::Ready(())
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        self.0.0.ended.fetch_add(1, Release);
        self.0.0.waiting.wake();
    }
}

/// The body of a response, which ends its request.
pub(super) struct InFlight<B> {
    body: B,
    _request: Request,
}

impl<B> InFlight<B> {
    pub(super) fn new(body: B, request: Request) -> Self {
        Self { body, _request: request }
    }
}

impl<B: HttpBody + Unpin> HttpBody for InFlight<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
