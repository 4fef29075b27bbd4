//! How long a connection may stay without a complete request.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::time::{Instant, Sleep, sleep_until};

use super::in_flight::Requests;

/// From the first byte of a request to the end of its headers. A TLS handshake has the same time.
pub(super) const HEADERS: Duration = Duration::from_secs(25);
/// Without a byte of the next request. Load balancers keep idle connections for up to 60 s, and send a request on one that
/// they believe to be open: the gateway keeps them for longer.
pub(super) const IDLE: Duration = Duration::from_secs(120);
/// What a connection of HTTP/2 begins with (RFC 9113, section 3.4).
const HTTP2: &[u8] = b"PRI ";

/// Limits the time that a connection waits for its client, while no request is in flight.
#[derive(Debug)]
pub(super) struct RequestTimer {
    requests: Requests,
    /// Those that had begun when it was last looked at.
    begun: usize,
    /// Since when a part of the headers has been there.
    headers_since: Option<Instant>,
    is_first_read: bool,
    /// Headers share a connection with other frames, and PINGs tell whether its client is there: it may only be idle.
    is_http2: bool,
    /// Runs while the connection waits.
    timer: Option<Pin<Box<Sleep>>>,
}

impl RequestTimer {
    pub(super) fn new(requests: Requests) -> Self {
        Self { requests, begun: 0, headers_since: None, is_first_read: true, is_http2: false, timer: None }
    }

    /// Forgets the bytes of a TLS handshake, which negotiated the protocol.
    pub(super) fn handshake_ended(&mut self, is_http2: bool) {
        (self.is_first_read, self.is_http2) = (false, is_http2);
        (self.headers_since, self.timer) = (None, None);
    }

    /// Takes note of bytes that have arrived.
    pub(super) fn received(&mut self, bytes: &[u8]) {
        self.forget_requests();
        if std::mem::take(&mut self.is_first_read) {
            self.is_http2 = bytes.starts_with(HTTP2);
        }
        if self.is_http2 {
            self.timer = None;
        } else if self.headers_since.is_none() && !self.requests.any_in_flight() {
            self.headers_since = Some(Instant::now());
            self.timer = None;
        }
    }

    /// Is ready when the client has had its time.
    pub(super) fn poll_expired(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.forget_requests();
        if self.requests.poll_none_in_flight(context).is_pending() {
            self.timer = None;
            return Poll::Pending;
        }
        let end = || sleep_until(self.headers_since.map_or_else(|| Instant::now() + IDLE, |since| since + HEADERS));
        ready!(self.timer.get_or_insert_with(|| Box::pin(end())).as_mut().poll(context));
        Poll::Ready(())
    }

    /// What was read before a request began was its own.
    fn forget_requests(&mut self) {
        let begun = self.requests.begun();
        if begun != self.begun {
            (self.begun, self.headers_since, self.timer) = (begun, None, None);
        }
    }
}
