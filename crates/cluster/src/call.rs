//! Runs calls of the API server, each with a timeout and a span, and sorts their failures.

use std::time::Duration;

use sparkgate_traces::{KeyValue, Span, SpanKind, attribute};

use super::{answer::sort, error::Error};

#[derive(Debug, thiserror::Error)]
#[error("no answer within {0:?}")]
struct TimedOut(Duration);

/// Runs one call with its own timeout (kube's client has none) and classifies its failure. The call's span has the name of the
/// action without that of the object.
pub(super) async fn call<T>(
    action: impl Into<String> + Send,
    limit: Duration,
    call: impl Future<Output = kube::Result<T>> + Send,
) -> Result<T, Error> {
    let action = action.into();
    let span = span(&action);
    let answer = in_time(&action, limit, call).await.and_then(|answer| answer.map_err(|error| sort(action, error)));
    if let Err(error) = &answer {
        span.fail(error.kind());
    }
    answer
}

fn span(action: &str) -> Span {
    if !Span::current().is_recorded() {
        return Span::default();
    }
    let name: Vec<_> = action.split(' ').filter(|word| !word.contains('/')).collect();
    Span::child(name.join(" "), SpanKind::Client, || [KeyValue::new(attribute::PEER_SERVICE, "kubernetes")])
}

/// Waits for a future with its own timeout.
pub(super) async fn in_time<T>(
    action: &str,
    limit: Duration,
    waiting: impl Future<Output = T> + Send,
) -> Result<T, Error> {
    let late = |_| Error::Unavailable { action: action.to_owned(), source: Box::new(TimedOut(limit)) };
    tokio::time::timeout(limit, waiting).await.map_err(late)
}

/// Reads an object that may not exist. Only an answer of Kubernetes that names this very object proves that it doesn't.
pub(super) async fn find<T>(
    action: impl Into<String> + Send,
    limit: Duration,
    name: &str,
    get: impl Future<Output = kube::Result<T>> + Send,
) -> Result<Option<T>, Error> {
    match call(action, limit, get).await {
        Err(Error::NotFound { name: missing, .. }) if missing == name => Ok(None),
        found => found.map(Some),
    }
}
