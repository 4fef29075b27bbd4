//! A gateway with its own database and namespace, driven step by step.

use std::{collections::BTreeMap, net::SocketAddr};

use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};
use sparkgate::{
    cluster::{Cluster, ClusterSettings},
    service::{Error, Service, Settings, Setup, SparkSettings, Status, Submitter},
    spark::CreateSubmissionRequest,
    store::Store,
    submission::{DriverState, SubmissionId},
};
pub(crate) use sparkgate_testing::wait::eventually;
use sparkgate_testing::{
    fault_proxy::FaultProxy,
    kube_apiserver::{GATEWAY, KubeApiserver},
};
use sqlx::PgPool;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::in_memory;

pub(crate) struct World {
    pub(crate) service: Service,
    /// The gateway's client, with the rights of the deployment.
    pub(crate) client: Client,
    /// The client for the actions of kubelets, controllers and users, and for the test's reads.
    pub(crate) admin: Client,
    pub(crate) namespace: String,
    pub(crate) pool: PgPool,
    /// What the service is created with.
    parts: Box<(Store, Cluster, Setup)>,
    watching: Option<DropGuard>,
    living: DropGuard,
}

impl World {
    pub(crate) async fn new(pool: PgPool) -> Self {
        let server = KubeApiserver::start().await;
        let namespace = format!("test-{}", uuid::Uuid::new_v4().simple());
        server.create_namespace(&namespace).await;
        Self::on(pool, server.gateway().await, namespace).await
    }

    /// Creates another gateway on the same database and namespace with another client: a restart, or a client that
    /// fails.
    pub(crate) async fn on(pool: PgPool, client: Client, namespace: String) -> Self {
        Self::submitting(pool, client, namespace, Submitter::default()).await
    }

    /// Creates the same with an operator's submitter directory.
    pub(crate) async fn submitting(pool: PgPool, client: Client, namespace: String, submitter: Submitter) -> Self {
        Self::with(pool, client, namespace, submitter, true).await
    }

    /// Creates the same without the finalizer on driver pods.
    pub(crate) async fn without_finalizer(pool: PgPool) -> Self {
        let world = Self::new(pool.clone()).await;
        Self::unheld(pool, world.client, world.namespace).await
    }

    /// Creates the same without the finalizer, with this client.
    pub(crate) async fn unheld(pool: PgPool, client: Client, namespace: String) -> Self {
        Self::with(pool, client, namespace, Submitter::default(), false).await
    }

    async fn with(pool: PgPool, client: Client, namespace: String, submitter: Submitter, finalizer: bool) -> Self {
        let cluster = Cluster::new(client.clone(), std::slice::from_ref(&namespace));
        Self::built(Store::new(pool.clone()), pool, client, cluster, namespace, spark(submitter), finalizer).await
    }

    /// Creates another gateway on the same database and namespace, with these settings of Spark.
    pub(crate) async fn of_spark(&self, spark: SparkSettings) -> Self {
        let (pool, client, namespace) = (self.pool.clone(), self.client.clone(), self.namespace.clone());
        let cluster = Cluster::new(client.clone(), std::slice::from_ref(&namespace));
        Self::built(Store::new(pool.clone()), pool, client, cluster, namespace, spark, true).await
    }

    /// Creates two namespaces behind one gateway, which connects to the API server as `serve` does.
    pub(crate) async fn two(pool: PgPool) -> (Self, Self) {
        let one = Self::new(pool.clone()).await;
        let other = Self::new(pool.clone()).await;
        let namespaces = vec![one.namespace.clone(), other.namespace.clone()];
        let cluster = connect(None, namespaces).await;
        let one = Self::reaching(Store::new(pool.clone()), pool, cluster, one.client, one.namespace).await;
        let service = one.service.clone();
        (one, Self { service, ..other })
    }

    /// Creates another replica for the same namespace, with its own connections to the database and the API server.
    pub(crate) async fn replica(&self, store: Store, proxy: Option<&FaultProxy>) -> Self {
        let cluster = connect(proxy, vec![self.namespace.clone()]).await;
        Self::reaching(store, self.pool.clone(), cluster, self.client.clone(), self.namespace.clone()).await
    }

    async fn reaching(store: Store, pool: PgPool, cluster: Cluster, client: Client, namespace: String) -> Self {
        Self::built(store, pool, client, cluster, namespace, spark(Submitter::default()), true).await
    }

