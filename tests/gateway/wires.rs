//! A protocol is a format and no privilege: what holds for the submissions of each API. Only a client to which the access file gives
//! its pods decides about them, and only about those of a `SparkApplication`.

use std::{fs, time::Duration};

use axum::{
    Router,
    body::Body,
    http::{Request, header},
};
use http_body_util::BodyExt;
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use sparkgate::{
    access::Role,
    api::{HttpSettings, livy_listener, router},
    cluster::Cluster,
    service::{AccessFile, CleanUpSettings, KeyRequest, Service, Settings, SparkSettings, Submitter},
    store::Store,
    submission::SubmissionId,
};
use sqlx::PgPool;
use tokio_util::sync::{CancellationToken, DropGuard};
use tower::ServiceExt;

use crate::in_memory::settings;
use crate::world::{World, eventually};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// An API, who uses it, and whether the client owns its pods.
struct Wire {
    name: &'static str,
    as_operator: bool,
    owns_pods: bool,
    submit: fn(&str) -> (&'static str, Value),
}

const WIRES: [Wire; 6] = [
    Wire { name: "resources", as_operator: false, owns_pods: false, submit: resource },
    Wire { name: "spark", as_operator: false, owns_pods: false, submit: spark },
    Wire { name: "livy", as_operator: false, owns_pods: false, submit: livy },
    Wire { name: "kubeflow", as_operator: false, owns_pods: false, submit: |namespace| kubeflow(namespace, true) },
    Wire {
        name: "pod of no application",
        as_operator: true,
        owns_pods: false,
        submit: |namespace| kubeflow(namespace, false),
    },
    Wire { name: "operator", as_operator: true, owns_pods: true, submit: |namespace| kubeflow(namespace, true) },
];

fn resource(namespace: &str) -> (&'static str, Value) {
    let properties = json!({"spark.kubernetes.namespace": namespace, "spark.app.name": "resources"});
    ("/v1/submissions", json!({"appResource": "local:///app.jar", "mainClass": "A", "sparkProperties": properties}))
}

fn spark(namespace: &str) -> (&'static str, Value) {
    let properties = json!({"spark.kubernetes.namespace": namespace, "spark.app.name": "spark"});
    let request = json!({
        "action": "CreateSubmissionRequest", "clientSparkVersion": "4.3.0", "appResource": "local:///app.jar", "mainClass": "A",
        "appArgs": [], "environmentVariables": {}, "sparkProperties": properties,
    });
    ("/v1/submissions/create", request)
}

fn livy(namespace: &str) -> (&'static str, Value) {
    let conf = json!({"spark.kubernetes.namespace": namespace});
    ("/batches", json!({"file": "local:///app.jar", "className": "A", "conf": conf}))
}

fn kubeflow(namespace: &str, of_application: bool) -> (&'static str, Value) {
    let owner = json!({"apiVersion": "sparkoperator.k8s.io/v1beta2", "kind": "SparkApplication", "name": "a",
        "uid": uuid::Uuid::new_v4().to_string(), "controller": true});
    let owners = if of_application { json!([owner]) } else { json!([]) };
    let namespace = format!("spark.kubernetes.namespace={namespace}");
    let request = json!({
        "submission_id": uuid::Uuid::new_v4().to_string(),
        "driver_pod_template": {"metadata": {"ownerReferences": owners}, "spec": {"containers": null}},
        "spark_submit_args": ["--class", "A", "--conf", namespace, "local:///a.jar"],
    });
    ("/api/v1/spark-submit", request)
}

/// A gateway behind an access file, whose loops run.
struct Gateway {
    world: World,
    router: Router,
    /// The port of Livy.
    livy: Router,
    submitter: String,
    operator: String,
    /// A key of the one that may own its pods.
    pod_owner: String,
    _running: DropGuard,
}

impl Gateway {
    async fn new(pool: PgPool) -> Self {
        let mut world = World::new(pool.clone()).await;
        let namespace = world.namespace.clone();
        let file = tempfile::NamedTempFile::new().unwrap();
        let access = |members: &str| {
            format!(
                "tenants: {{t: {{namespaces: [{namespace}], caps: {{startTimeout: 1h, runTimeout: 90min}}, members: {members}}}}}"
            )
        };
        fs::write(file.path(), access("[]")).unwrap();
        let keys = serving(&world, file.path()).await;
        let key = async |role: Role| {
            let request = KeyRequest { name: role.to_string(), tenant: Some("t".to_owned()), role, expires_in: None };
            let created = keys.api_keys.create_by_operator(&request).await.unwrap();
            (created.key.id, created.text.expose_secret().to_owned())
        };
        let ((_, submitter), (_, operator)) = (key(Role::Submitter).await, key(Role::Operator).await);
        let (id, pod_owner) = key(Role::Submitter).await;
        fs::write(file.path(), access(&format!("[{{role: submitter, subjects: ['key:{id}'], ownsPods: true}}]")))
            .unwrap();
        world.service = serving(&world, file.path()).await;
        world.watch();
        let stop = CancellationToken::new();
        tokio::spawn(world.service.leadership.clone().run_renewal(stop.clone()));
        tokio::spawn(world.service.launcher.clone().run(stop.clone()));
        tokio::spawn(world.service.events.clone().run(stop.clone()));
        let router = router(world.service.clone(), HttpSettings::default()).unwrap();
        let livy = livy_listener(world.service.clone(), HttpSettings::default()).unwrap();
        Self { world, router, livy, submitter, operator, pod_owner, _running: stop.drop_guard() }
    }

