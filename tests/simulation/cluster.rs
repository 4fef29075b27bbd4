//! A model of the Kubernetes API, as far as the engine can tell: pods, the objects made for them, their garbage
//! collection, lists and the log that a watch reads. `cluster/pod.rs` has what a pod is.
//!
//! `differential/cluster.rs` plays the same histories to this and to a kube-apiserver.

mod pod;

pub(crate) use pod::{Body, Local, Pod, Whose, uid_number, uid_text};

use crate::store::Time;

/// How long the garbage collector takes at most. It is quicker than a pod can be scheduled and started.
pub(crate) const COLLECTED_WITHIN: Time = 800;

/// The grace period of a driver pod, in seconds.
pub(crate) const GRACE: u32 = 30;

/// One change of a pod, as a watch shows it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Change {
    pub(crate) version: u64,
    pub(crate) pod: Pod,
    pub(crate) gone: bool,
    /// It only lost its labels: a watch shows that in the same way.
    pub(crate) left: bool,
}

/// An object that was made for a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Object {
    pub(crate) owner: Option<u64>,
    /// A writer whose claim was lost made it.
    pub(crate) late: bool,
}

/// What is under the names of one submission.
#[derive(Debug, Clone, Default)]
pub(crate) struct Named {
    pub(crate) pod: Option<Pod>,
    pub(crate) before: Vec<Option<Object>>,
    pub(crate) beside: Vec<Option<Object>>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Cluster {
    /// By the number of the submission whose names they are.
    pub(crate) names: Vec<Named>,
    pub(crate) log: Vec<Change>,
    version: u64,
    /// Changes up to this version are forgotten.
    pub(crate) compacted: u64,
    last_uid: u64,
    /// Owners that are not there, and when their objects go.
    garbage: Vec<(Time, u64)>,
}

/// The name is taken.
pub(crate) struct Taken;

impl Cluster {
    pub(crate) fn add(&mut self, before: usize, beside: usize) {
        self.names.push(Named { pod: None, before: vec![None; before], beside: vec![None; beside] });
    }

    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    pub(crate) fn pod(&self, uid: u64) -> Option<&Pod> {
        self.pods().find(|pod| pod.uid == uid)
    }

    pub(crate) fn pods(&self) -> impl Iterator<Item = &Pod> {
        self.names.iter().filter_map(|named| named.pod.as_ref())
    }

    pub(crate) fn create_pod(&mut self, name: usize, whose: Whose, finalizer: bool, now: Time) -> Result<u64, Taken> {
        if self.names[name].pod.is_some() {
            return Err(Taken);
        }
        self.last_uid += 1;
        self.names[name].pod = Some(Pod::new(self.last_uid, name, whose, finalizer, now));
        self.changed(name);
        Ok(self.last_uid)
    }

    /// Deletes the pod if it has this uid, with a grace period or that of its spec. A pod without a node, or that has
    /// ended, gets none; one that is being deleted keeps its own, unless a shorter one is named. What is without grace
    /// goes at once unless a finalizer holds it. Tells whether there was something to delete.
    pub(crate) fn delete_pod(&mut self, name: usize, uid: u64, grace: Option<u32>, now: Time) -> bool {
        let Some(pod) = self.names[name].pod.as_mut().filter(|pod| pod.uid == uid) else { return false };
        let lasts = match pod.deletion {
            Some(before) => grace.filter(|grace| *grace < before),
            None if pod.bound && !pod.phase_is_final() => Some(grace.unwrap_or(GRACE)),
            None => Some(0),
        };
        if lasts.is_some() {
            pod.deletion = lasts;
            self.changed(name);
        }
        self.go_if_free(name, now);
        true
    }

    /// Takes a finalizer away: the gateway's, or everybody's.
    pub(crate) fn let_go(&mut self, name: usize, uid: u64, now: Time) -> bool {
        let Some(pod) = self.names[name].pod.as_mut().filter(|pod| pod.uid == uid && pod.finalizer) else {
            return false;
        };
        if pod.deletion == Some(0) {
            // The last change that a watch shows still has it.
            self.gone(name, now);
        } else {
            pod.finalizer = false;
            self.changed(name);
        }
        true
    }

