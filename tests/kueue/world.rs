//! A gateway with a queue of Kueue, and the objects of that queue.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::{Pod, PodCondition};
use kube::{
    Api, Client,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams},
    core::GroupVersionKind,
};
use serde_json::{Value, json};
use sparkgate::{
    access::{Grant, KueueQueue, Principal, Provider, Role},
    cluster::Cluster,
    service::{
        AccessFile, Caps, KueueQueues, Service, Session, Settings, Setup, SparkSettings, Status, Submitter,
        doctor::{Finding, check_kueue},
    },
    spark::{CreateSubmissionRequest, parse_properties},
    store::Store,
    submission::SubmissionId,
};
use sparkgate_testing::kube_apiserver::KubeApiserver;
use sqlx::PgPool;
use tempfile::NamedTempFile;
use tokio::{
    sync::RwLockReadGuard,
    time::{Instant, sleep},
};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::controller::{create, kueue};

const READY: Duration = Duration::from_secs(180);
const QUEUES: &str = "/apis/kueue.x-k8s.io/v1beta1";
/// What a driver of these tests requests, as each of its executors.
pub(crate) const MEMORY: &str = "1408Mi";

/// A gateway and its queue: a `ClusterQueue` and a `LocalQueue` with the name of the namespace.
pub(crate) struct World {
    pub(crate) service: Service,
    pub(crate) admin: Client,
    pub(crate) namespace: String,
    pub(crate) pool: PgPool,
    /// The access file, if there is one.
    file: Option<NamedTempFile>,
    _living: DropGuard,
    _kueue: Option<RwLockReadGuard<'static, ()>>,
}

/// A `ClusterQueue`.
#[derive(Default)]
pub(crate) struct Quota<'a> {
    /// Cores.
    pub(crate) cores: u32,
    pub(crate) cohort: Option<&'a str>,
    pub(crate) preemption: Value,
    /// The name of a flavor of its own, and what that has.
    pub(crate) flavor: Option<(&'a str, Value)>,
}

impl World {
    /// Creates a gateway whose queue has so many cores, and starts all that follows Kueue and the pods.
    pub(crate) async fn new(pool: PgPool, cores: u32) -> Self {
        Self::with(pool, Quota { cores, ..Quota::default() }).await
    }

    pub(crate) async fn with(pool: PgPool, quota: Quota<'_>) -> Self {
        let guard = kueue().await;
        let mut world = Self::alone(pool, quota).await;
        world._kueue = Some(guard);
        world
    }

    /// Creates it for a test that stops Kueue.
    pub(crate) async fn alone(pool: PgPool, quota: Quota<'_>) -> Self {
        let server = KubeApiserver::start().await;
        let namespace = format!("test-{}", uuid::Uuid::new_v4().simple());
        server.create_namespace(&namespace).await;
        let admin = server.admin().await;
        create_queue(&admin, &namespace, &quota).await;
        Self::gateway(pool, admin, &[namespace], Some(None), None).await
    }

    /// Creates one gateway for two namespaces, each with a queue of this quota. Returns the name of the second one, too.
    pub(crate) async fn two(pool: PgPool, quota: Quota<'_>) -> (Self, String) {
        let guard = kueue().await;
        let server = KubeApiserver::start().await;
        let admin = server.admin().await;
        let namespaces = [(); 2].map(|()| format!("test-{}", uuid::Uuid::new_v4().simple()));
        for namespace in &namespaces {
            server.create_namespace(namespace).await;
            create_queue(&admin, namespace, &quota).await;
        }
        let mut world = Self::gateway(pool, admin, &namespaces, Some(None), None).await;
        world._kueue = Some(guard);
        (world, namespaces[1].clone())
    }

    /// Creates a gateway that doesn't know the queue of its namespace.
    pub(crate) async fn with_plain_pods(pool: PgPool, quota: Quota<'_>) -> Self {
        let guard = kueue().await;
        let server = KubeApiserver::start().await;
        let namespace = format!("test-{}", uuid::Uuid::new_v4().simple());
        server.create_namespace(&namespace).await;
        let admin = server.admin().await;
        create_queue(&admin, &namespace, &quota).await;
        let mut world = Self::gateway(pool, admin, &[namespace], None, None).await;
        world._kueue = Some(guard);
        world
    }

