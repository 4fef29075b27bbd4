//! Work that must not depend on the client of a request.

use std::{future::pending, panic::resume_unwind};

use tokio::task::{JoinError, JoinHandle};
use tracing::Instrument;

use sparkgate_traces::Span;

/// Runs `work` to completion in a task of its own.
///
/// The server drops a request when its client disconnects, and doesn't poll the body of a response while the client doesn't read. A
/// database read that such a body started would keep its connection until the client disconnects.
pub async fn detached<T>(work: impl Future<Output = T> + Send + 'static) -> T
where
    T: Send + 'static,
{
    match tokio::spawn(work).await {
        Ok(result) => result,
        Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
        // The task was canceled: the process is shutting down.
        Err(_) => pending().await,
    }
}

/// Starts a task in the span of its caller, in the log and in the trace.
pub fn spawn_in_span<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    tokio::spawn(Span::current().enter(work.in_current_span()))
}

/// Runs a use case to its end in a task of its own, in the span of its caller: a client that disconnects doesn't leave it half done.
/// `broken_off` is the error of a task that ends early, as by a panic.
pub fn to_its_end<T, E>(
    work: impl Future<Output = Result<T, E>> + Send + 'static,
    broken_off: impl FnOnce(JoinError) -> E,
) -> impl Future<Output = Result<T, E>>
where
    T: Send + 'static,
    E: Send + 'static,
{
    // Spawned at once, so that the future of the caller is small.
    let task = spawn_in_span(work);
    async move { task.await.map_err(broken_off)? }
}
