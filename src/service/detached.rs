//! Reads of a stream whose client may stop reading.

use std::{future::pending, panic::resume_unwind};

/// Runs `read` to its end in a task of its own.
///
/// The server doesn't poll the body of a response while its client reads nothing. A read of the database that began in such a body would
/// keep its connection until the client goes away.
pub(super) async fn detached<T>(read: impl Future<Output = T> + Send + 'static) -> T
where
    T: Send + 'static,
{
    match tokio::spawn(read).await {
        Ok(result) => result,
        Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
        // The process ends.
        Err(_) => pending().await,
    }
}
