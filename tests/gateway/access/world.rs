//! A gateway with an access file of two tenants, and requests to it.

use std::{io::Write, path::Path, sync::Arc, time::Duration};

use axum::{
    Router,
    body::Body,
    http::{Request, header},
    response::Response,
};
use kube::Client;
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use sparkgate::{
    access::Role,
    api::{HttpSettings, router},
    cluster::Cluster,
    files::FileStore,
    service::{AccessFile, EncryptionKeys, FileSettings, KeyRequest, Pace, Service, Settings, Setup},
    spark::SparkVersion,
    store::Store,
};
use sqlx::PgPool;
use tempfile::NamedTempFile;
use tokio_util::sync::{CancellationToken, DropGuard};
use tower::ServiceExt;

use crate::in_memory::{self, Answer};

/// Two tenants with a namespace each. Keys have their roles themselves.
pub(crate) const TWO_TENANTS: &str = "
authentication: {}
tenants:
  red: {namespaces: [red, red-batch]}
  blue: {namespaces: [blue]}
limits: {writes: 100000/s, reads: 100000/s, failedLogins: 100000/s}
";

/// Returns settings of files for clients that are never too slow, and whose errors come at once.
pub(crate) fn file_settings() -> FileSettings {
    FileSettings {
        base_url: "http://gateway:6066".to_owned(),
        driver_url: None,
        largest: 1 << 20,
        part: 1 << 20,
        unused_ttl: None,
        patience: Duration::ZERO,
        pace: Pace::SLOWEST,
    }
}

/// A gateway, and its access file.
pub(crate) struct World {
    pub(crate) service: Service,
    pub(crate) router: Router,
    pub(crate) file: NamedTempFile,
    pub(crate) pool: PgPool,
    /// The API server's client, for the test's reads and the actions of kubelets.
    pub(crate) client: Client,
    /// What the service is created with.
    pub(crate) parts: Box<(Store, Cluster, Setup)>,
}

/// Creates a service as it is after the first list of the watch, and its routes.
async fn started((store, cluster, setup): &(Store, Cluster, Setup)) -> (Service, Router) {
    let service = in_memory::started(store.clone(), cluster.clone(), setup.clone()).await;
    let router = router(service.clone(), HttpSettings::default()).unwrap();
    (service, router)
}

impl World {
    pub(crate) async fn new(pool: PgPool, access: &str) -> Self {
        Self::on(Store::new(pool.clone()), pool, access).await
    }

    /// Creates the same on another store of the database.
    pub(crate) async fn on(store: Store, pool: PgPool, access: &str) -> Self {
        Self::of(store, pool, access, in_memory::client(), EncryptionKeys::none()).await
    }

    /// Creates a gateway on this API server, with these keys.
    pub(crate) async fn of(store: Store, pool: PgPool, access: &str, client: Client, keys: EncryptionKeys) -> Self {
        let mut file = NamedTempFile::new().unwrap();
        file.write_all(access.as_bytes()).unwrap();
        // Tests of anything else must not depend on how fast they are.
        if !access.contains("\nlimits:") {
            file.write_all(b"\nlimits: {writes: 100000/s, reads: 100000/s}\n").unwrap();
        }
        let cluster = Cluster::new(client.clone(), &[]);
        let mut spark = in_memory::spark(SparkVersion::V4_3);
        spark.defaults.insert("spark.kubernetes.namespace".to_owned(), "elsewhere".to_owned());
        let settings = Settings { kept_log: 0, ..in_memory::settings(spark) };
        let access = AccessFile::open(file.path().to_owned(), settings).unwrap();
        let setup = Setup::new(Arc::new(access), Arc::new(keys));
        let parts = Box::new((store, cluster, setup));
        let (service, router) = started(&parts).await;
        Self { service, router, file, pool, client, parts }
    }

    /// Replaces the gateway by one with other settings.
    pub(crate) async fn configure(&mut self, change: impl FnOnce(&mut Setup)) {
        change(&mut self.parts.2);
        (self.service, self.router) = started(&self.parts).await;
    }

