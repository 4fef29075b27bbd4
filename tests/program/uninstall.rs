//! `sparkgate release-finalizers`: removes the finalizers of driver pods when no gateway is left to do so.

use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api,
    api::{DeleteParams, PostParams},
};
use serde_json::json;
use sparkgate_testing::{
    gateway::sparkgate,
    kube_apiserver::{GATEWAY, KubeApiserver},
};

use crate::crash::Place;

#[tokio::test]
async fn finalizers_of_our_drivers_are_removed_and_no_others() {
    let server = KubeApiserver::start().await;
    let place = Place::new(server).await;
    let pods: Api<Pod> = Api::namespaced(server.admin().await, &place.namespace);
    for (name, label) in [("ours", "sparkgate.dev/submission-id"), ("theirs", "example.org/id")] {
        let pod = json!({"metadata": {"name": name, "finalizers": ["sparkgate.dev/outcome", "example.org/other"],
            "labels": {label: "driver-20260101000000-0001", "sparkgate.dev/attempt": "1", "spark-role": "driver"}},
            "spec": {"containers": [{"name": "a", "image": "a"}]}});
        pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
        pods.delete(name, &DeleteParams::default()).await.unwrap();
    }
    for expected in ["from 1 driver pods", "from 0 driver pods"] {
        let mut command = sparkgate();
        command.args(["release-finalizers", "--namespaces", &place.namespace]);
        let output = command.arg("--kubeconfig").arg(server.file(GATEWAY)).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success() && said.contains(expected), "{said}");
    }
    let finalizers = async |name: &str| pods.get(name).await.unwrap().metadata.finalizers.unwrap();
    assert_eq!(finalizers("ours").await, ["example.org/other"]);
    assert_eq!(finalizers("theirs").await, ["sparkgate.dev/outcome", "example.org/other"]);
}