    /// Creates a gateway with an access file: a tenant `t`, and these queues.
    pub(crate) async fn with_file(pool: PgPool, quota: Quota<'_>, queues: &str) -> Self {
        let mut world = Self::with_plain_pods(pool, quota).await;
        world.file = Some(NamedTempFile::new().unwrap());
        world.write_file(queues);
        let Self { pool, admin, namespace, file, _living, _kueue, .. } = world;
        drop(_living);
        let mut world = Self::gateway(pool, admin, &[namespace], None, file).await;
        world._kueue = _kueue;
        world
    }

    /// Returns what `sparkgate doctor` finds about queues of Kueue with this client.
    pub(crate) async fn findings(&self, client: Client) -> Vec<Finding> {
        let cluster = Cluster::new(client, std::slice::from_ref(&self.namespace));
        let mut findings = Vec::new();
        let current = self.service.access.current();
        check_kueue(&cluster, current.access(), &KueueQueues::new(), &mut findings).await;
        findings
    }

    /// Changes the queues of the access file.
    pub(crate) fn change_file(&self, queues: &str) {
        self.write_file(queues);
        self.service.access.reload_if_changed();
        assert_eq!(self.service.access.trouble(), None);
    }

    fn write_file(&self, queues: &str) {
        let tenants =
            format!("authentication: {{}}\ntenants: {{t: {{namespaces: [{}], defaultQueue: plain}}}}", self.namespace);
        std::fs::write(self.file.as_ref().unwrap().path(), format!("{tenants}\nqueues: {queues}\n")).unwrap();
    }

    /// Returns a caller who may do all that the tests do.
    fn session(&self) -> Session {
        if self.file.is_none() {
            return self.service.anonymous();
        }
        let grant = Grant::in_tenant(Role::Operator, "t").unwrap();
        let principal = Principal::new(Provider::ApiKey, "x").unwrap().with_grants(vec![grant]);
        Session::new(Arc::new(principal), self.service.access.current(), None, "test")
    }

    /// Replaces the gateway by one whose queue has a priority class.
    pub(crate) async fn with_priority(self, class: &str) -> Self {
        let Self { pool, admin, namespace, _living, _kueue, .. } = self;
        drop(_living);
        let mut world = Self::gateway(pool, admin, &[namespace], Some(Some(class)), None).await;
        world._kueue = _kueue;
        world
    }

    /// Creates a gateway whose queue has a priority class or none; `None` if the setting names no queue.
    async fn gateway(
        pool: PgPool,
        admin: Client,
        namespaces: &[String],
        queue: Option<Option<&str>>,
        file: Option<NamedTempFile>,
    ) -> Self {
        let client = KubeApiserver::start().await.gateway().await;
        let cluster = Cluster::new(client, namespaces);
        let defaults = BTreeMap::from([("spark.kubernetes.container.image".to_owned(), "spark:4.3.0".to_owned())]);
        let spark = SparkSettings::new("4.3.0".parse().unwrap(), defaults, Submitter::default(), "tester".to_owned());
        let settings = Settings { spark, outcome_finalizer: true, caps: Caps::default(), kept_log: 256 << 10 };
        let mut setup = match &file {
            Some(file) => Setup::from(AccessFile::open(file.path().to_owned(), settings).unwrap()),
            None => Setup::from(settings),
        };
        for namespace in namespaces {
            grant(&admin, namespace).await;
            if let Some(class) = queue {
                let queue = KueueQueue { local_queue: namespace.clone(), priority_class: class.map(str::to_owned) };
                setup.kueue.insert(namespace.clone(), queue);
            }
        }
        let service = Service::new(Store::new(pool.clone()), cluster, setup).await.unwrap();
        let living = CancellationToken::new();
        tokio::spawn(service.leadership.clone().run_renewal(living.clone()));
        tokio::spawn(service.leadership.clone().run_sweeps(living.clone()));
        tokio::spawn(service.launcher.clone().run(living.clone()));
        tokio::spawn(service.pods.clone().run(living.clone()));
        tokio::spawn(service.queues.clone().run(living.clone()));
        let namespace = namespaces[0].clone();
        Self { service, admin, namespace, pool, file, _living: living.drop_guard(), _kueue: None }
    }

    /// Submits an application with so many executors.
    pub(crate) async fn submit(&self, executors: u32) -> SubmissionId {
        self.submit_with(&[("spark.executor.instances", &executors.to_string())]).await
    }

