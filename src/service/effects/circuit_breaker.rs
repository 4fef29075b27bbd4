//! Circuit breakers, one for each namespace, so that problems of one namespace with the API server or a webhook delay no other.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

const FIRST: Duration = Duration::from_millis(250);
const LONGEST: Duration = Duration::from_secs(4);

/// How the call failed that opened a breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::service) enum Failure {
    /// No answer: other calls would most likely get none either.
    Unanswered,
    /// The API server or a webhook denied the call for now, possibly because of this one object.
    Denied,
}

/// The breakers that are not closed.
#[derive(Debug, Default)]
pub(in crate::service) struct CircuitBreakers(Mutex<HashMap<String, Breaker>>);

#[derive(Debug)]
struct Breaker {
    failure: Failure,
    /// A write failed: only an answered write closes the breaker, because the API server serves reads without calling webhooks.
    write: bool,
    pause: Duration,
    until: Instant,
    /// The single probe of the half-open breaker is running.
    trying: bool,
    /// The number of the submission that was tried last.
    last: i64,
}

/// How the breakers restrict a claim.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::service) struct Restricted {
    /// Namespaces of which nothing may be tried now.
    pub(in crate::service) open: Vec<String>,
    /// Namespaces of which one submission may be tried: the next one after this number.
    pub(in crate::service) half_open: Vec<(String, i64)>,
}

impl CircuitBreakers {
    /// Records that a call for a namespace was answered, in whatever way. Returns whether that closes its breaker.
    pub(in crate::service) fn answered(&self, namespace: &str, write: bool) -> bool {
        self.with(|breakers| {
            let closes = breakers.get(namespace).is_some_and(|breaker| write || !breaker.write);
            closes && breakers.remove(namespace).is_some()
        })
    }

    /// Records that a call for a namespace failed. The pause grows with each failure after the end of the last pause.
    pub(in crate::service) fn failed(&self, namespace: &str, write: bool, failure: Failure) {
        let now = Instant::now();
        self.with(|breakers| match breakers.get_mut(namespace) {
            Some(Breaker { trying: false, until, .. }) if now < *until => {}
            Some(breaker) => {
                let pause = (breaker.pause * 2).min(LONGEST);
                *breaker = Breaker { failure, write, pause, until: now + pause, trying: false, last: breaker.last };
            }
            None => {
                let breaker = Breaker { failure, write, pause: FIRST, until: now + FIRST, trying: false, last: -1 };
                breakers.insert(namespace.to_owned(), breaker);
            }
        });
    }

    /// Returns the restrictions of a claim that starts now.
    pub(in crate::service) fn restricted(&self) -> Restricted {
        let now = Instant::now();
        let mut restricted = Restricted::default();
        self.with(|breakers| {
            for (namespace, breaker) in breakers {
                if breaker.trying || now < breaker.until {
                    restricted.open.push(namespace.clone());
                } else {
                    restricted.half_open.push((namespace.clone(), breaker.last));
                }
            }
        });
        restricted
    }

    /// Records that the submission with this number is tried. If the breaker of its namespace is half-open, no other one is.
    pub(in crate::service) fn begins(&self, namespace: &str, number: i64) {
        self.with(|breakers| {
            if let Some(breaker) = breakers.get_mut(namespace) {
                (breaker.trying, breaker.last) = (true, number);
            }
        });
    }

    /// Records that a try has ended, possibly without a call that proves anything: another may follow.
    pub(in crate::service) fn ends(&self, namespace: &str, number: i64) {
        self.with(|breakers| {
            if let Some(breaker) = breakers.get_mut(namespace).filter(|breaker| breaker.last == number) {
                breaker.trying = false;
            }
        });
    }

    /// Returns how long a submission of the namespace has to wait for the cluster, if calls get no answer at all.
    pub(in crate::service) fn pause(&self, namespace: &str) -> Option<Duration> {
        let unanswered = |breaker: &&Breaker| breaker.failure == Failure::Unanswered;
        self.with(|breakers| breakers.get(namespace).filter(unanswered).map(|breaker| breaker.pause))
    }

    fn with<T>(&self, act: impl FnOnce(&mut HashMap<String, Breaker>) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::{Failure::*, *};

    fn open(namespace: &str) -> Restricted {
        Restricted { open: vec![namespace.to_owned()], half_open: Vec::new() }
    }

    fn half_open(namespace: &str, last: i64) -> Restricted {
        Restricted { open: Vec::new(), half_open: vec![(namespace.to_owned(), last)] }
    }

    #[tokio::test(start_paused = true)]
    async fn an_outage_lets_one_submission_of_a_namespace_try_at_a_time() {
        let breakers = CircuitBreakers::default();
        assert_eq!(breakers.restricted(), Restricted::default());
        breakers.failed("a", true, Unanswered);
        let pause = breakers.pause("a").unwrap();
        breakers.failed("a", true, Unanswered);
        assert_eq!(breakers.pause("a"), Some(pause), "calls that were under way make it no longer");
        assert_eq!(breakers.restricted(), open("a"));
        tokio::time::advance(pause).await;
        assert_eq!(breakers.restricted(), half_open("a", -1));
        breakers.begins("a", 7);
        assert_eq!(breakers.restricted(), open("a"), "one tries");
        breakers.ends("a", 6);
        assert_eq!(breakers.restricted(), open("a"), "one that began before ends");
        breakers.ends("a", 7);
        assert_eq!(breakers.restricted(), half_open("a", 7), "it made no call");
        breakers.begins("a", 8);
        breakers.failed("a", true, Unanswered);
        breakers.ends("a", 8);
        assert_eq!((breakers.pause("a"), breakers.restricted()), (Some(pause * 2), open("a")));
        assert!(!breakers.answered("b", true), "another namespace says nothing about this one");
        assert!(breakers.answered("a", true) && !breakers.answered("a", true));
        assert_eq!(breakers.restricted(), Restricted::default());
    }

    #[tokio::test(start_paused = true)]
    async fn a_read_closes_no_breaker_that_a_write_opened() {
        let breakers = CircuitBreakers::default();
        breakers.failed("a", true, Denied);
        assert!(!breakers.answered("a", false));
        assert_eq!((breakers.restricted(), breakers.pause("a")), (open("a"), None));
        assert!(breakers.answered("a", true));
        breakers.failed("a", false, Unanswered);
        assert!(breakers.answered("a", false));
    }
}
