//! `sparkgate serve` as a process, on a database of a test and a cluster in its memory that has no node.

use std::{net::Ipv4Addr, path::Path};

use reqwest::Client;
use serde_json::Value;
use sparkgate::sandbox::apiserver;
use sparkgate_testing::{
    database,
    gateway::{Gateway as Program, sparkgate},
    kubeconfig,
    process::free_address,
    wait::until,
};
use sqlx::PgPool;
use tempfile::TempDir;
use tokio_util::sync::{CancellationToken, DropGuard};

/// What gateways need: the cluster, and a directory for their files.
pub(crate) struct Place {
    dir: TempDir,
    database: String,
    _cluster: DropGuard,
}

/// A gateway that ends with the test, and its client.
pub(crate) struct Gateway {
    program: Program,
    http: Client,
}

impl Place {
    pub(crate) async fn new(pool: &PgPool) -> Self {
        // Fails if the process has one already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let dir = tempfile::tempdir().unwrap();
        let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let cluster = stop.clone();
        tokio::spawn(async move { apiserver::serve(listener, None, cluster).await.unwrap() });
        std::fs::write(dir.path().join("kubeconfig"), kubeconfig::without_tls(address)).unwrap();
        std::fs::write(dir.path().join("defaults.conf"), "spark.kubernetes.container.image spark:4.3.0\n").unwrap();
        Self { dir, database: database::url(pool), _cluster: stop.drop_guard() }
    }

    /// Starts a gateway whose webhooks may lead to this machine, and waits until it is ready.
    pub(crate) async fn start(&self) -> Gateway {
        let (mut command, address) = (sparkgate(), free_address());
        let file = |name: &str| Path::join(self.dir.path(), name);
        command.args(["serve", "--listen", &address.to_string(), "--namespaces", "default"]);
        command.arg("--kubeconfig").arg(file("kubeconfig")).arg("--spark-defaults").arg(file("defaults.conf"));
        command.args(["--webhook-networks", "127.0.0.0/8", "--webhook-http", "true"]);
        command.env("SPARKGATE_DATABASE_URL", &self.database);
        Gateway { program: Program::serve(command, address).await, http: Client::new() }
    }
}

impl Gateway {
    /// Sends SIGKILL.
    pub(crate) fn kill_dash_nine(self) {
        self.program.kill_dash_nine();
    }

    /// Sends a request to the API, and returns the document of its answer. Repeats it while the gateway is busy.
    pub(crate) async fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        let (url, mut document) = (format!("http://{}{path}", self.program.address), Value::Null);
        until("the request is answered", async || {
            let request = self.http.request(method.parse().unwrap(), &url).body(body.to_string());
            let response = request.header("content-type", "application/json").send().await.unwrap();
            let status = response.status();
            document = serde_json::from_str(&response.text().await.unwrap()).unwrap_or_default();
            assert!(status.is_success() || status == 503 || status == 429, "{method} {path}: {status} {document}");
            status.is_success()
        })
        .await;
        document
    }
}