    /// Keeps files in a directory.
    pub(crate) async fn keep_files(&mut self, dir: &Path, settings: FileSettings) {
        let store = FileStore::open(dir.to_str().unwrap()).unwrap();
        self.configure(|setup| setup.files = Some((store, settings))).await;
    }

    /// Reads the access file whenever it changes, until the guard is dropped.
    pub(crate) fn follow_access_file(&self) -> DropGuard {
        let stop = CancellationToken::new();
        let guard = stop.clone().drop_guard();
        tokio::spawn(self.service.access.clone().run(Store::new(self.pool.clone()), stop));
        guard
    }

    /// Creates an API key with a role in a tenant, or in all, and returns its text.
    pub(crate) async fn key(&self, role: Role, tenant: Option<&str>) -> String {
        let name = format!("{role}-{}", tenant.unwrap_or("all"));
        let request = KeyRequest { name, tenant: tenant.map(str::to_owned), role, expires_in: None };
        let created = self.service.api_keys.create_by_operator(&request).await.unwrap();
        created.text.expose_secret().to_owned()
    }

    /// Sends a request and returns the response without its body, which may be endless.
    pub(crate) async fn open(&self, token: &str, path: &str) -> Response {
        let request = Request::get(path).header(header::HOST, "gateway");
        let request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        let request = request.header(header::ACCEPT, "text/event-stream, */*").body(Body::empty());
        self.router.clone().oneshot(request.unwrap()).await.unwrap()
    }

    /// Sends a request with a token, if there is one.
    pub(crate) async fn send(&self, token: Option<&str>, method: &str, path: &str, body: Option<&Value>) -> Answer {
        let mut request = Request::builder().method(method).uri(path).header(header::HOST, "gateway");
        if let Some(token) = token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        if body.is_some() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        let body = body.map(|body| Body::from(body.to_string())).unwrap_or_default();
        self.answer(request.body(body).unwrap()).await
    }

    /// Sends a request.
    pub(crate) async fn answer(&self, request: Request<Body>) -> Answer {
        in_memory::send(&self.router, request).await
    }

    pub(crate) async fn get(&self, token: &str, path: &str) -> Answer {
        self.send(Some(token), "GET", path, None).await
    }

    /// Opens a session in a namespace and returns its id.
    pub(crate) async fn open_session(&self, token: &str, namespace: &str) -> String {
        let answer = self.send(Some(token), "POST", "/v1/sessions", Some(&session(namespace))).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.json()["id"].as_str().unwrap().to_owned()
    }

    /// Submits a job to a namespace and returns its id.
    pub(crate) async fn submit(&self, token: &str, namespace: &str) -> String {
        let answer = self.send(Some(token), "POST", "/v1/submissions", Some(&job(namespace))).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.json()["id"].as_str().unwrap().to_owned()
    }
}

/// Returns a request for a session with a name of its own.
pub(crate) fn session(namespace: &str) -> Value {
    let name = format!("s-{}", uuid::Uuid::new_v4().simple());
    json!({"name": name, "sparkProperties": {"spark.kubernetes.namespace": namespace}})
}

/// Returns a request for the resource API.
pub(crate) fn job(namespace: &str) -> Value {
    json!({
        "appResource": "local:///app.jar",
        "mainClass": "org.example.Main",
        "sparkProperties": {"spark.kubernetes.namespace": namespace, "spark.app.name": "job"},
    })
}

/// Returns a request for Spark's protocol.
pub(crate) fn spark_job(namespace: &str) -> Value {
    json!({
        "action": "CreateSubmissionRequest",
        "clientSparkVersion": "4.3.0",
        "appResource": "local:///app.jar",
        "mainClass": "org.example.Main",
        "appArgs": [],
        "environmentVariables": {},
        "sparkProperties": {"spark.kubernetes.namespace": namespace, "spark.app.name": "job"},
    })
}
