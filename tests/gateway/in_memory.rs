//! A gateway whose cluster is one in memory without a kubelet or scheduler, so that submissions stay queued; and its answers.

use std::collections::{BTreeMap, HashSet};

use axum::{
    Router,
    body::Body,
    http::{HeaderValue, Request, header},
};
use http_body_util::BodyExt;
use kube::Client;
use sparkgate::{
    api::{HttpSettings, router},
    cluster::{Cluster, WatchReport},
    sandbox::apiserver::Apiserver,
    service::{Caps, Service, Settings, Setup, SparkSettings, Submitter},
    spark::SparkVersion,
    store::Store,
};
use sqlx::PgPool;
use tokio_util::sync::CancellationToken;
use tower::{Layer, ServiceExt, util::MapRequestLayer};

/// The limit of bodies that was configured for the recorded Spark masters.
pub(crate) const BODY_LIMIT: usize = 2048;

/// Returns a client of an API server in memory.
pub(crate) fn client() -> Client {
    client_of(Apiserver::new(CancellationToken::new()).router())
}

/// Returns a client of a router that answers as an API server does.
pub(crate) fn client_of(apiserver: Router) -> Client {
    let body = MapRequestLayer::new(|request: Request<kube::client::Body>| request.map(Body::new));
    Client::new(body.layer(apiserver), "default")
}

/// Returns a cluster on an API server in memory.
pub(crate) fn cluster() -> Cluster {
    Cluster::new(client(), &[])
}

/// Returns the settings of Spark of a gateway that needs no more than an image.
pub(crate) fn spark(version: SparkVersion) -> SparkSettings {
    let defaults = BTreeMap::from([("spark.kubernetes.container.image".to_owned(), "spark".to_owned())]);
    SparkSettings::new(version, defaults, Submitter::default(), "tester".to_owned())
}

/// Returns the settings of a gateway without caps.
pub(crate) fn settings(spark: SparkSettings) -> Settings {
    Settings { spark, outcome_finalizer: true, caps: Caps::default(), kept_log: 256 << 10 }
}

/// Returns a gateway of a Spark version.
pub(crate) async fn service(version: SparkVersion, store: Store) -> Service {
    started(store, cluster(), settings(spark(version))).await
}

/// Returns a gateway as it is after the first list of the watch.
pub(crate) async fn started(store: Store, cluster: Cluster, setup: impl Into<Setup>) -> Service {
    let service = Service::new(store, cluster, setup).await.expect("a gateway");
    let listed = WatchReport::Listed { drivers: HashSet::new(), executors: HashSet::new() };
    service.pods.process_reports(None, [listed]).await;
    service
}

/// Returns the routes of a gateway with the limit of bodies of the recorded masters.
pub(crate) async fn face(version: SparkVersion, pool: PgPool) -> Router {
    let settings = HttpSettings { max_request_body_bytes: BODY_LIMIT, ..HttpSettings::default() };
    router(service(version, Store::new(pool)).await, settings).unwrap()
}

/// An answer over HTTP. Of a header that occurs more than once, it has the last value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

impl Answer {
    /// Returns the value of a header, whose name is in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// Returns the document in the body.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

/// Sends a request with a body and the host of a Spark master.
pub(crate) async fn ask(router: &Router, method: &str, target: &str, body: Vec<u8>) -> Answer {
    let request = Request::builder().method(method).uri(target).header("host", "master:6066");
    send(router, request.body(Body::from(body)).expect("a request")).await
}

/// Sends a request. A compressed body is no text, so nothing but its length can be compared.
pub(crate) async fn send(router: &Router, request: Request<Body>) -> Answer {
    let (head, body) = router.clone().oneshot(request).await.expect("an answer").into_parts();
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let bytes = body.collect().await.expect("a body").to_bytes();
    let body = match head.headers.contains_key(header::CONTENT_ENCODING) {
        true => String::from_utf8_lossy(&bytes).into_owned(),
        false => String::from_utf8(bytes.to_vec()).expect("UTF-8"),
    };
    Answer {
        status: head.status.as_u16(),
        headers: head.headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect(),
        body,
    }
}
