//! A gateway of which every step is counted.

use std::collections::BTreeMap;

use kube::client::Body;
use sparkgate::{
    cluster::Cluster,
    service::{Caps, Service, Settings, SparkSettings, Submitter},
    store::{DatabaseSettings, Store},
};

/// Returns the program's default settings.
pub(crate) fn spark() -> SparkSettings {
    SparkSettings::new("4.3.0".parse().unwrap(), BTreeMap::new(), Submitter::default(), "spark".to_owned())
}

/// Creates a gateway that connects to its database as the program does, with the same number of connections.
pub(crate) async fn service(url: &str, cluster: Cluster) -> Service {
    let database = DatabaseSettings { url: url.to_owned(), max_connections: 16 };
    let store = Store::connect(&database).await.unwrap();
    let settings = Settings { spark: spark(), outcome_finalizer: true, caps: Caps::default(), kept_log: 256 << 10 };
    Service::new(store, cluster, settings).await.unwrap()
}

/// Returns a cluster that gets no calls.
pub(crate) fn nowhere() -> Cluster {
    let refuse = tower::service_fn(async |_: http::Request<Body>| -> Result<http::Response<Body>, std::io::Error> {
        Err(std::io::ErrorKind::ConnectionRefused.into())
    });
    Cluster::new(kube::Client::new(refuse, "default"), &[])
}
