//! A gateway whose every step is counted.

use std::collections::BTreeMap;

use sparkgate::{
    cluster::Cluster,
    service::{Caps, Gateway, Settings, SparkSettings, Submitter},
    store::{DatabaseSettings, Store},
};
use sqlx::PgPool;

/// As the program has it by default.
pub(crate) fn spark() -> SparkSettings {
    SparkSettings {
        version: "4.3.0".parse().unwrap(),
        defaults: BTreeMap::new(),
        submitter: Submitter::default(),
        user: "spark".to_owned(),
    }
}

/// A gateway that reaches its database as the program does, over as many connections.
pub(crate) async fn gateway(url: &str, cluster: Cluster) -> Gateway {
    let database = DatabaseSettings { url: url.to_owned(), max_connections: 16 };
    let store = Store::connect(&database).await.unwrap();
    let settings = Settings { spark: spark(), outcome_finalizer: true, caps: Caps::default(), kept_log: 256 << 10 };
    Gateway::new(store, cluster, settings).await.unwrap()
}

/// The URL of a test's own database.
pub(crate) fn url(pool: &PgPool) -> String {
    let server = std::env::var("DATABASE_URL").unwrap();
    let (server, _) = server.rsplit_once('/').unwrap();
    format!("{server}/{}", pool.connect_options().get_database().unwrap())
}
