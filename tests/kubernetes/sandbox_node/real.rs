//! The same node with a real kube-apiserver, which accepts the binding, every status and the final delete.

use crate::sandbox_node::world::{World, end, job, waiting};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::DeleteParams;
use serde_json::json;
use sparkgate_testing::kube_apiserver::KubeApiserver;

#[tokio::test]
async fn the_node_works_on_a_real_api_server() {
    let server = KubeApiserver::launch(&[]).await;
    let mut world = World::real(&server).await;
    world.start_node();
    let mut fails = job("fails", "echo oh; exit 3");
    fails["metadata"]["finalizers"] = json!(["example.org/outcome"]);
    world.create::<Pod>(fails).await;
    let pod = world.wait_phase("fails", "Failed").await;
    assert_eq!((end(&pod).exit_code, end(&pod).reason.as_deref()), (3, Some("Error")));

    let mut waits = job("waits", "true");
    waits["spec"]["containers"][0]["envFrom"] = json!([{"configMapRef": {"name": "none"}}]);
    let waits: Pod = world.create(waits).await;
    let reason = |pod: &Pod| waiting(pod).map(|(reason, _)| reason);
    world.wait("waits", "refused", |pod| reason(pod).as_deref() == Some("CreateContainerConfigError")).await;
    world.pods().delete("waits", &DeleteParams::default()).await.unwrap();
    world.wait_gone(&waits).await;

    let runs: Pod = world.create(job("runs", "exec sleep 300")).await;
    world.wait_phase("runs", "Running").await;
    world.pods().delete("runs", &DeleteParams::default()).await.unwrap();
    world.wait_gone(&runs).await;

    let node = Api::<Node>::all(world.client.clone()).get("sandbox").await.unwrap().status.unwrap();
    assert!(node.conditions.unwrap().iter().any(|c| c.type_ == "Ready" && c.status == "True"));
    let port = node.daemon_endpoints.unwrap().kubelet_endpoint.unwrap().port;
    let log = get(port, "/containerLogs/default/fails/spark-kubernetes-driver").await;
    assert!(log.ends_with("oh\n"), "{log}");
    let missing = get(port, "/containerLogs/default/fails/other").await;
    assert!(missing.starts_with("HTTP/1.0 404"), "{missing}");
}

/// Returns the whole reply. HTTP/1.0, so that the connection ends with the reply and no chunks are used.
async fn get(port: i32, path: &str) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", u16::try_from(port).unwrap())).await.unwrap();
    stream.write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}