    async fn built(
        store: Store,
        pool: PgPool,
        client: Client,
        cluster: Cluster,
        namespace: String,
        spark: SparkSettings,
        finalizer: bool,
    ) -> Self {
        let settings = Settings { outcome_finalizer: finalizer, ..in_memory::settings(spark) };
        let parts = Box::new((store, cluster, Setup::from(settings)));
        let (service, living) = started(&parts).await;
        let admin = KubeApiserver::start().await.admin().await;
        Self { service, client, admin, namespace, pool, parts, watching: None, living }
    }

    /// Replaces the gateway by one with other settings.
    pub(crate) async fn configure(&mut self, change: impl FnOnce(&mut Setup)) {
        change(&mut self.parts.2);
        (self.service, self.living) = started(&self.parts).await;
    }

    /// Starts the watch.
    pub(crate) fn watch(&mut self) {
        let stop = CancellationToken::new();
        tokio::spawn(self.service.pods.clone().run(stop.clone()));
        self.watching = Some(stop.drop_guard());
    }

    /// Ends the watch, as a crash would.
    pub(crate) fn look_away(&mut self) {
        self.watching = None;
    }

    pub(crate) fn request(&self, properties: &[(&str, &str)]) -> CreateSubmissionRequest {
        let mut request = CreateSubmissionRequest {
            client_spark_version: "4.3.0".to_owned(),
            app_resource: "local:///opt/app.jar".to_owned(),
            main_class: "org.example.Main".to_owned(),
            ..CreateSubmissionRequest::default()
        };
        request.spark_properties.insert("spark.kubernetes.namespace".to_owned(), self.namespace.clone());
        for (key, value) in properties {
            request.spark_properties.insert((*key).to_owned(), (*value).to_owned());
        }
        request
    }

    pub(crate) async fn submit(&self, properties: &[(&str, &str)]) -> SubmissionId {
        self.service.submissions.create(&self.service.anonymous(), self.request(properties)).await.unwrap()
    }

    /// Creates a submission whose driver runs, as the watch has reported.
    pub(crate) async fn submit_running(&mut self) -> SubmissionId {
        self.watch();
        let id = self.submit(&[]).await;
        self.service.launcher.work().await.unwrap();
        self.play_running().await;
        self.until(&id, DriverState::Running).await;
        id
    }

    pub(crate) async fn refusal(&self, properties: &[(&str, &str)]) -> String {
        match self.service.submissions.create(&self.service.anonymous(), self.request(properties)).await {
            Err(Error::Refused(refusal)) => refusal.to_string(),
            other => panic!("not refused: {other:?}"),
        }
    }

    pub(crate) async fn status(&self, id: &SubmissionId) -> Status {
        self.service.submissions.status(&self.service.anonymous(), id).await.unwrap().unwrap()
    }

