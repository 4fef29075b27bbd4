//! A real Prometheus scrapes a gateway while its database and its API server are taken away and its queue gets old: the right
//! alerts fire, and no others.

use std::net::SocketAddr;

use serde_json::json;
use sparkgate_testing::{
    database,
    fault_proxy::{Fault, FaultProxy},
    gateway::{Gateway as Program, sparkgate},
    http,
    kube_apiserver::{GATEWAY, KubeApiserver},
    process::free_address,
};
use sqlx::PgPool;
use tempfile::TempDir;
use tokio::task::spawn_blocking;

use crate::monitoring::prometheus::Prometheus;

/// A key of thirty-two zero bytes.
const KEYS: &str = "a:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n";

/// A gateway behind proxies, to its database and to its API server.
struct Gateway {
    program: Program,
    management: SocketAddr,
    database: FaultProxy,
    api_server: FaultProxy,
    namespace: String,
    dir: TempDir,
}

impl Gateway {
    async fn start(pool: &PgPool) -> Self {
        let server = KubeApiserver::start().await;
        let namespace = format!("test-{}", uuid::Uuid::new_v4().simple());
        server.create_namespace(&namespace).await;
        let dir = TempDir::with_prefix("sparkgate-test-").unwrap();

        let api_server = FaultProxy::start(server.address()).await;
        let kubeconfig = server.kubeconfig_at(GATEWAY, api_server.address());
        std::fs::write(dir.path().join("kubeconfig"), kubeconfig).unwrap();
        let database = FaultProxy::start(database::server()).await;
        let url = database::url_at(pool, database.address());
        std::fs::write(dir.path().join("keys"), KEYS).unwrap();

        let [address, management] = [(); 2].map(|()| free_address());
        let mut command = sparkgate();
        command
            .args(["serve", "--spark-user", "tester", "--namespaces", &namespace])
            .args(["--listen", &address.to_string(), "--management-listen", &management.to_string()])
            .arg("--kubeconfig")
            .arg(dir.path().join("kubeconfig"))
            .arg("--encryption-key-file")
            .arg(dir.path().join("keys"))
            .env("SPARKGATE_DATABASE_URL", url);
        let program = Program::serve(command, address).await;
        Self { program, management, database, api_server, namespace, dir }
    }

    async fn submit(&self) -> String {
        let body = json!({"appResource": "local:///app.jar", "mainClass": "org.example.Main",
            "sparkProperties": {"spark.kubernetes.namespace": self.namespace, "spark.kubernetes.container.image": "spark"}});
        loop {
            let (address, body) = (self.program.address, body.to_string());
            let reply = spawn_blocking(move || http::post(address, "/v1/submissions", &body)).await;
            let reply = reply.unwrap().unwrap();
            // On a busy machine, opening a connection to the database may take longer than a request waits.
            if reply.status == 503 {
                continue;
            }
            assert_eq!(reply.status, 201, "{}", reply.body);
            return reply.json()["id"].as_str().unwrap().to_owned();
        }
    }
}

#[sqlx::test]
async fn faults_fire_their_alerts_and_no_others(pool: PgPool) {
    let gateway = Gateway::start(&pool).await;
    let prometheus = Prometheus::start(gateway.management);
    assert!(prometheus.value("sparkgate:watch_active:max == 1").await > 0.0);
    prometheus.until_quiet().await;

    gateway.database.set(Fault::Refuse);
    gateway.database.cut();
    prometheus.until_firing(&["SparkgateDatabaseAway"]).await;
    gateway.database.set(Fault::None);
    prometheus.until_quiet().await;

    // The queue gets old because nothing can be launched.
    gateway.api_server.set(Fault::Refuse);
    gateway.api_server.cut();
    let id = gateway.submit().await;
    let an_hour_ago = "UPDATE submissions SET queued_at = queued_at - interval '1 hour' WHERE id = $1";
    sqlx::query(an_hour_ago).bind(&id).execute(&pool).await.unwrap();
    let of_the_outage =
        ["SparkgateKubernetesApiErrors", "SparkgateLaunchesFail", "SparkgateNoWatch", "SparkgateSubmissionsWait"];
    prometheus.until_firing(&of_the_outage).await;
    assert_eq!(
        prometheus.value("sparkgate:submissions_oldest_queued_seconds:max{tenant=\"default\"} > 3600").await as u64
            / 600,
        6
    );
    assert!(prometheus.value("sparkgate_circuit_breaker_open").await > 0.0);
    gateway.api_server.set(Fault::None);
    prometheus.until_quiet().await;
    assert!(prometheus.value("sparkgate_submissions{state=\"PENDING\"}").await > 0.0, "the driver was created");
    assert!(prometheus.value("sparkgate_submission_time_to_pod_seconds_sum").await > 3600.0);

    let keys = gateway.dir.path().join("keys");
    std::fs::write(&keys, "no key").unwrap();
    prometheus.until_firing(&["SparkgateFileRefused"]).await;
    std::fs::write(&keys, KEYS).unwrap();
    prometheus.until_quiet().await;

    // What was done is counted once.
    assert_eq!(prometheus.value("sum(sparkgate_submissions_accepted_total{tenant=\"default\"})").await, 1.0);
    assert_eq!(prometheus.value("sparkgate_launch_tries_total{task=\"launch\", result=\"done\"}").await, 1.0);
    let created = "sparkgate_kubernetes_requests_total{verb=\"create\", resource=\"pods\", code=\"201\"}";
    assert_eq!(prometheus.value(created).await, 1.0);
    let posted = "sparkgate_http_requests_total{route=\"/v1/submissions\", method=\"POST\", status=\"201\"}";
    assert_eq!(prometheus.value(posted).await, 1.0);
}
