//! Other users of the namespace, who may do anything to our pods: they remove labels, annotations and finalizers,
//! delete and replace drivers, and create pods that resemble ours. Each action is recorded before it is done.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard},
    time::{Duration, Instant},
};

use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api,
    api::{DeleteParams, ObjectMeta, Patch, PatchParams, PostParams, Preconditions},
};
use serde_json::{Value, json};
use sparkgate_testing::dice::Dice;
use sqlx::{FromRow, PgPool};
use tokio::time::timeout;

use super::{
    truth::{ANNOTATIONS_OVERWRITTEN, ANNOTATIONS_TAKEN, LABEL_OVERWRITTEN, PodTruth, Truth},
    world::World,
};

/// The annotation of pods that the program didn't create. The program ignores it.
pub(crate) const FORGED: &str = "crash.example.org/forged";
const FINALIZER: &str = "sparkgate.dev/outcome";
const SUBMISSION: &str = "sparkgate.dev/submission-id";
const ATTEMPT: &str = "sparkgate.dev/attempt";
const INSTANCE: &str = "sparkgate.dev/instance";
const ROLE: &str = "spark-role";
const LIMIT: Duration = Duration::from_secs(5);

pub(crate) fn is_forged(metadata: &ObjectMeta) -> bool {
    metadata.annotations.as_ref().is_some_and(|all| all.contains_key(FORGED))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    /// Removes one of our labels.
    Prune,
    /// Removes all our labels, and `spark-role`.
    PruneAll,
    /// Sets one of our labels to another value, such as another submission's.
    Overwrite,
    /// Removes all annotations.
    Annotations,
    /// Removes our finalizer.
    Finalizer,
    Delete,
    ForceDelete,
    /// Removes the finalizer and deletes the pod by force.
    Tear,
    /// The same, and creates a copy of the pod under its name, which reports an end.
    Replace,
    /// Creates a pod under the name of a queued submission's driver.
    Usurp,
    /// Creates a pod with the labels of a live or queued submission, which reports an end.
    ForgeDriver,
    /// Creates a pod with the labels of a live or queued submission, the annotations of another's driver, and our finalizer.
    Impersonate,
    /// Overwrites the annotations of a driver by those of another's.
    Swap,
    /// Creates executors of a live submission, which report an end: one without an owner, one owned by a pod that doesn't exist,
    /// and one owned by the driver of another submission.
    ForgeExecutors,
}

const ACTS: [(u64, Act); 14] = [
    (14, Act::Prune),
    (8, Act::PruneAll),
    (14, Act::Overwrite),
    (10, Act::Annotations),
    (8, Act::Finalizer),
    (6, Act::Delete),
    (6, Act::ForceDelete),
    (8, Act::Tear),
    (8, Act::Replace),
    (4, Act::Usurp),
    (14, Act::ForgeDriver),
    (10, Act::Impersonate),
    (8, Act::Swap),
    (10, Act::ForgeExecutors),
];

/// The adversary's actions that concern no pod of the program.
#[derive(Debug, Default)]
pub(crate) struct Deeds {
    /// The uids of the pods that it created.
    pub(crate) forged: BTreeSet<String>,
    /// Submissions for whose driver's name it created a pod.
    pub(crate) usurped: BTreeSet<String>,
    /// How often it did each action.
    pub(crate) counts: BTreeMap<String, usize>,
}

#[derive(Clone)]
pub(crate) struct Adversary {
    pods: Api<Pod>,
    namespace: String,
    pool: PgPool,
    truth: Arc<Truth>,
    deeds: Arc<Mutex<Deeds>>,
}

/// A submission that has not ended.
#[derive(Debug, Clone, FromRow)]
struct Target {
    id: String,
    attempt: i32,
    pod: Option<String>,
    uid: Option<String>,
    instance: String,
}

