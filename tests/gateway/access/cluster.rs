//! A cluster in memory behind a port, as a gateway reaches a real one, and what its kubelets would do; the whole database as text.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use kube::{
    Api, Client, Config,
    api::{ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use sparkgate::sandbox::apiserver::Apiserver;
use sqlx::PgPool;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

const DRIVERS: &str = "spark-role=driver";

/// Starts an API server with a namespace, and returns its client.
pub(crate) async fn start(namespace: &str) -> Client {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Apiserver::new(CancellationToken::new()).router();
    tokio::spawn(async move { axum::serve(listener, router).await });
    let client = Client::try_from(Config::new(format!("http://{address}").parse().unwrap())).unwrap();
    let created: Namespace = serde_json::from_value(json!({"metadata": {"name": namespace}})).unwrap();
    Api::all(client.clone()).create(&PostParams::default(), &created).await.unwrap();
    client
}

/// Returns the driver pods of a namespace.
pub(crate) async fn drivers(client: &Client, namespace: &str) -> Vec<Pod> {
    let pods = Api::<Pod>::namespaced(client.clone(), namespace);
    pods.list(&ListParams::default().labels(DRIVERS)).await.unwrap().items
}

/// Returns the pods and `ConfigMaps` of a namespace as text.
pub(crate) async fn objects(client: &Client, namespace: &str) -> String {
    let maps =
        Api::<ConfigMap>::namespaced(client.clone(), namespace).list(&ListParams::default()).await.unwrap().items;
    json!([drivers(client, namespace).await, maps]).to_string()
}

/// Reports as a kubelet the state of a driver's container.
pub(crate) async fn play(client: &Client, driver: &Pod, phase: &str, container: Value) {
    let (name, namespace) = (driver.metadata.name.clone().unwrap(), driver.metadata.namespace.clone().unwrap());
    let status = json!({"status": {"phase": phase, "podIP": "10.1.2.3", "containerStatuses": [{
        "name": "spark-kubernetes-driver", "image": "spark", "imageID": "", "ready": true, "restartCount": 0,
        "state": container}]}});
    let pods = Api::<Pod>::namespaced(client.clone(), &namespace);
    pods.patch_status(&name, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
}

/// Returns all rows of all tables as text.
pub(crate) async fn dump(pool: &PgPool) -> String {
    let tables = "SELECT tablename::text FROM pg_tables WHERE schemaname = 'public'";
    let tables: Vec<String> = sqlx::query_scalar(tables).fetch_all(pool).await.unwrap();
    assert!(tables.iter().any(|table| table == "manifests"), "{tables:?}");
    let mut dump = String::new();
    for table in tables {
        let rows = sqlx::AssertSqlSafe(format!("SELECT t::text FROM {table} t"));
        for row in sqlx::query_scalar::<_, String>(rows).fetch_all(pool).await.unwrap() {
            dump += &format!("{table} {row}\n");
        }
    }
    dump
}