    /// Changes the status of a pod.
    pub(crate) fn report(&mut self, name: usize, change: impl FnOnce(&mut Pod)) {
        if let Some(pod) = self.names[name].pod.as_mut() {
            change(pod);
            self.changed(name);
        }
    }

    /// Takes the labels from a pod, by which it is watched: a watch shows it for a last time, as it was.
    pub(crate) fn take_labels(&mut self, name: usize) {
        let Some(pod) = self.names[name].pod.as_mut().filter(|pod| pod.labelled) else { return };
        let before = *pod;
        pod.labelled = false;
        self.version += 1;
        self.log.push(Change { version: self.version, pod: before, gone: true, left: true });
    }

    /// Puts labels and identity back on the pod, if it has this uid.
    pub(crate) fn restore_labels(&mut self, name: usize, uid: u64) {
        if let Some(pod) = self.names[name].pod.as_mut().filter(|pod| pod.uid == uid) {
            (pod.labelled, pod.signed) = (true, true);
            self.changed(name);
        }
    }

    /// A watch shows only what has its labels.
    fn changed(&mut self, name: usize) {
        self.version += 1;
        if let Some(pod) = self.names[name].pod.filter(|pod| pod.labelled) {
            self.log.push(Change { version: self.version, pod, gone: false, left: false });
        }
    }

    fn go_if_free(&mut self, name: usize, now: Time) {
        if self.names[name].pod.is_some_and(|pod| pod.deletion == Some(0) && !pod.finalizer) {
            self.gone(name, now);
        }
    }

    fn gone(&mut self, name: usize, now: Time) {
        if let Some(pod) = self.names[name].pod.take() {
            self.version += 1;
            if pod.labelled {
                self.log.push(Change { version: self.version, pod, gone: true, left: false });
            }
            self.garbage.push((now + COLLECTED_WITHIN, pod.uid));
        }
    }

    /// Creates what a pod needs to be scheduled; one that is there is ours.
    pub(crate) fn create_before(&mut self, name: usize, place: usize) {
        self.names[name].before[place].get_or_insert(Object { owner: None, late: false });
    }

    /// `false` if there is none.
    pub(crate) fn hand_over(&mut self, name: usize, place: usize, uid: u64, now: Time) -> bool {
        let Some(object) = self.names[name].before[place].as_mut() else { return false };
        object.owner = Some(uid);
        self.watch_owner(uid, now);
        true
    }

    pub(crate) fn create_beside(
        &mut self,
        name: usize,
        place: usize,
        uid: u64,
        late: bool,
        now: Time,
    ) -> Result<(), Taken> {
        let object = self.names[name].beside[place].get_or_insert(Object { owner: Some(uid), late });
        if object.owner != Some(uid) {
            return Err(Taken);
        }
        self.watch_owner(uid, now);
        Ok(())
    }

    pub(crate) fn delete_before(&mut self, name: usize, place: usize) {
        self.names[name].before[place] = None;
    }

    /// An object may name an owner that isn't there (any more).
    fn watch_owner(&mut self, uid: u64, now: Time) {
        if self.pod(uid).is_none() {
            self.garbage.push((now + COLLECTED_WITHIN, uid));
        }
    }

    pub(crate) fn collect_garbage(&mut self, now: Time) {
        while let Some(at) = self.garbage.iter().position(|(due, _)| *due <= now) {
            let (_, owner) = self.garbage.swap_remove(at);
            let objects = self.names.iter_mut().flat_map(|named| named.before.iter_mut().chain(&mut named.beside));
            objects.filter(|object| object.is_some_and(|it| it.owner == Some(owner))).for_each(|object| *object = None);
        }
    }

    /// What happened after a version, oldest first; `None` if that is forgotten (410).
    pub(crate) fn since(&self, version: u64) -> Option<&[Change]> {
        let from = self.log.partition_point(|change| change.version <= version);
        (version >= self.compacted).then(|| &self.log[from..])
    }

    pub(crate) fn compact(&mut self) {
        self.compacted = self.version;
    }
}
