//! Compares the model cluster with a kube-apiserver.

use std::{collections::HashMap, time::Duration};

use futures::StreamExt;
use sparkgate::{
    cluster::{Error, WatchReport, labels},
    submission::{Container, Phase, PodObservation, SubmissionId, engine::Found},
};
use tokio::time::{Instant, sleep, timeout};

use super::kubernetes::{Kubernetes, config_map, driver};
use crate::{
    cluster::{Body, COLLECTED_WITHIN, Cluster, GRACE, Pod, Whose, uid_number},
    rng::Rng,
};

const HISTORIES: u64 = 35;
const OPERATIONS: usize = 60;
const NAMES: usize = 3;
/// How long a server may take for its own background work.
const PATIENCE: Duration = Duration::from_secs(60);

/// Both clusters, and the mapping between them.
struct Both {
    rng: Rng,
    seed: u64,
    now: u64,
    model: Cluster,
    real: Kubernetes,
    ids: Vec<SubmissionId>,
    /// The model's uid for each real one.
    uids: HashMap<String, u64>,
    real_uids: HashMap<u64, String>,
}

#[tokio::test(flavor = "multi_thread")]
async fn the_model_cluster_answers_as_kubernetes_does() {
    for seed in 0..HISTORIES {
        let real = Kubernetes::start(&format!("model-{seed}")).await;
        let ids = (0..NAMES).map(|name| format!("driver-20260101000000-{name:04}").parse().unwrap()).collect();
        let (uids, real_uids) = (HashMap::new(), HashMap::new());
        let model = Cluster::default();
        let mut both = Both { rng: Rng::new(seed), seed, now: 0, model, real, ids, uids, real_uids };
        (0..NAMES).for_each(|_| both.model.add(1, 1));
        let mut watch = both.real.cluster.watch(Some(both.real.namespace.clone()), None);
        while !matches!(watch.next().await.unwrap().report, Some(WatchReport::Listed { .. })) {}
        for number in 0..OPERATIONS {
            let done = both.operation().await;
            both.compare(&format!("seed {seed}, operation {number}: {done}")).await;
        }
        both.compare_changes(watch).await;
        both.compare_garbage().await;
    }
}

impl Both {
    fn pod_name(&self, name: usize) -> String {
        format!("driver-{name}")
    }

    async fn operation(&mut self) -> String {
        let name = self.rng.below(NAMES as u64) as usize;
        match (self.model.names[name].pod, self.rng.below(16)) {
            (None, 0..2) => self.foreign(name).await,
            (None, _) | (Some(_), 0) => self.create(name).await,
            (Some(pod), 1..4) => self.kubelet(name, pod).await,
            (Some(pod), 4) => self.delete(name, pod).await,
            (Some(pod), 5) => self.delete_outside(name, pod).await,
            (Some(pod), 6 | 7) => self.remove_finalizer(name, pod).await,
            (Some(pod), 8) => self.take(name, pod).await,
            (Some(pod), 9) => self.restore(name, pod).await,
            (Some(pod), 14 | 15) => self.overwrite(name, pod).await,
            (Some(pod), _) => self.objects(name, pod).await,
        }
    }

    fn made(&mut self, name: usize, uid: String, whose: Whose, finalizer: bool) {
        let model = self.model.create_pod(name, whose, finalizer, self.now);
        let model = model.ok().unwrap_or_else(|| panic!("seed {}: the model has a pod already", self.seed));
        self.real_uids.insert(model, uid.clone());
        self.uids.insert(uid, model);
    }

    async fn create(&mut self, name: usize) -> String {
        let finalizer = self.rng.chance(600);
        let pod = driver(&self.real.namespace, &self.pod_name(name), &self.ids[name], finalizer);
        match self.real.cluster.create_pod(&self.real.namespace, &pod, (&self.ids[name], 1)).await {
            Ok(made) => self.made(name, made.pod_uid, Whose::Ours { attempt: 1 }, finalizer),
            Err(Error::AlreadyExists { .. }) => {
                let model = self.model.create_pod(name, Whose::Ours { attempt: 1 }, finalizer, self.now);
                assert!(model.is_err(), "seed {}: the model has no pod {name}", self.seed);
            }
            Err(error) => panic!("{error:?}"),
        }
        format!("create the pod {name}, with the finalizer: {finalizer}")
    }

    async fn foreign(&mut self, name: usize) -> String {
        let (forged, of) = (self.rng.chance(500), self.rng.below(NAMES as u64) as usize);
        let whose = if forged { Whose::Forged { of } } else { Whose::Foreign };
        let uid = self.real.foreign(&self.pod_name(name), forged.then_some(&self.ids[of])).await.unwrap();
        self.made(name, uid, whose, false);
        format!("a foreign pod {name}: {whose:?}")
    }

