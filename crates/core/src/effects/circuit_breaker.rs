//! Circuit breakers, one for each namespace, so that problems of one namespace with the API server or a webhook delay no other.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

const FIRST: Duration = Duration::from_millis(250);
const LONGEST: Duration = Duration::from_secs(4);
/// The same where a try is refused for the state of the namespace, which changes more rarely.
const LONGEST_REFUSED: Duration = Duration::from_secs(30);
/// The longest pause that an API server can ask for.
const LONGEST_ASKED: Duration = Duration::from_secs(60);
/// Drivers that are created one after the other before a quota counts as one that has room.
const FITTING: u32 = 8;
/// How long after its last pause a breaker still says something about a refusal.
const RECENT: Duration = Duration::from_secs(600);

/// How the call failed that opened a breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// No answer: other calls would most likely get none either.
    Unanswered,
    /// The API server or a webhook denied the call for now, possibly because of this one object.
    Denied,
    /// A quota of the namespace has no room. Other calls prove nothing about it: only the creation of drivers closes the breaker, one
    /// driver at a time.
    Full,
    /// The namespace doesn't exist, or no driver fits into its quota: other submissions would most likely be refused, too.
    Refused,
}

impl Failure {
    fn longest(self) -> Duration {
        match self {
            Self::Unanswered | Self::Denied => LONGEST,
            Self::Full | Self::Refused => LONGEST_REFUSED,
        }
    }
}

/// The breakers that are not closed.
#[derive(Debug, Default)]
pub struct CircuitBreakers(Mutex<HashMap<String, Breaker>>);

#[derive(Debug)]
struct Breaker {
    failure: Failure,
    /// A write failed: only an answered write closes the breaker, because the API server serves reads without calling webhooks.
    write: bool,
    pause: Duration,
    until: Instant,
    /// The single probe of the half-open breaker is running.
    trying: bool,
    /// Drivers that were created since the quota had no room.
    fitting: u32,
    /// The number of the submission that was tried last.
    last: i64,
}

/// How the breakers restrict a claim.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Restricted {
    /// Namespaces of which nothing may be tried now.
    pub open: Vec<String>,
    /// Namespaces of which one submission may be tried: the next one after this number.
    pub half_open: Vec<(String, i64)>,
}

impl CircuitBreakers {
    /// Records that a call for a namespace was answered, in whatever way, and whether it created a driver. Returns whether that
    /// closes its breaker.
    pub fn answered(&self, namespace: &str, write: bool, created: bool) -> bool {
        self.with(|breakers| {
            let Some(breaker) = breakers.get_mut(namespace) else { return false };
            if breaker.failure == Failure::Full {
                if !created {
                    return false;
                }
                breaker.fitting += 1;
                (breaker.pause, breaker.until) = (FIRST, Instant::now());
                if breaker.fitting < FITTING {
                    return false;
                }
            }
            (write || !breaker.write) && breakers.remove(namespace).is_some()
        })
    }

    /// Records that a call for a namespace failed. The pause grows with each failure after the end of the last pause, and is at
    /// least as long as the API server asks for.
    pub fn failed(&self, namespace: &str, write: bool, failure: Failure, asked: Option<Duration>) {
        let now = Instant::now();
        self.with(|breakers| {
            let (before, last) = match breakers.get(namespace) {
                Some(Breaker { trying: false, until, .. }) if now < *until => return,
                Some(breaker) => (breaker.pause * 2, breaker.last),
                None => (FIRST, -1),
            };
            let pause = before.min(failure.longest()).max(asked.unwrap_or_default().min(LONGEST_ASKED));
            let breaker = Breaker { failure, write, pause, until: now + pause, trying: false, fitting: 0, last };
            breakers.insert(namespace.to_owned(), breaker);
        });
    }

    /// Returns whether another submission of the namespace was refused shortly before for the state of the namespace.
    pub fn is_refused(&self, namespace: &str) -> bool {
        let is_recent = |breaker: &Breaker| breaker.failure == Failure::Refused && breaker.until.elapsed() < RECENT;
        self.with(|breakers| breakers.get(namespace).is_some_and(is_recent))
    }

    /// Records that a pod of a namespace has ended (`None`: of any one), so that its quota may have room. Returns whether a
    /// submission waits for that.
    pub fn freed(&self, namespace: Option<&str>) -> bool {
        let now = Instant::now();
        self.with(|breakers| {
            let mut any = false;
            for (name, breaker) in breakers {
                if breaker.failure == Failure::Full && namespace.is_none_or(|namespace| namespace == name) {
                    (breaker.pause, breaker.until, any) = (FIRST, now, true);
                }
            }
            any
        })
    }