    pub(crate) async fn submit_with(&self, properties: &[(&str, &str)]) -> SubmissionId {
        let mut request = CreateSubmissionRequest {
            client_spark_version: "4.3.0".to_owned(),
            app_resource: "local:///opt/app.jar".to_owned(),
            main_class: "org.example.Main".to_owned(),
            ..CreateSubmissionRequest::default()
        };
        let namespace = [("spark.kubernetes.namespace", self.namespace.as_str())];
        for (key, value) in namespace.iter().chain(properties) {
            request.spark_properties.insert((*key).to_owned(), (*value).to_owned());
        }
        self.service.submissions.create(&self.session(), request).await.unwrap()
    }

    pub(crate) async fn status(&self, id: &SubmissionId) -> Status {
        self.service.submissions.status(&self.session(), id).await.unwrap().unwrap()
    }

    /// Returns state, attempt and reason in the row.
    pub(crate) async fn row(&self, id: &SubmissionId) -> (String, i32, Option<String>) {
        let row = sqlx::query_as("SELECT state, attempt, reason FROM submissions WHERE id = $1").bind(id.as_str());
        row.fetch_one(&self.pool).await.unwrap()
    }

    /// Waits until an attempt is in this state.
    pub(crate) async fn until(&self, id: &SubmissionId, attempt: i32, state: &str) {
        let what = format!("attempt {attempt} of {id} is {state}");
        self.until_so(&what, async || {
            let (now, of, reason) = self.row(id).await;
            if (now.as_str(), of) == (state, attempt) { Ok(()) } else { Err(format!("{now} {of} {reason:?}")) }
        })
        .await;
    }

    /// Waits until the launch of an attempt waits for this reason.
    pub(crate) async fn until_waiting(&self, id: &SubmissionId, expected: &str) -> String {
        self.until_so(&format!("{id} waits: {expected}"), async || match self.row(id).await {
            (state, _, Some(reason)) if state == "LAUNCHING" && reason == expected => {
                Ok(self.status(id).await.message.unwrap_or_default())
            }
            other => Err(format!("{other:?}, {:?}", self.workloads().await)),
        })
        .await
    }

    /// Waits until a check succeeds.
    pub(crate) async fn until_so<T>(&self, what: &str, check: impl AsyncFn() -> Result<T, String>) -> T {
        let deadline = Instant::now() + READY;
        loop {
            match check().await {
                Ok(value) => return value,
                Err(now) => assert!(Instant::now() < deadline, "{what}: {now}"),
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    pub(crate) fn workload_api(&self) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("kueue.x-k8s.io", "v1beta1", "Workload");
        Api::namespaced_with(
            self.admin.clone(),
            &self.namespace,
            &ApiResource::from_gvk_with_plural(&kind, "workloads"),
        )
    }

    /// Returns the `Workload`s of the namespace, the oldest first.
    pub(crate) async fn workloads(&self) -> Vec<Value> {
        let list = self.workload_api().list(&ListParams::default()).await.unwrap();
        list.items.into_iter().map(|workload| serde_json::to_value(workload).unwrap()).collect()
    }

    pub(crate) async fn until_no_workload(&self) {
        self.until_so("there is no Workload", async || match self.workloads().await.len() {
            0 => Ok(()),
            some => Err(some.to_string()),
        })
        .await;
    }

    pub(crate) fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.admin.clone(), &self.namespace)
    }

    /// Returns the driver of an attempt, once there is one.
    pub(crate) async fn driver(&self, id: &SubmissionId, attempt: i32) -> Pod {
        let labels = format!("spark-role=driver,sparkgate.dev/submission-id={id},sparkgate.dev/attempt={attempt}");
        self.until_so(&format!("attempt {attempt} of {id} has a driver"), async || {
            let mut found = self.pods().list(&ListParams::default().labels(&labels)).await.unwrap().items;
            found.pop().ok_or_else(|| "none".to_owned())
        })
        .await
    }

    /// Returns the properties of the driver process of an attempt.
    pub(crate) async fn properties(&self, driver: &Pod) -> BTreeMap<String, String> {
        let spec = driver.spec.as_ref().unwrap();
        let volume = spec.volumes.iter().flatten().find(|volume| volume.name == "spark-conf-volume-driver");
        let name = volume.unwrap().config_map.as_ref().unwrap().name.clone();
        let maps: Api<k8s_openapi::api::core::v1::ConfigMap> = Api::namespaced(self.admin.clone(), &self.namespace);
        let map = maps.get(&name).await.unwrap();
        parse_properties(&map.data.unwrap()["spark.properties"])
    }

