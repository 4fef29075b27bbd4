//! Work that must not depend on the client of a request.

use std::{future::pending, panic::resume_unwind};

/// Runs `work` to completion in a task of its own.
///
/// The server drops a request when its client disconnects, and doesn't poll the body of a response while the client doesn't read. A
/// database read that such a body started would keep its connection until the client disconnects.
pub(super) async fn detached<T>(work: impl Future<Output = T> + Send + 'static) -> T
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
