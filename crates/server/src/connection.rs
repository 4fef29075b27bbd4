//! A TCP connection that is closed when its client sends no request or stops reading, so that it neither stays open for ever nor
//! keeps the process from ending.

use std::{
    io::{self, ErrorKind, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::{Instant, Sleep, sleep},
};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::{in_flight::Requests, request_timer::RequestTimer};

/// How long a write may wait for the client to read. Longer than a user looks at one page of a log.
const STALLED: Duration = Duration::from_secs(300);
/// The same limit while this process shuts down.
const AT_THE_END: Duration = Duration::from_secs(2);

/// A connection whose reads and writes have a time limit.
#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
    requests: RequestTimer,
    /// `None` once the process shuts down.
    stopped: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
    /// The time limit of the write that waits for the client, if one does.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl Connection {
    /// Wraps `stream`, which carries `requests`. Once `stop` is cancelled, writes have the shorter limit of the shutdown.
    pub(super) fn new(stream: TcpStream, requests: Requests, stop: CancellationToken) -> Self {
        let stopped = Some(Box::pin(stop.cancelled_owned()));
        Self { stream, requests: RequestTimer::new(requests), stopped, stalled: None }
    }

    /// Returns the first byte, which the next read returns again. `None` if the client has closed the connection.
    pub(super) async fn peek(&self) -> io::Result<Option<u8>> {
        let mut byte = [0];
        Ok((self.stream.peek(&mut byte).await? > 0).then_some(byte[0]))
    }

    /// Begins the time of the first request after a TLS handshake, which had a time limit of its own.
    pub(super) fn handshake_ended(&mut self, is_http2: bool) {
        self.requests.handshake_ended(is_http2);
    }

    fn wrote(&mut self, context: &mut Context<'_>, wrote: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if wrote.is_ready() {
            self.stalled = None;
            return wrote;
        }
        let stopped = self.stopped.as_mut().is_none_or(|stopped| stopped.as_mut().poll(context).is_ready());
        let patience = if stopped { AT_THE_END } else { STALLED };
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(patience)));
        if stopped && self.stopped.take().is_some() {
            stalled.as_mut().reset(Instant::now() + AT_THE_END);
        }
        ready!(stalled.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(ErrorKind::TimedOut, "the client doesn't read")))
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        match Pin::new(&mut self.stream).poll_read(context, buffer) {
            Poll::Pending => {
                ready!(self.requests.poll_expired(context));
                Poll::Ready(Err(io::Error::new(ErrorKind::TimedOut, "the client sends no request")))
            }
            Poll::Ready(read) => {
                self.requests.received(&buffer.filled()[before..]);
                Poll::Ready(read)
            }
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.wrote(context, wrote)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.wrote(context, wrote)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };

    use super::*;

    async fn connected(stop: &CancellationToken) -> (Connection, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (client, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
        (Connection::new(accepted.unwrap().0, Requests::default(), stop.clone()), client.unwrap())
    }

    /// Writes until the connection fails. The paused clock advances by itself while all tasks wait.
    async fn given_up_after(mut connection: Connection) -> Duration {
        let begun = Instant::now();
        loop {
            if let Err(error) = connection.write_all(&[0; 1 << 16]).await {
                assert_eq!(error.kind(), ErrorKind::TimedOut);
                return begun.elapsed();
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn connection_whose_client_does_not_read_is_closed_and_sooner_during_shutdown() {
        let stop = CancellationToken::new();
        let (connection, _client) = connected(&stop).await;
        let after = given_up_after(connection).await;
        assert!(after >= STALLED, "{after:?}");

        let (connection, _client) = connected(&stop).await;
        let writing = tokio::spawn(given_up_after(connection));
        sleep(STALLED / 2).await;
        stop.cancel();
        let after = writing.await.unwrap();
        assert!(after >= STALLED / 2 && after < STALLED, "{after:?}");
    }

    #[tokio::test]
    async fn client_that_reads_again_is_served() {
        let (mut connection, mut client) = connected(&CancellationToken::new()).await;
        let sent = vec![7; 8 << 20];
        let sending = tokio::spawn(async move {
            connection.write_all(&sent).await.unwrap();
            assert!(connection.stalled.is_none());
        });
        let mut received = vec![0; 8 << 20];
        client.read_exact(&mut received).await.unwrap();
        sending.await.unwrap();
        assert!(received.iter().all(|byte| *byte == 7));
    }
}