    async fn send(&self, key: &str, path: &str, body: &Value) -> (u16, String) {
        let request = Request::post(path).header(header::HOST, "gateway");
        let request = request.header(header::AUTHORIZATION, format!("Bearer {key}"));
        let request = request.header(header::CONTENT_TYPE, "application/json").body(Body::from(body.to_string()));
        let router = if path == "/batches" { &self.livy } else { &self.router };
        let response = router.clone().oneshot(request.unwrap()).await.unwrap();
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8_lossy(&body).into_owned())
    }

    /// Submits an application by each API, and returns the ids once their pods exist.
    async fn submit_all(&self) -> Vec<(&'static Wire, SubmissionId)> {
        let mut all = Vec::new();
        for wire in &WIRES {
            let (path, body) = (wire.submit)(&self.world.namespace);
            let key = if wire.as_operator { &self.pod_owner } else { &self.submitter };
            let (status, answer) = self.send(key, path, &body).await;
            assert!(matches!(status, 200 | 201), "{}: {answer}", wire.name);
            let id: String = self.column("SELECT id FROM submissions ORDER BY number DESC LIMIT 1", "").await;
            all.push((wire, id.parse().unwrap()));
        }
        for (wire, id) in &all {
            self.until(wire, id, "PENDING").await;
        }
        all
    }