    /// Reports as a kubelet the state of a pod's container.
    pub(crate) async fn play(&self, pod: &Pod, phase: &str, state: Value) {
        self.try_play(pod, phase, state).await.unwrap();
    }

    async fn try_play(&self, pod: &Pod, phase: &str, state: Value) -> Result<Pod, kube::Error> {
        let name = pod.metadata.name.as_deref().unwrap();
        let container = pod.spec.as_ref().unwrap().containers[0].name.clone();
        let status = json!({"status": {"phase": phase, "podIP": "10.1.2.3", "containerStatuses": [{
            "name": container, "image": "spark", "imageID": "", "ready": true, "restartCount": 0, "state": state}]}});
        self.pods().patch_status(name, &PatchParams::default(), &Patch::Strategic(status)).await
    }

    pub(crate) async fn play_running(&self, pod: &Pod) {
        self.play(pod, "Running", json!({"running": {"startedAt": "2026-01-01T00:00:00Z"}})).await;
    }

    pub(crate) async fn play_end(&self, pod: &Pod, code: i32) {
        let phase = if code == 0 { "Succeeded" } else { "Failed" };
        self.play(pod, phase, json!({"terminated": {"exitCode": code, "reason": "Completed"}})).await;
    }

    /// Ends a pod that is being deleted, as a kubelet does after the grace period.
    pub(crate) async fn play_removal(&self, pod: &Pod) {
        let name = pod.metadata.name.as_deref().unwrap();
        self.until_so("the pod is being deleted", async || match self.pods().get_opt(name).await.unwrap() {
            Some(pod) if pod.metadata.deletion_timestamp.is_none() => Err("it is not".to_owned()),
            _ => Ok(()),
        })
        .await;
        self.end_removal(pod).await;
    }

    /// Ends all pods that are being deleted now.
    pub(crate) async fn play_removals(&self) {
        for pod in self.pods().list(&ListParams::default()).await.unwrap() {
            if pod.metadata.deletion_timestamp.is_some() {
                self.end_removal(&pod).await;
            }
        }
    }

    async fn end_removal(&self, pod: &Pod) {
        let name = pod.metadata.name.as_deref().unwrap();
        self.reset_stale_disruption(name).await;
        // A pod that no node has may be gone by now.
        let _ = self.try_play(pod, "Failed", json!({"terminated": {"exitCode": 143, "reason": "Error"}})).await;
        let _ = self.pods().delete(name, &DeleteParams::default().grace_period(0)).await;
    }

    /// Does what the disruption controller of kube-controller-manager may have done before the pod was deleted: it resets the condition
    /// `DisruptionTarget` if that is older than two minutes, and one without a time is.
    async fn reset_stale_disruption(&self, name: &str) {
        let Some(pod) = self.pods().get_opt(name).await.unwrap() else { return };
        let conditions = pod.status.and_then(|status| status.conditions).unwrap_or_default();
        let is_stale = |condition: &PodCondition| condition.last_transition_time.is_none();
        if conditions.iter().any(|condition| condition.type_ == "DisruptionTarget" && is_stale(condition)) {
            let reset = json!({"status": {"conditions": [{"type": "DisruptionTarget", "status": "False"}]}});
            self.pods().patch_status(name, &PatchParams::default(), &Patch::Strategic(reset)).await.unwrap();
        }
    }

    /// Creates an executor, as the driver does.
    pub(crate) async fn play_executor(&self, driver: &Pod, number: u32) -> Pod {
        let labels = driver.metadata.labels.clone().unwrap();
        let mut labels: BTreeMap<_, _> = labels.into_iter().filter(|(key, _)| key.starts_with("spark")).collect();
        labels.insert("spark-role".to_owned(), "executor".to_owned());
        labels.insert("spark-exec-id".to_owned(), number.to_string());
        let (name, uid) = (driver.metadata.name.as_ref().unwrap(), driver.metadata.uid.as_ref().unwrap());
        let pod = json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": format!("{name}-exec-{number}"), "labels": labels,
                "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid, "controller": true}]},
            "spec": {"containers": [{"name": "spark-kubernetes-executor", "image": "spark"}]}});
        let created = create(&self.admin, &format!("/api/v1/namespaces/{}/pods", self.namespace), &pod).await;
        serde_json::from_value(created).unwrap()
    }

    /// Sets fields of the `ClusterQueue`.
    pub(crate) async fn change_queue(&self, spec: Value) {
        let path = format!("{QUEUES}/clusterqueues/{}", self.namespace);
        let patch = json!({ "spec": spec }).to_string().into_bytes();
        let request = http::Request::patch(path).header("content-type", "application/merge-patch+json");
        self.admin.request::<Value>(request.body(patch).unwrap()).await.unwrap();
    }
}

