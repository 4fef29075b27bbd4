//! A bare client of the Kubernetes API: one HTTP/2 connection, bodies that are already JSON, and answers of which it
//! reads only what is needed. Its rate is the most that an API server and a client can do on this machine.

use std::path::Path;

use anyhow::{Context, bail, ensure};
use http::{
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE},
    request::Parts,
};
use http_body_util::{BodyExt, Full};
use hyper::{
    Method, Request, Response,
    body::{Bytes, Incoming},
};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{self, connect::HttpConnector},
    rt::TokioExecutor,
};
use kube::{
    Config,
    client::ConfigExt,
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::json;

/// Flow-control windows as in the gateway, so that the client never has to wait for a window update.
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 64 * 1024 * 1024;

#[derive(Clone)]
pub(crate) struct Client {
    http: legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    base: String,
    /// The `Authorization` header.
    authorization: String,
}

impl Client {
    /// Creates a client with a connection of its own.
    pub(crate) async fn new(kubeconfig: &Path, token: &str) -> anyhow::Result<Self> {
        let file = Kubeconfig::read_from(kubeconfig).context("reading a kubeconfig")?;
        let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        let tls = HttpsConnectorBuilder::new().with_tls_config(config.rustls_client_config()?).https_only();
        let http = legacy::Client::builder(TokioExecutor::new())
            .http2_initial_stream_window_size(STREAM_WINDOW)
            .http2_initial_connection_window_size(CONNECTION_WINDOW)
            .build(tls.enable_http2().wrap_connector(tcp));
        let base = config.cluster_url.to_string();
        Ok(Self { http, base: base.trim_end_matches('/').to_owned(), authorization: format!("Bearer {token}") })
    }

    pub(crate) async fn get(&self, path: &str) -> anyhow::Result<Bytes> {
        self.send(Method::GET, path, "application/json", Bytes::new()).await
    }

    pub(crate) async fn post(&self, path: &str, body: impl Into<Bytes>) -> anyhow::Result<Bytes> {
        self.send(Method::POST, path, "application/json", body.into()).await
    }

    /// Creates an object that is written in YAML.
    pub(crate) async fn post_yaml(&self, path: &str, body: impl Into<Bytes>) -> anyhow::Result<Bytes> {
        self.send(Method::POST, path, "application/yaml", body.into()).await
    }

    pub(crate) async fn create_namespace(&self, name: &str) -> anyhow::Result<()> {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        self.post("/api/v1/namespaces", namespace.to_string()).await.map(drop)
    }

    /// Sends a JSON merge patch.
    pub(crate) async fn merge(&self, path: &str, body: impl Into<Bytes>) -> anyhow::Result<Bytes> {
        self.send(Method::PATCH, path, "application/merge-patch+json", body.into()).await
    }

    pub(crate) async fn delete(&self, path: &str) -> anyhow::Result<Bytes> {
        self.send(Method::DELETE, path, "application/json", Bytes::new()).await
    }

    /// Opens a watch of objects in this format.
    pub(crate) async fn watch(&self, path: &str, format: &str) -> anyhow::Result<Incoming> {
        let request = Request::builder().uri(format!("{}{path}", self.base));
        let request = request.header(AUTHORIZATION, &self.authorization).header(ACCEPT, format);
        let answer = self.http.request(request.body(Full::default())?).await.with_context(|| path.to_owned())?;
        ensure!(answer.status().is_success(), "GET {path}: {}", answer.status());
        Ok(answer.into_body())
    }

    /// Forwards another client's request with our own credentials.
    pub(crate) async fn forward(&self, parts: Parts, body: Bytes) -> anyhow::Result<Response<Incoming>> {
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
        let mut request = Request::builder().method(parts.method).uri(format!("{}{path}", self.base));
        for name in [CONTENT_TYPE, ACCEPT] {
            if let Some(value) = parts.headers.get(&name) {
                request = request.header(name, value);
            }
        }
        let request = request.header(AUTHORIZATION, &self.authorization).body(Full::new(body))?;
        Ok(self.http.request(request).await?)
    }

    async fn send(&self, method: Method, path: &str, kind: &str, body: Bytes) -> anyhow::Result<Bytes> {
        let request = Request::builder().method(&method).uri(format!("{}{path}", self.base));
        let request = request.header(AUTHORIZATION, &self.authorization).header(CONTENT_TYPE, kind);
        let answer = self.http.request(request.body(Full::new(body))?).await;
        let answer = answer.with_context(|| format!("{method} {path}"))?;
        let status = answer.status();
        let body = answer.into_body().collect().await.with_context(|| format!("{method} {path}"))?.to_bytes();
        if !status.is_success() {
            bail!("{method} {path}: {status}: {}", String::from_utf8_lossy(&body));
        }
        Ok(body)
    }
}
