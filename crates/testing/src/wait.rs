//! Waiting for a state. The limits are generous: they end a test that would never end, and say nothing about speed.

use std::{fmt::Debug, time::Duration};

use tokio::time::{Instant, sleep};

/// The longest wait.
const LIMIT: Duration = Duration::from_secs(300);
const PAUSE: Duration = Duration::from_millis(20);

/// Waits until a condition is true.
///
/// # Panics
/// It isn't within five minutes; the message has `what`.
pub async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !is_so().await {
        assert!(Instant::now() < deadline, "not within {LIMIT:?}: {what}");
        sleep(PAUSE).await;
    }
}

/// Repeats a call until it succeeds, and returns its value.
///
/// # Panics
/// It doesn't within five minutes; the message has its last error.
pub async fn eventually<T, E, F>(attempt: impl Fn() -> F) -> T
where
    E: Debug,
    F: Future<Output = Result<T, E>>,
{
    let deadline = Instant::now() + LIMIT;
    loop {
        match attempt().await {
            Ok(value) => return value,
            Err(error) => assert!(Instant::now() < deadline, "after {LIMIT:?} still {error:?}"),
        }
        sleep(PAUSE).await;
    }
}
