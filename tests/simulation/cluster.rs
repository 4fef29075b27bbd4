//! A model of the Kubernetes API, as far as the engine depends on it: pods, the objects created for them, their garbage
//! collection, lists, and the log that a watch reads. `cluster/pod.rs` has the model of a pod.
//!
//! `differential/cluster.rs` plays the same histories on this model and on a kube-apiserver.

mod pod;

pub(crate) use pod::{Body, Local, Pod, Whose, uid_number};

use crate::store::Time;

/// The longest time until garbage collection. It is shorter than the time to schedule and start a pod.
pub(crate) const COLLECTED_WITHIN: Time = 800;

/// The grace period of a driver pod, in seconds.
pub(crate) const GRACE: u32 = 30;

/// One change of a pod, as a watch reports it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Change {
    pub(crate) version: u64,
    pub(crate) pod: Pod,
    pub(crate) gone: bool,
    /// The pod only lost its labels: a watch reports this in the same way as a deletion.
    pub(crate) left: bool,
}

/// An object that was created for a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Object {
    pub(crate) owner: Option<u64>,
    /// It was created by a writer whose claim was lost.
    pub(crate) late: bool,
}

/// The objects under the names of one attempt.
#[derive(Debug, Clone, Default)]
pub(crate) struct Named {
    pub(crate) pod: Option<Pod>,
    pub(crate) before: Vec<Option<Object>>,
    pub(crate) beside: Vec<Option<Object>>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Cluster {
    /// By the number of the attempt's names.
    pub(crate) names: Vec<Named>,
    pub(crate) log: Vec<Change>,
    version: u64,
    /// Changes up to this version are compacted.
    pub(crate) compacted: u64,
    last_uid: u64,
    /// Owners that don't exist, and when their objects are deleted.
    garbage: Vec<(Time, u64)>,
}

/// The name is in use.
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

    /// Makes the pod that was created just now one whose driver its kubelet starts again, as a mutating webhook can.
    pub(crate) fn let_restart(&mut self, name: usize, shows_it: bool) {
        let created = self.log.last_mut().map(|change| &mut change.pod);
        for pod in self.names[name].pod.iter_mut().chain(created) {
            (pod.restarts, pod.shows_restarts) = (true, shows_it);
        }
    }

    /// Deletes the pod if it has this uid, with a grace period or with that of its spec. A pod without a node, or that
    /// has ended, gets none. A pod that is already being deleted keeps its grace period, unless a shorter one is given.
    /// A pod without a grace period disappears at once unless a finalizer holds it. Returns whether there was such a
    /// pod.
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

    /// Removes all finalizers of the pod.
    pub(crate) fn remove_finalizer(&mut self, name: usize, uid: u64, now: Time) -> bool {
        let Some(pod) = self.names[name].pod.as_mut().filter(|pod| pod.uid == uid && pod.finalizer) else {
            return false;
        };
        if pod.deletion == Some(0) {
            // The last reported change still has the finalizer.
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

    /// Removes the labels by which a pod is watched: a watch reports it for the last time, as it was.
    pub(crate) fn take_labels(&mut self, name: usize) {
        let Some(pod) = self.names[name].pod.as_mut().filter(|pod| pod.labels.is_some()) else { return };
        let before = *pod;
        pod.labels = None;
        self.version += 1;
        self.log.push(Change { version: self.version, pod: before, gone: true, left: true });
    }

    /// Writes the labels and the identity of an attempt's driver to the pod, if it has this uid.
    pub(crate) fn restore_labels(&mut self, name: usize, uid: u64, of: usize) {
        if let Some(pod) = self.names[name].pod.as_mut().filter(|pod| pod.uid == uid) {
            (pod.labels, pod.identity) = (Some(of), Some(of));
            self.changed(name);
        }
    }

    /// Reports a change, if the pod has the labels that are watched.
    fn changed(&mut self, name: usize) {
        self.version += 1;
        if let Some(pod) = self.names[name].pod.filter(|pod| pod.labels.is_some()) {
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
            if pod.labels.is_some() {
                self.log.push(Change { version: self.version, pod, gone: true, left: false });
            }
            self.garbage.push((now + COLLECTED_WITHIN, pod.uid));
        }
    }

    /// Creates an object that a pod needs to be scheduled. An existing object is ours.
    pub(crate) fn create_before(&mut self, name: usize, place: usize) {
        self.names[name].before[place].get_or_insert(Object { owner: None, late: false });
    }

    /// Makes the pod the owner of the object; `false` if there is no such object.
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

    /// Schedules garbage collection, if the owner that an object names doesn't exist (any more).
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

    /// Returns the changes after a version, oldest first; `None` if that version is compacted (410).
    pub(crate) fn since(&self, version: u64) -> Option<&[Change]> {
        let from = self.log.partition_point(|change| change.version <= version);
        (version >= self.compacted).then(|| &self.log[from..])
    }

    pub(crate) fn compact(&mut self) {
        self.compacted = self.version;
    }
}
