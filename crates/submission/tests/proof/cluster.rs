//! A model of the cluster: under the names of each attempt the pod, its objects, and what the watch last reported of a pod that is
//! gone.

use crate::{
    bounds::{ATTEMPTS, BESIDE},
    view::{Body, Deletion, Uid, View},
};

/// The owner of an object that was created before the pod, and not handed over to it yet.
pub(crate) const UNOWNED: Uid = Uid::MAX;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Pod {
    pub(crate) uid: Uid,
    /// It has our identity. Another user's pod has only our labels.
    pub(crate) ours: bool,
    pub(crate) finalizer: bool,
    pub(crate) deletion: Deletion,
    pub(crate) body: Body,
}

/// What exists under the names of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct Names {
    pub(crate) pod: Option<Pod>,
    /// The owner of the object that is created before the pod; 0 if it doesn't exist.
    pub(crate) before: Uid,
    /// The owners of the objects that the pod owns.
    pub(crate) beside: [Uid; BESIDE],
    /// The last observation of the pod that was deleted last.
    pub(crate) gone: Option<View>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct Cluster {
    pub(crate) names: [Names; ATTEMPTS],
    pub(crate) last_uid: Uid,
}

impl Pod {
    /// Returns the pod under the names of the attempt `name`, seen as that of the attempt `of`.
    pub(crate) fn view(&self, name: u8, of: u8, gone: bool) -> View {
        let fits = name == of;
        View {
            uid: self.uid,
            attempt: of,
            genuine: self.ours && fits,
            labelled: fits,
            finalizer: self.finalizer,
            deletion: self.deletion,
            body: self.body,
            gone,
        }
    }
}

impl Cluster {
    /// Returns what exists under the names of an attempt, counted from 1.
    pub(crate) fn at(&self, name: u8) -> &Names {
        &self.names[usize::from(name) - 1]
    }

    pub(crate) fn at_mut(&mut self, name: u8) -> &mut Names {
        &mut self.names[usize::from(name) - 1]
    }

    pub(crate) fn pod(&self, name: u8, uid: Uid) -> Option<&Pod> {
        self.at(name).pod.as_ref().filter(|pod| pod.uid == uid)
    }

    fn pod_mut(&mut self, name: u8, uid: Uid) -> Option<&mut Pod> {
        self.at_mut(name).pod.as_mut().filter(|pod| pod.uid == uid)
    }

    fn exists(&self, uid: Uid) -> bool {
        self.names.iter().any(|names| names.pod.is_some_and(|pod| pod.uid == uid))
    }

    /// Creates a pod, unless the name is taken.
    pub(crate) fn create(&mut self, name: u8, ours: bool, body: Body) -> Option<Pod> {
        if self.at(name).pod.is_some() {
            return None;
        }
        self.last_uid += 1;
        let pod = Pod { uid: self.last_uid, ours, finalizer: ours, deletion: Deletion::No, body };
        self.at_mut(name).pod = Some(pod);
        Some(pod)
    }

    /// Returns whether a pod exists that hasn't ended.
    pub(crate) fn is_full(&self) -> bool {
        let mut pods = self.names.iter().filter_map(|names| names.pod);
        pods.any(|pod| matches!(pod.body, Body::Waiting | Body::Running))
    }

    /// Deletes the pod of this uid. One that runs gets a grace period; nothing but a finalizer holds any other.
    pub(crate) fn delete(&mut self, name: u8, uid: Uid) {
        let Some(pod) = self.pod_mut(name, uid) else { return };
        if pod.deletion == Deletion::No {
            pod.deletion = if pod.body == Body::Running { Deletion::Graceful } else { Deletion::Forced };
        }
        self.go_if_free(name);
    }

    /// Ends the driver, and with it the grace period of a deletion.
    pub(crate) fn end(&mut self, name: u8, body: Body) {
        let Some(pod) = self.at_mut(name).pod.as_mut() else { return };
        pod.body = body;
        if pod.deletion == Deletion::Graceful {
            pod.deletion = Deletion::Forced;
        }
        self.go_if_free(name);
    }

    pub(crate) fn remove_finalizer(&mut self, name: u8, uid: Uid) {
        if let Some(pod) = self.pod_mut(name, uid) {
            pod.finalizer = false;
        }
        self.go_if_free(name);
    }

    /// Restores our finalizer, unless the pod is being deleted: the API server accepts no new one then.
    pub(crate) fn restore(&mut self, name: u8, uid: Uid) {
        if let Some(pod) = self.pod_mut(name, uid).filter(|pod| pod.deletion == Deletion::No) {
            pod.finalizer = true;
        }
    }

    fn go_if_free(&mut self, name: u8) {
        let names = self.at_mut(name);
        if let Some(pod) = names.pod.take_if(|pod| pod.deletion == Deletion::Forced && !pod.finalizer) {
            names.gone = Some(pod.view(name, name, true));
        }
    }

    /// Makes the pod the owner of the object that was created before it.
    pub(crate) fn hand_over(&mut self, name: u8, uid: Uid) -> bool {
        let object = &mut self.at_mut(name).before;
        if *object != 0 {
            *object = uid;
        }
        *object != 0
    }

    /// Creates an object that the pod owns. `false` if another owner has one of that name.
    pub(crate) fn create_beside(&mut self, name: u8, place: u8, uid: Uid) -> bool {
        let object = &mut self.at_mut(name).beside[usize::from(place)];
        if *object == 0 {
            *object = uid;
        }
        *object == uid
    }

    /// Returns whether there is an object whose owner doesn't exist.
    pub(crate) fn has_garbage(&self, name: u8) -> bool {
        let mut copy = *self;
        copy.collect(name);
        copy != *self
    }

    /// Deletes the objects whose owner doesn't exist.
    pub(crate) fn collect(&mut self, name: u8) {
        let Names { before, beside, .. } = *self.at(name);
        let kept = |owner: Uid| if owner == UNOWNED || self.exists(owner) { owner } else { 0 };
        let (before, beside) = (kept(before), beside.map(kept));
        let names = self.at_mut(name);
        (names.before, names.beside) = (before, beside);
    }
}