    /// Waits for the driver state; returns the whole status.
    pub(crate) async fn until(&self, id: &SubmissionId, state: DriverState) -> Status {
        eventually(|| async {
            let status = self.status(id).await;
            (status.driver_state == state).then_some(status).ok_or("another state")
        })
        .await
    }

    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.admin.clone(), &self.namespace)
    }

    pub(crate) fn pods(&self) -> Api<Pod> {
        self.api()
    }

    /// Sets columns of a submission: options of a request, or timestamps to let time pass.
    pub(crate) async fn set(&self, id: &SubmissionId, columns: &str) {
        let statement = sqlx::AssertSqlSafe(format!("UPDATE submissions SET {columns} WHERE id = $1"));
        sqlx::query(statement).bind(id.as_str()).execute(&self.pool).await.unwrap();
    }

    /// Returns the driver pod of an attempt.
    pub(crate) async fn driver_of(&self, attempt: i32) -> Pod {
        let selector = format!("spark-role=driver,sparkgate.dev/attempt={attempt}");
        let mut pods = self.pods().list(&ListParams::default().labels(&selector)).await.unwrap().items;
        assert_eq!(pods.len(), 1, "of attempt {attempt}");
        pods.remove(0)
    }

    /// Returns the pod with the name in the row.
    pub(crate) async fn driver_named(&self, id: &SubmissionId) -> Pod {
        let name = sqlx::query_scalar("SELECT names ->> 'driverPod' FROM submissions WHERE id = $1").bind(id.as_str());
        let name: String = name.fetch_one(&self.pool).await.unwrap();
        self.pods().get(&name).await.unwrap()
    }

    /// Reports as a kubelet that the driver of one of several submissions has ended with success.
    pub(crate) async fn play_end_of(&self, id: &SubmissionId) {
        let ended = json!({"terminated": {"exitCode": 0, "reason": "Completed"}});
        self.play_on(self.driver_named(id).await, "Succeeded", ended).await;
    }

    /// Returns the only driver pod.
    pub(crate) async fn driver(&self) -> Pod {
        let mut pods = self.pods().list(&ListParams::default().labels("spark-role=driver")).await.unwrap().items;
        assert_eq!(pods.len(), 1);
        pods.remove(0)
    }

    pub(crate) async fn driver_count(&self) -> usize {
        self.pods().list(&ListParams::default().labels("spark-role=driver")).await.unwrap().items.len()
    }

    /// Waits until there is none: the finalizer is removed after the end is committed.
    pub(crate) async fn until_no_driver(&self) {
        eventually(|| async { (self.driver_count().await == 0).then_some(()).ok_or("there is a driver pod") }).await;
    }

    /// Reports as a kubelet the state of the driver's container.
    pub(crate) async fn play(&self, phase: &str, container: Value) {
        self.play_on(self.driver().await, phase, container).await;
    }

    /// Reports the same for one of several drivers.
    pub(crate) async fn play_on(&self, pod: Pod, phase: &str, container: Value) {
        let name = pod.metadata.name.unwrap();
        let status = json!({"status": {"phase": phase, "podIP": "10.1.2.3", "containerStatuses": [{
            "name": "spark-kubernetes-driver", "image": "spark", "imageID": "", "ready": true, "restartCount": 0,
            "state": container}]}});
        self.pods().patch_status(&name, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    }

    pub(crate) async fn play_running(&self) {
        self.play("Running", json!({"running": {"startedAt": "2026-01-01T00:00:00Z"}})).await;
    }

    pub(crate) async fn play_exit(&self, code: i32) {
        let phase = if code == 0 { "Succeeded" } else { "Failed" };
        let reason = if code == 0 { "Completed" } else { "Error" };
        self.play(phase, json!({"terminated": {"exitCode": code, "reason": reason}})).await;
    }

    /// Deletes the pod as a kubelet does after the grace period.
    pub(crate) async fn remove_driver(&self) {
        let name = self.driver().await.metadata.name.unwrap();
        self.pods().delete(&name, &DeleteParams::default().grace_period(0)).await.unwrap();
    }

    pub(crate) async fn events(&self, id: &SubmissionId) -> Vec<String> {
        sqlx::query_scalar("SELECT state FROM submission_events WHERE submission_id = $1 ORDER BY id")
            .bind(id.as_str())
            .fetch_all(&self.pool)
            .await
            .unwrap()
    }

    pub(crate) async fn exit_code(&self, id: &SubmissionId) -> Option<i32> {
        let row = sqlx::query_scalar("SELECT exit_code FROM submissions WHERE id = $1").bind(id.as_str());
        row.fetch_one(&self.pool).await.unwrap()
    }
}

/// Returns the settings of a gateway of Spark 4.3.0.
fn spark(submitter: Submitter) -> SparkSettings {
    let defaults = BTreeMap::from([("spark.kubernetes.container.image".to_owned(), "spark:4.3.0".to_owned())]);
    SparkSettings::new("4.3.0".parse().unwrap(), defaults, submitter, "tester".to_owned())
}

/// Starts a gateway, and the renewal of its leases: a busy machine may take longer for a step than a lease lasts.
async fn started((store, cluster, setup): &(Store, Cluster, Setup)) -> (Service, DropGuard) {
    let service = Service::new(store.clone(), cluster.clone(), setup.clone()).await.unwrap();
    let living = CancellationToken::new();
    tokio::spawn(service.leadership.clone().run_renewal(living.clone()));
    (service, living.drop_guard())
}

/// Connects to the API server as `serve` does, optionally through a proxy.
async fn connect(proxy: Option<&FaultProxy>, namespaces: Vec<String>) -> Cluster {
    let server = KubeApiserver::start().await;
    let text = server.kubeconfig_at(GATEWAY, proxy.map_or_else(|| server.address(), FaultProxy::address));
    let kubeconfig = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(kubeconfig.path(), text).unwrap();
    let path = Some(kubeconfig.path().to_owned());
    Cluster::connect(&ClusterSettings { kubeconfig: path, context: None, namespaces }).await.unwrap()
}

/// Returns the address of the API server.
pub(crate) async fn api_server() -> SocketAddr {
    KubeApiserver::start().await.address()
}