const TARGETS: &str = "SELECT s.id, attempt, names->>'driverPod' AS pod, pod_uid AS uid, i.id::text AS instance
     FROM submissions s CROSS JOIN installation i
     WHERE state IN ('QUEUED', 'LAUNCHING', 'PENDING', 'RUNNING') AND ($1 IS NULL OR (pod_uid IS NOT NULL) = $1)
         AND namespace = $2
     ORDER BY number DESC LIMIT 60";

impl Adversary {
    pub(crate) fn new(world: &World) -> Self {
        let pods = Api::namespaced(world.client.clone(), &world.namespace);
        let namespace = world.namespace.clone();
        Self { pods, namespace, pool: world.pool.clone(), truth: world.truth.clone(), deeds: world.deeds.clone() }
    }

    /// Does one action to the pods of one submission, if it has any. No action is retried: servers may be down.
    pub(crate) async fn act(&self, dice: &mut Dice) {
        let act = dice.weighed(&ACTS);
        let has_pod = match act {
            Act::Usurp => Some(false),
            Act::ForgeDriver | Act::Impersonate => None,
            _ => Some(true),
        };
        let targets = sqlx::query_as::<_, Target>(TARGETS).bind(has_pod).bind(&self.namespace).fetch_all(&self.pool);
        let Ok(targets) = targets.await else { return };
        let with_pod = |target: &&Target| {
            let known = |uid| self.truth.all().get(uid).is_some_and(|pod: &PodTruth| pod.job.is_some());
            target.uid.as_ref().is_some_and(known)
        };
        let targets: Vec<_> = targets.iter().filter(|target| has_pod != Some(true) || with_pod(target)).collect();
        let Some(target) = dice.pick(&targets).map(|target| (*target).clone()) else { return };
        *self.deeds().counts.entry(format!("{act:?}")).or_default() += 1;
        let _ = timeout(LIMIT * 3, self.carry_out(act, &target, dice)).await;
    }

