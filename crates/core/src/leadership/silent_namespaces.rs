//! The namespaces whose calls the API server doesn't answer: each waits by itself, and then has one try.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use sparkgate_common::pauses::Pauses;

const FIRST: Duration = Duration::from_secs(30);
const LONGEST: Duration = Duration::from_secs(600);

#[derive(Debug, Default)]
pub(super) struct SilentNamespaces(Mutex<HashMap<String, Silence>>);

#[derive(Debug)]
struct Silence {
    pauses: Pauses,
    until: Instant,
}

impl SilentNamespaces {
    /// Returns those of which nothing is tried now.
    pub(super) fn paused(&self) -> Vec<String> {
        let now = Instant::now();
        self.all().iter().filter(|(_, silence)| now < silence.until).map(|(namespace, _)| namespace.clone()).collect()
    }

    /// Returns whether the last call for a namespace wasn't answered.
    pub(super) fn is_silent(&self, namespace: &str) -> bool {
        self.all().contains_key(namespace)
    }

    /// Records whether calls for a namespace were answered. The pause doubles each time that they weren't.
    pub(super) fn record_answer(&self, namespace: &str, is_answered: bool) {
        let mut all = self.all();
        if is_answered {
            all.remove(namespace);
            return;
        }
        let now = Instant::now();
        let begin = || Silence { pauses: Pauses::new(FIRST, LONGEST), until: now };
        let silence = all.entry(namespace.to_owned()).or_insert_with(begin);
        silence.until = now + silence.pauses.next_pause();
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, Silence>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_silent_namespace_waits_for_longer_each_time() {
        let silent = SilentNamespaces::default();
        for pause in [30, 60, 120, 240, 480, 600, 600] {
            silent.record_answer("a", false);
            advance(Duration::from_secs(pause - 1)).await;
            assert_eq!(silent.paused(), ["a"]);
            advance(Duration::from_secs(2)).await;
            assert!(silent.paused().is_empty() && silent.is_silent("a"), "it has one try");
        }
        silent.record_answer("a", true);
        assert!(!silent.is_silent("a"));
    }
}
