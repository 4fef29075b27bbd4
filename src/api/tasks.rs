//! Work of a request in tasks of its own.

use tokio::task::JoinHandle;
use tracing::Instrument;

use super::problem::Problem;
use crate::traces::Span;

/// Starts a task in the span of its caller, in the log and in the trace.
pub(super) fn spawn<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    tokio::spawn(Span::current().enter(future.in_current_span()))
}

/// Runs a use case in its own task, so that a client that disconnects can't leave it half done.
pub(in crate::api) async fn to_its_end<T, E>(
    work: impl Future<Output = Result<T, E>> + Send + 'static,
) -> Result<T, Problem>
where
    T: Send + 'static,
    E: Send + 'static,
    Problem: From<E>,
{
    Ok(spawn(work).await.map_err(|error| Problem::broken_off(error.to_string()))??)
}
