//! The scheduler and the kubelet of the cluster: they watch all pods, whatever labels these have, and run each driver's
//! life as planned. Forged pods have no life: their status is forged, too.

mod api;
mod life;
pub(crate) mod logs;

use std::{
    collections::{HashMap, HashSet},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Client,
    runtime::watcher::{Config, Event, watcher},
};
use tokio::{sync::watch, task::JoinSet};

use self::{
    api::PodsApi,
    life::{Life, Sight},
    logs::NodeLogs,
};
use super::{adversary::is_forged, plan::Job, truth::Truth};

/// The driver's container, whatever other containers webhooks add.
const DRIVER: &str = "spark-kubernetes-driver";

pub(crate) struct Kubelet {
    pub(crate) client: Client,
    pub(crate) namespace: String,
    pub(crate) seed: u64,
    pub(crate) truth: Arc<Truth>,
    pub(crate) logs: Arc<NodeLogs>,
    /// While it is true, no container ends by itself.
    pub(crate) hold: watch::Receiver<bool>,
}

impl Kubelet {
    /// Runs forever; waits while the API server is down.
    pub(crate) async fn play(self) {
        let api = PodsApi::new(self.client.clone(), &self.namespace);
        let mut seen: HashMap<String, watch::Sender<Sight>> = HashMap::new();
        let mut listed: HashSet<String> = HashSet::new();
        let mut lives = JoinSet::new();
        let mut events = pin!(watcher(api.pods.clone(), Config::default()));
        while let Some(event) = events.next().await {
            match event {
                Ok(Event::Init) => listed.clear(),
                Ok(Event::InitApply(pod) | Event::Apply(pod)) if is_forged(&pod.metadata) => {}
                Ok(Event::InitApply(pod) | Event::Apply(pod)) => {
                    let uid = pod.metadata.uid.clone().unwrap_or_default();
                    listed.insert(uid.clone());
                    let deleting = pod.metadata.deletion_timestamp.is_some();
                    let forced = deleting && pod.metadata.deletion_grace_period_seconds == Some(0);
                    let bound = pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
                    let sight = Sight { bound, deleting, forced, gone: false };
                    if let Some(known) = seen.get(&uid) {
                        // The API server may decide so a moment before it binds the pod.
                        if forced && !known.borrow().deleting {
                            self.truth.note(&uid, |pod| pod.forced = true);
                        }
                        known.send_replace(sight);
                        continue;
                    }
                    let (sender, sight) = watch::channel(sight);
                    seen.insert(uid.clone(), sender);
                    lives.spawn(self.life(&api, &pod, sight).live());
                }
                Ok(Event::InitDone) => {
                    for (uid, _) in seen.iter().filter(|(uid, _)| !listed.contains(*uid)) {
                        self.gone(&seen, uid);
                    }
                }
                Ok(Event::Delete(pod)) if is_forged(&pod.metadata) => {}
                Ok(Event::Delete(pod)) => self.gone(&seen, &pod.metadata.uid.unwrap_or_default()),
                Err(_) => tokio::time::sleep(Duration::from_millis(200)).await,
            }
            while lives.try_join_next().is_some() {}
        }
    }

    fn gone(&self, seen: &HashMap<String, watch::Sender<Sight>>, uid: &str) {
        self.truth.note(uid, |pod| pod.gone = true);
        self.logs.remove(uid);
        if let Some(known) = seen.get(uid) {
            known.send_replace(Sight { bound: true, deleting: true, forced: true, gone: true });
        }
    }

    fn life(&self, api: &PodsApi, pod: &Pod, sight: watch::Receiver<Sight>) -> Life {
        let label = |key: &str| pod.metadata.labels.as_ref().and_then(|all| all.get(key)).cloned().unwrap_or_default();
        let spec = pod.spec.clone().unwrap_or_default();
        let named = spec.containers.iter().find(|container| container.name == DRIVER);
        let driver = named.or_else(|| spec.containers.last()).cloned().unwrap_or_default();
        let volumes = spec.volumes.unwrap_or_default();
        let batch = Job::number_in(&driver.args.unwrap_or_default());
        // The driver of a session has no arguments of its own.
        let values: Vec<String> = driver.env.into_iter().flatten().filter_map(|variable| variable.value).collect();
        let session = Job::number_in(&values);
        let job = batch.or(session);
        let (name, uid) = (pod.metadata.name.clone().unwrap_or_default(), pod.metadata.uid.clone().unwrap_or_default());
        let attempt = label("sparkgate.dev/attempt").parse().unwrap_or_default();
        self.truth.note(&uid, |truth| {
            truth.name.clone_from(&name);
            truth.submission = label("sparkgate.dev/submission-id");
            truth.attempt = attempt;
            truth.job = job;
        });
        Life {
            api: api.clone(),
            truth: self.truth.clone(),
            log: self.logs.add(&self.namespace, &name, &uid),
            hold: self.hold.clone(),
            sight,
            job: Job {
                session: session.is_some(),
                ..Job::planned(self.seed, job.unwrap_or(u32::MAX)).in_attempt(attempt)
            },
            name,
            uid,
            container: driver.name,
            config_maps: volumes.into_iter().filter_map(|volume| Some(volume.config_map?.name)).collect(),
        }
    }
}