    /// Overwrites the labels of a pod by those of any submission, or its identity by that of any pod. The API server doesn't report
    /// a write that changes nothing.
    async fn overwrite(&mut self, name: usize, pod: Pod) -> String {
        let (place, of) = (self.pod_name(name), self.rng.below(NAMES as u64) as usize);
        if self.rng.chance(500) {
            if let Some(before) = pod.labels {
                self.real.relabel(&place, &self.ids[of]).await;
                if before != of {
                    self.model.report(name, |pod| pod.labels = Some(of));
                }
            }
            return format!("label {name} as {of}");
        }
        self.real.sign(&place, &self.ids[of], &self.pod_name(of)).await;
        if pod.identity != Some(of) {
            self.model.report(name, |pod| pod.identity = Some(of));
        }
        format!("give {name} the identity of {of}")
    }

    /// Reports the next state of a pod.
    async fn kubelet(&mut self, name: usize, pod: Pod) -> String {
        let place = self.pod_name(name);
        if !pod.bound {
            if pod.deletion.is_none() {
                self.real.bind(&place).await;
                self.model.report(name, |pod| pod.bound = true);
            }
            return format!("bind {name}");
        }
        let (phase, body, reason) = match (pod.body, self.rng.below(5)) {
            _ if pod.phase_is_final() => return String::new(),
            (_, 0) => (Phase::Failed, Body::Absent, Some("Evicted")),
            (Body::Absent, 1) => (Phase::Pending, Body::Stuck, None),
            (Body::Absent | Body::Unscheduled | Body::Stuck, _) => (Phase::Running, Body::Running, None),
            (Body::Running, 1 | 2) => (Phase::Failed, Body::Exited(3), None),
            (Body::Running | Body::Exited(_), _) => (Phase::Succeeded, Body::Exited(0), None),
        };
        self.model.report(name, |pod| (pod.phase, pod.body, pod.reason) = (phase, body, reason));
        let now = self.model.names[name].pod.unwrap();
        self.real.report(&place, &now).await;
        format!("{name} is {phase:?}, {body:?}")
    }

    /// Returns the pod's uid, or that of an earlier pod.
    fn some_uid(&mut self, pod: Pod) -> u64 {
        if self.rng.chance(200) { 1 + self.rng.below(pod.uid) } else { pod.uid }
    }

    async fn delete(&mut self, name: usize, pod: Pod) -> String {
        let uid = self.some_uid(pod);
        let real = &self.real;
        real.cluster.delete_pod(&real.namespace, &self.pod_name(name), &self.real_uids[&uid], None).await.unwrap();
        self.model.delete_pod(name, uid, None, self.now);
        format!("delete {name}, uid {uid}")
    }

    async fn delete_outside(&mut self, name: usize, pod: Pod) -> String {
        let (uid, grace) = (self.some_uid(pod), self.rng.pick(&[0, 0, 5, GRACE]));
        let real = self.real.delete(&self.pod_name(name), &self.real_uids[&uid], grace).await;
        assert_eq!(self.model.delete_pod(name, uid, Some(grace), self.now), real, "seed {}: delete {uid}", self.seed);
        format!("delete {name}, uid {uid}, grace {grace}")
    }

    async fn remove_finalizer(&mut self, name: usize, pod: Pod) -> String {
        let uid = self.some_uid(pod);
        let real = &self.real;
        real.cluster.remove_finalizer(&real.namespace, &self.pod_name(name), &self.real_uids[&uid]).await.unwrap();
        self.model.remove_finalizer(name, uid, self.now);
        format!("finalizer removed from {name}, uid {uid}")
    }

    /// Removes labels or the identity of a pod, as other users do.
    async fn take(&mut self, name: usize, pod: Pod) -> String {
        let place = self.pod_name(name);
        if self.rng.chance(500) {
            if pod.labels.is_some() {
                self.real.take(&place, "labels", labels::INSTANCE).await;
            }
            self.model.take_labels(name);
            return format!("take the labels from {name}");
        }
        if pod.identity.is_some() {
            self.real.take(&place, "annotations", labels::IDENTITY).await;
            self.model.report(name, |pod| pod.identity = None);
        }
        format!("take the identity from {name}")
    }

    async fn restore(&mut self, name: usize, pod: Pod) -> String {
        let uid = self.some_uid(pod);
        let is_whole = pod.labels == Some(name) && pod.is_signed();
        if matches!(pod.whose, Whose::Ours { .. }) && !(pod.uid == uid && is_whole) {
            let (real, id) = (&self.real, &self.ids[name]);
            let place = self.pod_name(name);
            let restored = real.cluster.restore_labels(&real.namespace, &place, &self.real_uids[&uid], (id, 1), None);
            restored.await.unwrap();
            self.model.restore_labels(name, uid, name);
        }
        format!("restore the labels of {name}, uid {uid}")
    }

