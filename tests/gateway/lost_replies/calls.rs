//! Counts the calls of a life by what they are, and says which of them loses its reply.

use std::{
    collections::BTreeMap,
    fmt,
    sync::Mutex,
    sync::atomic::{AtomicBool, Ordering::SeqCst},
};

/// One call of a life: what it is, and which of its kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Call {
    pub(crate) what: String,
    pub(crate) nth: usize,
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 160;
        write!(f, "no. {} of `{}`", self.nth, self.what.chars().take(SHOWN).collect::<String>())
    }
}

/// The calls of one life, from when it begins.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    made: Mutex<BTreeMap<String, usize>>,
    lose: Option<Call>,
    begun: AtomicBool,
    lost: AtomicBool,
    /// The driver pods that the API server created, by name.
    pods: Mutex<BTreeMap<String, usize>>,
}

impl Calls {
    pub(crate) fn losing(lose: Option<Call>) -> Self {
        Self { lose, ..Self::default() }
    }

    /// Counts from now on.
    pub(crate) fn begin(&self) {
        self.begun.store(true, SeqCst);
    }

    /// Counts a call. Returns whether it is the one whose reply is lost.
    pub(crate) fn made(&self, what: &str) -> bool {
        if !self.begun.load(SeqCst) {
            return false;
        }
        let mut made = self.made.lock().unwrap();
        let times = made.entry(what.to_owned()).or_default();
        *times += 1;
        let is_it = self.lose.as_ref().is_some_and(|call| call.what == what && call.nth == *times);
        self.lost.fetch_or(is_it, SeqCst);
        is_it
    }

    pub(crate) fn created_pod(&self, name: &str) {
        *self.pods.lock().unwrap().entry(name.to_owned()).or_default() += 1;
    }

    pub(crate) fn all(&self) -> BTreeMap<String, usize> {
        self.made.lock().unwrap().clone()
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(SeqCst)
    }

    pub(crate) fn pods(&self) -> BTreeMap<String, usize> {
        self.pods.lock().unwrap().clone()
    }
}
