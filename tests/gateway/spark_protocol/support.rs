//! A router for requests, and its answers.

use std::collections::{BTreeMap, HashSet};

use axum::{Router, body::Body, http::Request};
use http_body_util::BodyExt;
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

/// The limit that was configured for the recorded masters.
pub(crate) const BODY_LIMIT: usize = 2048;

/// Returns the real service on the test's database. Its cluster is an in-memory one without a kubelet or scheduler, so
/// submissions stay queued.
pub(crate) async fn service(version: SparkVersion, pool: PgPool) -> Service {
    service_of(version, Store::new(pool)).await
}

/// Returns the same service on a given store.
pub(crate) async fn service_of(version: SparkVersion, store: Store) -> Service {
    service_with(default_spark(version), store).await
}

/// Returns the same service with these settings of Spark.
pub(crate) async fn service_with(spark: SparkSettings, store: Store) -> Service {
    started(setup(spark), store).await
}

/// Returns the settings of Spark of these services.
pub(crate) fn default_spark(version: SparkVersion) -> SparkSettings {
    let defaults = BTreeMap::from([("spark.kubernetes.container.image".to_owned(), "spark".to_owned())]);
    SparkSettings::new(version, defaults, Submitter::default(), "tester".to_owned())
}

/// Returns the setup of these services.
pub(crate) fn setup(spark: SparkSettings) -> Setup {
    Settings { spark, outcome_finalizer: true, caps: Caps::default(), kept_log: 256 << 10 }.into()
}

/// Returns a service with this setup.
pub(crate) async fn started(setup: Setup, store: Store) -> Service {
    let cluster = Apiserver::new(CancellationToken::new()).router();
    let cluster = MapRequestLayer::new(|request: Request<kube::client::Body>| request.map(Body::new)).layer(cluster);
    let cluster = Cluster::new(kube::Client::new(cluster, "default"), &[]);
    let service = Service::new(store, cluster, setup).await.expect("a gateway");
    // As after the first list of the watch.
    service.pods.take_in(None, [WatchReport::Listed { drivers: HashSet::new(), executors: HashSet::new() }]).await;
    service
}

/// Returns the service's routes.
pub(crate) async fn face(version: SparkVersion, pool: PgPool) -> Router {
    let settings = HttpSettings { max_request_body_bytes: BODY_LIMIT, ..HttpSettings::default() };
    router(service(version, pool).await, settings).unwrap()
}

/// An answer, in the form that is compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

pub(crate) async fn ask(router: &Router, method: &str, target: &str, body: Vec<u8>) -> Answer {
    let request = Request::builder().method(method).uri(target).header("host", "master:6066");
    send(router, request.body(Body::from(body)).expect("a request")).await
}

pub(crate) async fn send(router: &Router, request: Request<Body>) -> Answer {
    let response = router.clone().oneshot(request).await.expect("an answer");
    let (head, body) = response.into_parts();
    let text = |value: &axum::http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    Answer {
        status: head.status.as_u16(),
        headers: head.headers.iter().map(|(key, value)| (key.to_string(), text(value))).collect(),
        body: String::from_utf8(body.collect().await.expect("a body").to_bytes().to_vec()).expect("UTF-8"),
    }
}
