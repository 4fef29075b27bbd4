//! Replicas of the gateway on one database, whose webhooks may lead to this machine. Their cluster is one in memory without a node,
//! so submissions stay queued until the test writes other states.

use std::{path::Path, sync::Arc};

use axum::{Router, body::Body, http::Request};
use serde_json::{Value, json};
use sparkgate::{
    api::{HttpSettings, router},
    service::{AccessFile, EncryptionKeys, LineageServer, Service, Settings, Setup, WebhookSettings},
    spark::SparkVersion,
    store::Store,
    submission::SubmissionId,
};
use sqlx::PgPool;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::in_memory;

/// A replica.
pub(crate) struct Replica {
    pub(crate) service: Service,
    router: Router,
    pool: PgPool,
    loops: JoinSet<()>,
}

impl Replica {
    /// Creates a replica whose webhooks may lead to loopback.
    pub(crate) async fn new(pool: &PgPool) -> Self {
        let networks = vec!["127.0.0.0/8".parse().unwrap()];
        Self::with(pool, WebhookSettings { networks, http: true, ..WebhookSettings::default() }).await
    }

    /// Creates a replica that encrypts secrets.
    pub(crate) async fn with_keys(pool: &PgPool, file: &Path) -> Self {
        let keys = EncryptionKeys::open(file.to_owned()).unwrap();
        let networks = vec!["127.0.0.0/8".parse().unwrap()];
        Self::of(pool, WebhookSettings { networks, http: true, ..WebhookSettings::default() }, keys, None).await
    }

    pub(crate) async fn with(pool: &PgPool, webhooks: WebhookSettings) -> Self {
        Self::of(pool, webhooks, EncryptionKeys::none(), None).await
    }

    /// Creates a replica whose webhooks may lead to the public internet only, with a lineage server of the operator.
    pub(crate) async fn with_lineage(pool: &PgPool, server: LineageServer) -> Self {
        Self::of(pool, WebhookSettings::default(), EncryptionKeys::none(), Some(server)).await
    }

    async fn of(
        pool: &PgPool,
        webhooks: WebhookSettings,
        keys: EncryptionKeys,
        lineage: Option<LineageServer>,
    ) -> Self {
        let settings = Settings { kept_log: 0, ..in_memory::settings(in_memory::spark(SparkVersion::V4_3)) };
        let setup = Setup { webhooks, lineage, ..Setup::new(Arc::new(AccessFile::none(settings)), Arc::new(keys)) };
        let service = Service::new(Store::new(pool.clone()), in_memory::cluster(), setup).await.unwrap();
        let router = router(service.clone(), HttpSettings::default()).unwrap();
        Self { service, router, pool: pool.clone(), loops: JoinSet::new() }
    }

    /// Runs the loops that webhooks need.
    pub(crate) fn run(mut self) -> Self {
        // Nothing cancels it: a replica ends as a process that is killed.
        let stop = CancellationToken::new();
        self.loops.spawn(self.service.leadership.clone().run_renewal(stop.clone()));
        self.loops.spawn(self.service.events.clone().run(stop.clone()));
        self.loops.spawn(self.service.webhooks.clone().run(stop));
        self
    }

    /// Ends the loops wherever they are. Leases expire by themselves.
    pub(crate) async fn kill(mut self) {
        self.loops.shutdown().await;
    }

    /// Sends a request to the API, and returns status and document.
    pub(crate) async fn ask(&self, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        let request = Request::builder().method(method).uri(path).header("host", "gateway");
        let request = request.header("content-type", "application/json");
        let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
        let answer = in_memory::send(&self.router, request.body(body).unwrap()).await;
        (answer.status, serde_json::from_str(&answer.body).unwrap_or_default())
    }

    /// Creates a webhook and returns it.
    pub(crate) async fn create(&self, request: Value) -> Value {
        let (status, webhook) = self.ask("POST", "/v1/webhooks", Some(request)).await;
        assert_eq!(status, 201, "{webhook}");
        webhook
    }

    pub(crate) async fn submit(&self, more: Value) -> SubmissionId {
        let mut request =
            json!({"appResource": "local:///app.jar", "mainClass": "org.example.Main", "name": "etl-job"});
        request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let (status, submission) = self.ask("POST", "/v1/submissions", Some(request)).await;
        assert_eq!(status, 201, "{submission}");
        submission["id"].as_str().unwrap().parse().unwrap()
    }

    /// Writes the state of a submission with its event, as a replica does that runs it.
    pub(crate) async fn advance(&self, id: &SubmissionId, state: &str) {
        let statement = "WITH changed AS (
                UPDATE submissions SET state = $2, exit_code = CASE WHEN $2 = 'FAILED' THEN 3 END WHERE id = $1 RETURNING id)
            INSERT INTO submission_events (submission_id, attempt, state) SELECT id, 1, $2 FROM changed";
        sqlx::query(statement).bind(id.as_str()).bind(state).execute(&self.pool).await.unwrap();
    }

    /// Returns the deliveries of a webhook, the oldest first.
    pub(crate) async fn deliveries(&self, webhook: &Value) -> Vec<Value> {
        let path = format!("/v1/webhooks/{}/deliveries", webhook["id"].as_str().unwrap());
        let (status, page) = self.ask("GET", &path, None).await;
        assert_eq!(status, 200, "{page}");
        page["items"].as_array().unwrap().iter().rev().cloned().collect()
    }
}
