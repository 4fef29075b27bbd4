//! What really happened to each pod: written down by the kubelet that played it, before it told anybody.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard},
    time::Instant,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Played {
    /// Its container ended by itself with this code.
    Exited(i32),
    OutOfMemory,
    Evicted,
    /// Its container ended on SIGTERM, because somebody had deleted the pod.
    Terminated,
    /// The same, and the scheduler had said that it would.
    Preempted,
    /// The pod was deleted by force.
    ForceDeleted,
    NodeVanished,
    /// The pod was deleted before its container had started.
    NeverStarted,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct PodTruth {
    pub(crate) name: String,
    pub(crate) submission: String,
    pub(crate) attempt: i32,
    pub(crate) job: Option<u32>,
    /// Its container was started.
    pub(crate) started: bool,
    pub(crate) played: Option<Played>,
    /// The API server knows all of it.
    pub(crate) told: bool,
    /// It was somebody else who deleted it, not Sparkgate.
    pub(crate) by_others: bool,
    /// The API server took the grace period away, and the container ended all the same.
    pub(crate) forced: bool,
    /// The pod isn't there any more.
    pub(crate) gone: bool,
    /// Our finalizer was taken off: the end may have passed unseen.
    pub(crate) unheld: bool,
    /// What others did to the pod.
    pub(crate) acts: Vec<&'static str>,
    /// When its container started, and when it ended or was torn away.
    pub(crate) began: Option<Instant>,
    pub(crate) ended: Option<Instant>,
}

/// All pods that were ever seen, by uid.
#[derive(Debug, Default)]
pub(crate) struct Truth(Mutex<BTreeMap<String, PodTruth>>);

impl Truth {
    pub(crate) fn all(&self) -> MutexGuard<'_, BTreeMap<String, PodTruth>> {
        self.0.lock().unwrap()
    }

    /// Changes what is known of one pod.
    pub(crate) fn note(&self, uid: &str, change: impl FnOnce(&mut PodTruth)) {
        change(self.all().entry(uid.to_owned()).or_default());
    }

    /// How many pods are as asked for.
    pub(crate) fn count(&self, which: impl Fn(&PodTruth) -> bool) -> usize {
        self.all().values().filter(|pod| which(pod)).count()
    }
}