    /// Creates objects of an existing pod. The result of garbage collection is compared at the end.
    async fn objects(&mut self, name: usize, pod: Pod) -> String {
        let (namespace, id) = (self.real.namespace.clone(), self.ids[name].clone());
        let (place, uid) = (self.pod_name(name), self.real_uids[&pod.uid].clone());
        let before = config_map(&format!("before-{name}"), id.as_str());
        let beside = config_map(&format!("beside-{name}"), id.as_str());
        let objects = &self.model.names[name];
        let owners = objects.before.iter().chain(&objects.beside).flatten().filter_map(|object| object.owner);
        if owners.into_iter().any(|owner| owner != pod.uid) {
            return "its objects are about to go".to_owned();
        }
        let cluster = &self.real.cluster;
        match self.rng.below(4) {
            0 => {
                cluster.create_before_pod(&namespace, &before, &id).await.unwrap();
                self.model.create_before(name, 0);
                format!("create the object before {name}")
            }
            1 => {
                let real = cluster.give_to_pod(&namespace, &before, &place, &uid).await;
                assert_eq!(self.model.hand_over(name, 0, pod.uid, self.now), real.is_ok(), "{real:?}");
                assert!(matches!(real, Ok(()) | Err(Error::NotFound { .. })), "{real:?}");
                format!("hand the object over to {name}")
            }
            2 => {
                let real = cluster.create_owned(&namespace, &beside, (&place, &uid), false).await;
                let model = self.model.create_beside(name, 0, pod.uid, false, self.now);
                assert_eq!(model.is_ok(), real.is_ok(), "{real:?}");
                format!("create the object beside {name}")
            }
            _ => {
                cluster.delete_before_pod(&namespace, &before, &id).await.unwrap();
                self.model.delete_before(name, 0);
                format!("delete the object before {name}")
            }
        }
    }

    /// Translates an observation into the model's terms.
    fn known(&self, seen: &PodObservation) -> (SubmissionId, u64, Phase, Body, Option<String>, [bool; 6]) {
        let body = match &seen.container {
            Container::Absent => Body::Absent,
            Container::Waiting { .. } => Body::Stuck,
            Container::Running { .. } => Body::Running,
            Container::Terminated { exit_code, .. } => Body::Exited(*exit_code),
        };
        let uid = self.uids.get(&seen.pod_uid).copied().unwrap_or_else(|| uid_number(&seen.pod_uid));
        let flags = [seen.deleting, seen.forced, seen.holds_finalizer, seen.gone, seen.genuine, seen.labelled];
        (seen.submission.clone(), uid, seen.phase, body, seen.reason.clone(), flags)
    }

    /// Compares each pod, looked up by its name.
    async fn compare(&self, done: &str) {
        for (name, id) in self.ids.iter().enumerate() {
            let real = &self.real.cluster;
            let real = real.find_driver(&self.real.namespace, &self.pod_name(name), id, 1).await.unwrap();
            let real = match &real {
                Found::There(seen) => Some(self.known(seen)),
                Found::Nothing => None,
            };
            let model = self.model.names[name].pod;
            let model = model.map(|pod| self.known(&pod.looked_up(id, name, false)));
            assert_eq!(model, real, "{done}: pod {name}");
        }
    }

    /// Compares the changes that a watch reported, in their order.
    async fn compare_changes(&self, mut watch: impl StreamExt<Item = sparkgate::cluster::WatchItem> + Unpin) {
        let ours = |change: &crate::cluster::Change| change.pod.observation(|of| self.ids[of].clone(), change.gone);
        for (number, change) in self.model.log.iter().filter_map(ours).enumerate() {
            let seen = loop {
                let shown = timeout(PATIENCE, watch.next()).await;
                match shown.unwrap_or_else(|_| panic!("seed {}: {change:?} isn't shown", self.seed)).unwrap().report {
                    Some(WatchReport::Driver(seen)) => break seen,
                    Some(WatchReport::Broken { reason }) => panic!("{reason}"),
                    _ => {}
                }
            };
            assert_eq!(self.known(&change), self.known(&seen), "seed {}, change {number}", self.seed);
        }
    }

    /// Compares what garbage collection leaves, also of objects whose owner was deleted before they were created.
    async fn compare_garbage(&mut self) {
        for name in 0..NAMES {
            if let Some(pod) = self.model.names[name].pod.filter(|_| name > 0) {
                self.delete_outside_for_good(name, pod).await;
            }
        }
        self.model.collect_garbage(self.now + COLLECTED_WITHIN);
        for name in 0..NAMES {
            for (object, model) in
                [("before", self.model.names[name].before[0]), ("beside", self.model.names[name].beside[0])]
            {
                let deadline = Instant::now() + PATIENCE;
                let wanted = model.map(|object| object.owner.map(|uid| self.real_uids[&uid].clone()));
                loop {
                    let real = self.real.owner(&format!("{object}-{name}")).await;
                    if real == wanted {
                        break;
                    }
                    assert!(Instant::now() < deadline, "seed {}: {object} of {name}: {real:?}, {wanted:?}", self.seed);
                    sleep(Duration::from_millis(50)).await;
                }
            }
        }
    }

    async fn delete_outside_for_good(&mut self, name: usize, pod: Pod) {
        let uid = self.real_uids[&pod.uid].clone();
        let real = &self.real;
        real.cluster.remove_finalizer(&real.namespace, &self.pod_name(name), &uid).await.unwrap();
        self.model.remove_finalizer(name, pod.uid, self.now);
        real.delete(&self.pod_name(name), &uid, 0).await;
        self.model.delete_pod(name, pod.uid, Some(0), self.now);
    }
}