    async fn column<T>(&self, statement: &'static str, id: &str) -> T
    where
        T: Send + Unpin + sqlx::Type<sqlx::Postgres> + for<'r> sqlx::Decode<'r, sqlx::Postgres>,
    {
        let query = sqlx::query_scalar(statement);
        let query = if statement.contains("$1") { query.bind(id.to_owned()) } else { query };
        query.fetch_one(&self.world.pool).await.unwrap()
    }

    async fn state(&self, id: &SubmissionId) -> String {
        self.column("SELECT state FROM submissions WHERE id = $1", id.as_str()).await
    }

    async fn until(&self, wire: &Wire, id: &SubmissionId, state: &str) {
        eventually(|| async {
            let now = self.state(id).await;
            if now == state { Ok(()) } else { Err(format!("{}: {now} and not {state}", wire.name)) }
        })
        .await;
    }

    /// Returns whether the driver pod is there and not being deleted.
    async fn has_pod(&self, id: &SubmissionId) -> bool {
        let name: String =
            self.column("SELECT names ->> 'driverPod' FROM submissions WHERE id = $1", id.as_str()).await;
        let pod = self.world.pods().get_opt(&name).await.unwrap();
        pod.is_some_and(|pod| pod.metadata.deletion_timestamp.is_none())
    }

    async fn clean_up(&self, settings: CleanUpSettings) {
        while self.world.service.leadership.clean_up(&settings).await.unwrap().more {}
    }
}

/// Creates a gateway of the same cluster and database with this access file.
async fn serving(world: &World, access: &std::path::Path) -> Service {
    let cluster = Cluster::new(world.client.clone(), std::slice::from_ref(&world.namespace));
    let defaults = [
        ("spark.kubernetes.container.image", "spark:4.3.0"),
        ("spark.sparkgate.runTimeout", "10min"),
        ("spark.sparkgate.maxRetries.infrastructure", "0"),
    ];
    let defaults = defaults.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    let spark = SparkSettings::new("4.3.0".parse().unwrap(), defaults, Submitter::default(), "tester".to_owned());
    let settings = Settings { kept_log: 0, ..settings(spark) };
    let access = AccessFile::open(access.to_owned(), settings).unwrap();
    let store = Store::new(world.pool.clone());
    Service::new(store, cluster, access).await.unwrap()
}

#[sqlx::test]
async fn caps_hold_on_each_wire_and_only_defaults_are_left_to_a_client(pool: PgPool) {
    let gateway = Gateway::new(pool).await;
    for (wire, id) in gateway.submit_all().await {
        let limits = "SELECT ARRAY[start_timeout, run_timeout] FROM submissions WHERE id = $1";
        let limits: Vec<Option<i32>> = gateway.column(limits, id.as_str()).await;
        // The gateway's default is 10 minutes, the tenant's cap an hour and a half.
        let run = if wire.owns_pods { 5400 } else { 600 };
        assert_eq!(limits, [Some(3600), Some(run)], "{}", wire.name);
        let finalizers = gateway.world.driver_named(&id).await.metadata.finalizers.unwrap_or_default();
        assert_eq!(finalizers.is_empty(), wire.owns_pods, "{}: {finalizers:?}", wire.name);
    }
}

#[sqlx::test]
async fn killall_ends_the_submissions_of_each_wire(pool: PgPool) {
    let gateway = Gateway::new(pool).await;
    let all = gateway.submit_all().await;
    let (status, answer) = gateway.send(&gateway.operator, "/v1/submissions/killall", &json!({})).await;
    assert_eq!(status, 200, "{answer}");
    for (wire, id) in &all {
        gateway.until(wire, id, "KILLED").await;
        assert!(!gateway.has_pod(id).await, "{}", wire.name);
    }
}

#[sqlx::test]
async fn clear_clean_up_and_retention_are_those_of_each_wire(pool: PgPool) {
    let gateway = Gateway::new(pool).await;
    let all = gateway.submit_all().await;
    for (wire, id) in &all {
        gateway.world.play_end_of(id).await;
        gateway.until(wire, id, "FINISHED").await;
    }
    let (status, answer) = gateway.send(&gateway.operator, "/v1/submissions/clear", &json!({})).await;
    assert_eq!(status, 200, "{answer}");
    for (wire, id) in &all {
        let cleared = "SELECT cleared_at IS NOT NULL FROM submissions WHERE id = $1";
        assert!(gateway.column::<bool>(cleared, id.as_str()).await, "{}", wire.name);
        gateway.world.set(id, "finished_at = now() - interval '2 days'").await;
    }
    gateway.clean_up(CleanUpSettings { finished_pod_ttl: Some(DAY), retention: None }).await;
    for (wire, id) in &all {
        assert_eq!(gateway.has_pod(id).await, wire.owns_pods, "{}", wire.name);
        gateway.world.set(id, "pod_deleted_at = pod_deleted_at - interval '1 hour'").await;
    }
    gateway.clean_up(CleanUpSettings { finished_pod_ttl: Some(DAY), retention: Some(DAY) }).await;
    let left: Vec<String> =
        sqlx::query_scalar("SELECT wire FROM submissions").fetch_all(&gateway.world.pool).await.unwrap();
    assert!(left.is_empty(), "{left:?}");
}