/// Creates a queue of Kueue for a namespace. All its objects have the namespace's name.
pub(crate) async fn create_queue(admin: &Client, namespace: &str, quota: &Quota<'_>) {
    // The queues of a cohort lend each other quota of the same flavor.
    let (flavor, of_flavor) = quota.flavor.clone().unwrap_or_else(|| (quota.cohort.unwrap_or(namespace), json!({})));
    create_once(admin, &format!("{QUEUES}/resourceflavors"), &of_kueue("ResourceFlavor", flavor, of_flavor)).await;
    let resources =
        json!([{"name": "cpu", "nominalQuota": quota.cores.to_string()}, {"name": "memory", "nominalQuota": "100Gi"}]);
    let mut spec = json!({"namespaceSelector": {}, "resourceGroups": [
        {"coveredResources": ["cpu", "memory"], "flavors": [{"name": flavor, "resources": resources}]}]});
    if let Some(cohort) = quota.cohort {
        spec["cohort"] = cohort.into();
    }
    if !quota.preemption.is_null() {
        spec["preemption"] = quota.preemption.clone();
    }
    create(admin, &format!("{QUEUES}/clusterqueues"), &of_kueue("ClusterQueue", namespace, spec)).await;
    let local = of_kueue("LocalQueue", namespace, json!({"clusterQueue": namespace}));
    create(admin, &format!("{QUEUES}/namespaces/{namespace}/localqueues"), &local).await;
}

fn of_kueue(kind: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": kind, "metadata": {"name": name}, "spec": spec})
}

/// Creates a priority class, and returns its name.
pub(crate) async fn create_priority(admin: &Client, value: i32) -> String {
    let name = format!("class-{}", uuid::Uuid::new_v4().simple());
    let class = json!({"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "WorkloadPriorityClass", "metadata": {"name": name},
        "value": value});
    create(admin, &format!("{QUEUES}/workloadpriorityclasses"), &class).await;
    name
}

/// Grants the gateway the rights that the chart grants with `rbac.kueue`.
async fn grant(admin: &Client, namespace: &str) {
    const API: &str = "rbac.authorization.k8s.io/v1";
    let rule = |group: &str, resource: &str, verbs: &[&str]| json!({"apiGroups": [group], "resources": [resource], "verbs": verbs});
    let subjects = json!([{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "system:serviceaccount:sparkgate:sparkgate"}]);
    let rules = json!([
        rule("kueue.x-k8s.io", "workloads", &["create", "get", "list", "watch", "delete"]),
        rule("kueue.x-k8s.io", "workloads/status", &["patch"]),
        rule("", "pods/status", &["patch"]),
    ]);
    let of_cluster = json!([
        rule("kueue.x-k8s.io", "resourceflavors", &["get"]),
        rule("kueue.x-k8s.io", "workloadpriorityclasses", &["get"])
    ]);
    for (kind, place, rules) in
        [("Role", format!("/namespaces/{namespace}"), rules), ("ClusterRole", String::new(), of_cluster)]
    {
        let name = format!("kueue-{namespace}");
        let base = format!("/apis/{API}{place}");
        let role = json!({"apiVersion": API, "kind": kind, "metadata": {"name": name}, "rules": rules});
        let binding = json!({"apiVersion": API, "kind": format!("{kind}Binding"), "metadata": {"name": name}, "subjects": subjects,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}});
        for (plural, object) in [("s", role), ("bindings", binding)] {
            create_once(admin, &format!("{base}/{}{plural}", kind.to_lowercase()), &object).await;
        }
    }
}

async fn create_once(admin: &Client, collection: &str, object: &Value) {
    let request = http::Request::post(collection).header("content-type", "application/json");
    match admin.request::<Value>(request.body(object.to_string().into_bytes()).unwrap()).await {
        Ok(_) => {}
        Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => {}
        Err(error) => panic!("{collection}: {error}"),
    }
}
