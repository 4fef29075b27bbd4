//! What really happened to each pod. The kubelet records it here before it reports it.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard},
    time::Instant,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Played {
    /// Its container ended by itself with this exit code.
    Exited(i32),
    OutOfMemory,
    Evicted,
    /// Its container ended on SIGTERM, because the pod had been deleted.
    Terminated,
    /// The same, and the scheduler had announced it.
    Preempted,
    /// The pod was deleted by force.
    ForceDeleted,
    NodeVanished,
    /// The pod was deleted before its container had started.
    NeverStarted,
}

pub(crate) const LABEL_OVERWRITTEN: &str = "a label overwritten";
pub(crate) const ANNOTATIONS_TAKEN: &str = "annotations taken off";
pub(crate) const ANNOTATIONS_OVERWRITTEN: &str = "annotations overwritten";

#[derive(Debug, Clone, Default)]
pub(crate) struct PodTruth {
    pub(crate) name: String,
    pub(crate) submission: String,
    pub(crate) attempt: i32,
    pub(crate) job: Option<u32>,
    /// Its container was started.
    pub(crate) started: bool,
    pub(crate) played: Option<Played>,
    /// The API server has the complete status.
    pub(crate) told: bool,
    /// The pod was deleted by another client, not by Sparkgate.
    pub(crate) by_others: bool,
    /// The API server shortened the grace period to zero, and the container ended nevertheless.
    pub(crate) forced: bool,
    /// The pod doesn't exist any more.
    pub(crate) gone: bool,
    /// Our finalizer was removed: the end may have passed unseen.
    pub(crate) unheld: bool,
    /// The actions of others on the pod.
    pub(crate) acts: Vec<&'static str>,
    /// When its container started, and when it ended or was removed by force.
    pub(crate) began: Option<Instant>,
    pub(crate) ended: Option<Instant>,
}

impl PodTruth {
    /// Returns whether nothing may have shown whose pod it is: its labels named another, and its identity wasn't valid. Then its
    /// finalizer is removed once it has ended.
    pub(crate) fn was_disguised(&self) -> bool {
        let without_identity = |act: &str| [ANNOTATIONS_TAKEN, ANNOTATIONS_OVERWRITTEN].contains(&act);
        self.acts.contains(&LABEL_OVERWRITTEN) && self.acts.iter().any(|act| without_identity(act))
    }
}

/// All pods that were ever seen, by uid.
#[derive(Debug, Default)]
pub(crate) struct Truth(Mutex<BTreeMap<String, PodTruth>>);

impl Truth {
    pub(crate) fn all(&self) -> MutexGuard<'_, BTreeMap<String, PodTruth>> {
        self.0.lock().unwrap()
    }

    /// Changes the record of one pod.
    pub(crate) fn note(&self, uid: &str, change: impl FnOnce(&mut PodTruth)) {
        change(self.all().entry(uid.to_owned()).or_default());
    }

    /// Returns the number of pods that satisfy the condition.
    pub(crate) fn count(&self, which: impl Fn(&PodTruth) -> bool) -> usize {
        self.all().values().filter(|pod| which(pod)).count()
    }
}