    async fn carry_out(&self, act: Act, target: &Target, dice: &mut Dice) {
        match act {
            Act::Prune => {
                let label = *dice.pick(&[SUBMISSION, ATTEMPT, INSTANCE, ROLE]).unwrap();
                self.change(target, "a label taken off", json!({"labels": {label: null}})).await;
            }
            Act::PruneAll => {
                let none = json!({"labels": {SUBMISSION: null, ATTEMPT: null, INSTANCE: null, ROLE: null}});
                self.change(target, "all labels taken off", none).await;
            }
            Act::Overwrite => {
                let values = [
                    (SUBMISSION, "driver-20260101000000-0001".to_owned()),
                    (SUBMISSION, self.another(target, dice).await),
                    (ATTEMPT, "7".to_owned()),
                    (INSTANCE, uuid::Uuid::nil().to_string()),
                    (ROLE, "executor".to_owned()),
                ];
                let (label, value) = dice.pick(&values).unwrap().clone();
                self.change(target, LABEL_OVERWRITTEN, json!({"labels": {label: value}})).await;
            }
            Act::Annotations => {
                self.change(target, ANNOTATIONS_TAKEN, json!({"annotations": null})).await;
            }
            Act::Finalizer => self.take_finalizer(target).await,
            Act::Delete => self.delete(target, "deleted", 30).await,
            Act::ForceDelete => self.delete(target, "deleted by force", 0).await,
            Act::Tear => {
                self.take_finalizer(target).await;
                self.delete(target, "torn away", 0).await;
            }
            Act::Replace => self.replace(target, dice).await,
            Act::Usurp => self.usurp(target, dice).await,
            Act::ForgeDriver => {
                let name = format!("forged-{}", uuid::Uuid::new_v4().simple());
                if self.create(&name, driver_labels(target), None).await.is_some() {
                    self.report(&name, dice).await;
                }
            }
            Act::Impersonate => {
                let name = format!("forged-{}", uuid::Uuid::new_v4().simple());
                let annotations = self.annotations_of_another(target, dice).await;
                let made = self.make(forged(&name, driver_labels(target), annotations, json!([FINALIZER])));
                if made.await.is_some() {
                    self.report(&name, dice).await;
                }
            }
            Act::Swap => {
                let annotations = self.annotations_of_another(target, dice).await;
                self.change(target, ANNOTATIONS_OVERWRITTEN, json!({"annotations": annotations})).await;
            }
            Act::ForgeExecutors => {
                let owner = |name: &str, uid: &str| json!([{"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid, "controller": true}]);
                let nothing = owner("another", &uuid::Uuid::new_v4().to_string());
                let another = self.another_driver(target, dice).map(|(uid, name)| owner(&name, &uid));
                for owner in [None, Some(nothing)].into_iter().chain(another.map(Some)) {
                    let name = format!("forged-exec-{}", uuid::Uuid::new_v4().simple());
                    let mut labels = driver_labels(target);
                    labels[ROLE] = json!("executor");
                    labels["spark-exec-id"] = json!((900 + dice.below(90)).to_string());
                    if self.create(&name, labels, owner).await.is_some() {
                        self.report(&name, dice).await;
                    }
                }
            }
        }
    }

    fn note(&self, target: &Target, act: &'static str, change: impl FnOnce(&mut PodTruth)) {
        if let Some(uid) = &target.uid {
            self.truth.note(uid, |pod| {
                pod.acts.push(act);
                change(pod);
            });
        }
    }

    /// Changes the metadata of exactly this pod.
    async fn change(&self, target: &Target, act: &'static str, mut metadata: Value) {
        self.note(target, act, |_| ());
        let (Some(name), Some(uid)) = (&target.pod, &target.uid) else { return };
        metadata["uid"] = json!(uid);
        let patch = Patch::Merge(json!({"metadata": metadata}));
        let _ = timeout(LIMIT, self.pods.patch(name, &PatchParams::default(), &patch)).await;
    }

    async fn take_finalizer(&self, target: &Target) {
        self.note(target, "the finalizer taken off", |pod| pod.unheld = true);
        let (Some(name), Some(uid)) = (&target.pod, &target.uid) else { return };
        let Ok(Ok(pod)) = timeout(LIMIT, self.pods.get_metadata(name)).await else { return };
        let mut left = pod.metadata.finalizers.unwrap_or_default();
        left.retain(|finalizer| finalizer != FINALIZER);
        let patch = Patch::Merge(json!({"metadata": {"uid": uid, "finalizers": left}}));
        let _ = timeout(LIMIT, self.pods.patch(name, &PatchParams::default(), &patch)).await;
    }

    async fn delete(&self, target: &Target, act: &'static str, grace: u32) {
        self.note(target, act, |pod| {
            pod.by_others = true;
            // A pod without finalizer disappears at once, together with its container.
            if pod.unheld && grace == 0 {
                pod.ended.get_or_insert_with(Instant::now);
            }
        });
        let (Some(name), Some(uid)) = (&target.pod, &target.uid) else { return };
        let only_this = Preconditions { uid: Some(uid.clone()), resource_version: None };
        let how = DeleteParams::default().grace_period(grace).preconditions(only_this);
        let _ = timeout(LIMIT, self.pods.delete(name, &how)).await;
    }

    /// Replaces the pod by a copy with all labels and annotations.
    async fn replace(&self, target: &Target, dice: &mut Dice) {
        let Some(name) = &target.pod else { return };
        let Ok(Ok(original)) = timeout(LIMIT, self.pods.get(name)).await else { return };
        if original.metadata.uid != target.uid {
            return;
        }
        self.take_finalizer(target).await;
        self.delete(target, "replaced", 0).await;
        let mut annotations = original.metadata.annotations.unwrap_or_default();
        annotations.insert(FORGED.to_owned(), "copy".to_owned());
        let copy = json!({"apiVersion": "v1", "kind": "Pod", "spec": plain_spec(),
            "metadata": {"name": name, "labels": original.metadata.labels, "annotations": annotations}});
        if self.make(copy).await.is_some() {
            self.report(name, dice).await;
        }
    }

    /// Takes the name of a driver that doesn't exist yet.
    async fn usurp(&self, target: &Target, dice: &mut Dice) {
        let Some(name) = &target.pod else { return };
        let labels = if dice.one_in(2) { driver_labels(target) } else { json!({}) };
        // Recorded first: the program may see the pod before this process gets the reply.
        self.deeds().usurped.insert(target.id.clone());
        if self.create(name, labels, None).await.is_some() {
            self.report(name, dice).await;
        }
    }

    /// Returns the uid and the name of another submission's driver pod, which may be gone.
    fn another_driver(&self, target: &Target, dice: &mut Dice) -> Option<(String, String)> {
        let all = self.truth.all();
        let others: Vec<_> = all.iter().filter(|(_, pod)| pod.submission != target.id && pod.job.is_some()).collect();
        dice.pick(&others).map(|(uid, pod)| ((*uid).clone(), pod.name.clone()))
    }

    /// Returns the annotations of another submission's driver pod, its signed identity among them.
    async fn annotations_of_another(&self, target: &Target, dice: &mut Dice) -> Value {
        let Some((_, name)) = self.another_driver(target, dice) else { return json!({}) };
        match timeout(LIMIT, self.pods.get_metadata(&name)).await {
            Ok(Ok(pod)) => {
                let mut annotations = pod.metadata.annotations.unwrap_or_default();
                // A copy may stand under the name by now.
                annotations.remove(FORGED);
                json!(annotations)
            }
            _ => json!({}),
        }
    }

    async fn another(&self, target: &Target, dice: &mut Dice) -> String {
        let all = self.truth.all();
        let all: Vec<_> = all.values().map(|pod| &pod.submission).filter(|id| **id != target.id).collect();
        dice.pick(&all).map_or_else(|| target.id.clone(), |id| (*id).clone())
    }

    async fn create(&self, name: &str, labels: Value, owners: Option<Value>) -> Option<String> {
        let mut metadata = json!({"name": name, "labels": labels, "annotations": {FORGED: "yes"}});
        if let Some(owners) = owners {
            metadata["ownerReferences"] = owners;
        }
        self.make(json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": plain_spec()})).await
    }

    /// Creates a pod; returns its uid, if the API server created it.
    async fn make(&self, pod: Value) -> Option<String> {
        let pod = serde_json::from_value(pod).unwrap();
        let made = timeout(LIMIT, self.pods.create(&PostParams::default(), &pod)).await.ok()?.ok()?;
        let uid = made.metadata.uid?;
        self.deeds().forged.insert(uid.clone());
        Some(uid)
    }

    /// Reports that a forged pod has ended.
    async fn report(&self, name: &str, dice: &mut Dice) {
        let code = if dice.one_in(2) { 0 } else { 9 };
        let phase = if code == 0 { "Succeeded" } else { "Failed" };
        let status = json!({"status": {"phase": phase, "containerStatuses": [{"name": "spark-kubernetes-driver",
            "image": "spark", "imageID": "", "ready": false, "restartCount": 0,
            "state": {"terminated": {"exitCode": code, "reason": "Forged"}}}]}});
        let patch = Patch::Merge(status);
        let _ = timeout(LIMIT, self.pods.patch_status(name, &PatchParams::default(), &patch)).await;
    }

    fn deeds(&self) -> MutexGuard<'_, Deeds> {
        self.deeds.lock().unwrap()
    }
}

fn driver_labels(target: &Target) -> Value {
    json!({ROLE: "driver", SUBMISSION: target.id, ATTEMPT: target.attempt.to_string(), INSTANCE: target.instance})
}

fn forged(name: &str, labels: Value, mut annotations: Value, finalizers: Value) -> Value {
    annotations[FORGED] = json!("yes");
    let metadata = json!({"name": name, "labels": labels, "annotations": annotations, "finalizers": finalizers});
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": plain_spec()})
}

fn plain_spec() -> Value {
    json!({"containers": [{"name": "spark-kubernetes-driver", "image": "true"}]})
}