    /// Returns the restrictions of a claim that starts now.
    pub fn restricted(&self) -> Restricted {
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
    pub fn begins(&self, namespace: &str, number: i64) {
        self.with(|breakers| {
            if let Some(breaker) = breakers.get_mut(namespace) {
                (breaker.trying, breaker.last) = (true, number);
            }
        });
    }

    /// Records that a try has ended, possibly without a call that proves anything: another may follow.
    pub fn ends(&self, namespace: &str, number: i64) {
        self.with(|breakers| {
            if let Some(breaker) = breakers.get_mut(namespace).filter(|breaker| breaker.last == number) {
                breaker.trying = false;
            }
        });
    }

    /// Returns how long a submission of the namespace has to wait for the cluster, if calls get no answer at all.
    pub fn pause(&self, namespace: &str) -> Option<Duration> {
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
        breakers.failed("a", true, Unanswered, None);
        let pause = breakers.pause("a").unwrap();
        breakers.failed("a", true, Unanswered, None);
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
        breakers.failed("a", true, Unanswered, None);
        breakers.ends("a", 8);
        assert_eq!((breakers.pause("a"), breakers.restricted()), (Some(pause * 2), open("a")));
        assert!(!breakers.answered("b", true, false), "another namespace says nothing about this one");
        assert!(breakers.answered("a", true, false) && !breakers.answered("a", true, false));
        assert_eq!(breakers.restricted(), Restricted::default());
    }

    #[tokio::test(start_paused = true)]
    async fn a_read_closes_no_breaker_that_a_write_opened() {
        let breakers = CircuitBreakers::default();
        breakers.failed("a", true, Denied, None);
        assert!(!breakers.answered("a", false, false));
        assert_eq!((breakers.restricted(), breakers.pause("a")), (open("a"), None));
        assert!(breakers.answered("a", true, false));
        breakers.failed("a", false, Unanswered, None);
        assert!(breakers.answered("a", false, false));
    }

    #[tokio::test(start_paused = true)]
    async fn a_full_namespace_lets_one_try_at_a_time_until_several_drivers_fitted() {
        let breakers = CircuitBreakers::default();
        breakers.failed("a", true, Full, None);
        assert!(!breakers.answered("a", true, false), "the finalizer of an ended driver says nothing about the quota");
        assert!(!breakers.freed(Some("b")) && breakers.restricted() == open("a"));
        for doubled in 1..=10 {
            tokio::time::advance(LONGEST_REFUSED).await;
            breakers.begins("a", doubled);
            breakers.failed("a", true, Full, None);
        }
        assert_eq!(breakers.restricted(), open("a"));
        tokio::time::advance(LONGEST_REFUSED - FIRST).await;
        assert_eq!(breakers.restricted(), open("a"), "a pause of half a minute");
        assert!(breakers.freed(Some("a")));
        assert_eq!(breakers.restricted(), half_open("a", 10), "a pod has ended");
        for number in 11..10 + i64::from(FITTING) {
            breakers.begins("a", number);
            assert_eq!(breakers.restricted(), open("a"), "one at a time");
            assert!(!breakers.answered("a", true, true));
            breakers.ends("a", number);
            assert_eq!(breakers.restricted(), half_open("a", number), "the next one follows at once");
        }
        assert!(breakers.answered("a", true, true));
        assert_eq!(breakers.restricted(), Restricted::default());
        assert!(!breakers.freed(None), "nothing waits");
    }

    #[tokio::test(start_paused = true)]
    async fn the_api_server_can_ask_for_a_longer_pause() {
        let breakers = CircuitBreakers::default();
        breakers.failed("a", true, Denied, Some(Duration::from_secs(7)));
        tokio::time::advance(Duration::from_millis(6900)).await;
        assert_eq!(breakers.restricted(), open("a"));
        tokio::time::advance(Duration::from_millis(200)).await;
        assert_eq!(breakers.restricted(), half_open("a", -1));
        breakers.failed("b", true, Denied, Some(Duration::from_secs(86_400)));
        tokio::time::advance(LONGEST_ASKED).await;
        assert!(breakers.restricted().open.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_for_the_state_of_a_namespace_is_known_to_those_that_follow() {
        let breakers = CircuitBreakers::default();
        breakers.failed("a", true, Denied, None);
        assert!(!breakers.is_refused("a"));
        tokio::time::advance(FIRST).await;
        breakers.failed("a", true, Refused, None);
        assert!(breakers.is_refused("a") && !breakers.is_refused("b"));
        tokio::time::advance(RECENT + LONGEST).await;
        assert!(!breakers.is_refused("a"));
        assert!(breakers.answered("a", true, true));
    }
}
