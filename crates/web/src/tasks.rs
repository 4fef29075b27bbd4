//! Work of a request in tasks of its own.

use super::problem::Problem;
use sparkgate_service::spawn_in_span;

/// Runs a use case in its own task, so that a client that disconnects can't leave it half done.
pub async fn to_its_end<T, E>(work: impl Future<Output = Result<T, E>> + Send + 'static) -> Result<T, Problem>
where
    T: Send + 'static,
    E: Send + 'static,
    Problem: From<E>,
{
    Ok(spawn_in_span(work).await.map_err(|error| Problem::broken_off(error.to_string()))??)
}
