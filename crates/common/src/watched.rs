//! Values of files that are read again when they change.

use std::{
    error::Error,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use sha2::{Digest, Sha256};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::error::error_chain;
use sparkgate_metrics::file_read;

/// How often files are compared with what was read. Kubernetes updates a mounted `ConfigMap` or Secret about once a minute.
pub const WATCH_PERIOD: Duration = Duration::from_secs(5);

/// The content of files, by which a change is recognized.
pub trait Content {
    /// Returns the digest of all of it.
    fn digest(&self) -> [u8; 32];
}

impl Content for String {
    fn digest(&self) -> [u8; 32] {
        Sha256::digest(self).into()
    }
}

/// The value of one or several files. Content that can't be used leaves the value as it is.
#[derive(Debug)]
pub struct Watched<T> {
    /// The name of the files in metrics.
    metric: &'static str,
    state: RwLock<State<T>>,
}

#[derive(Debug)]
struct State<T> {
    value: Arc<T>,
    /// The digest of the content that was read last, whether it could be used or not, or why it can't be read.
    seen: Result<[u8; 32], String>,
    /// Why the files as they are now can't be used.
    trouble: Option<String>,
}

impl<T> Watched<T> {
    /// Creates a value that comes from no file.
    pub fn fixed(value: T) -> Self {
        Self::with("", value, Err(String::new()))
    }

    /// Creates the value of files with this content.
    pub fn new(metric: &'static str, value: T, content: &impl Content) -> Self {
        file_read(metric, true);
        Self::with(metric, value, Ok(content.digest()))
    }

    fn with(metric: &'static str, value: T, seen: Result<[u8; 32], String>) -> Self {
        Self { metric, state: RwLock::new(State { value: Arc::new(value), seen, trouble: None }) }
    }

    /// Returns the current value.
    pub fn current(&self) -> Arc<T> {
        self.state.read().unwrap_or_else(PoisonError::into_inner).value.clone()
    }

    /// Returns why the files as they are now can't be used; the value is still that of earlier content.
    pub fn trouble(&self) -> Option<String> {
        self.state.read().unwrap_or_else(PoisonError::into_inner).trouble.clone()
    }

    /// Derives another value from the current one.
    pub fn change(&self, change: impl FnOnce(&T) -> T) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        state.value = Arc::new(change(&state.value));
    }

    /// Compares content with what was read last. Returns `None` if nothing has changed, otherwise the new value, or why the content can't
    /// be used. Content that can't be used is parsed again each time: files that it names may have changed.
    pub fn take<C: Content, E: Error + 'static>(
        &self,
        content: Result<C, E>,
        parse: impl FnOnce(C) -> Result<T, E>,
    ) -> Option<Result<Arc<T>, String>> {
        let seen = content.as_ref().map(Content::digest).map_err(|error| error_chain(error));
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let is_same = seen == state.seen;
        if is_same && state.trouble.is_none() {
            return None;
        }
        state.seen = seen;
        let taken = match content.and_then(parse) {
            Ok(value) => {
                state.value = Arc::new(value);
                Ok(state.value.clone())
            }
            Err(error) => Err(error_chain(&error)),
        };
        let trouble = taken.as_ref().err().cloned();
        if is_same && trouble == state.trouble {
            return None;
        }
        file_read(self.metric, taken.is_ok());
        state.trouble = trouble;
        Some(taken)
    }
}

/// Waits until files are compared again. Returns `false` after `stop`.
pub async fn time_to_look(stop: &CancellationToken) -> bool {
    stop.run_until_cancelled(sleep(WATCH_PERIOD)).await.is_some()
}

#[cfg(test)]
mod tests {
    use std::num::ParseIntError;

    use super::*;

    #[test]
    fn content_that_cannot_be_used_leaves_the_value_and_is_reported_once() {
        let watched = Watched::new("test", 1, &"1".to_owned());
        let take = |text: &str| watched.take(Ok::<_, ParseIntError>(text.to_owned()), |text| text.parse());
        assert_eq!(take("1"), None);
        assert!(take("x").is_some_and(|taken| taken.is_err()));
        assert_eq!((take("x"), *watched.current(), watched.trouble().is_some()), (None, 1, true));
        assert_eq!(take("2"), Some(Ok(Arc::new(2))));
        assert_eq!((*watched.current(), watched.trouble()), (2, None));
    }

    #[test]
    fn content_that_could_not_be_used_is_taken_once_what_it_names_has_changed() {
        let watched = Watched::new("test", 1, &"1".to_owned());
        let take = |named: &str| watched.take(Ok::<_, ParseIntError>("2".to_owned()), |_| named.parse());
        assert!(take("x").is_some_and(|taken| taken.is_err()));
        assert_eq!(take("x"), None);
        assert!(take("").is_some_and(|taken| taken.is_err()), "another trouble is reported");
        assert_eq!(take("2"), Some(Ok(Arc::new(2))));
        assert_eq!((take("3"), *watched.current(), watched.trouble()), (None, 2, None));
    }
}
