use std::sync::{Arc, Mutex};

use http::{Method, Request, Response};
use kube::client::Body;
use serde_json::{Value, json};

use super::*;

fn pod(name: &str, finalizers: &Value) -> Value {
    json!({"metadata": {"namespace": "spark", "name": name, "uid": name, "finalizers": finalizers},
        "status": {"phase": {"not": "a phase"}}})
}

fn page(items: &[Value], next: &str) -> (u16, Value) {
    (200, json!({"metadata": {"resourceVersion": "7", "continue": next}, "items": items}))
}

fn failure(code: u16) -> (u16, Value) {
    let reason = if code == 410 { "Expired" } else { "Forbidden" };
    (code, json!({"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": "no", "details": {"kind": "pods"}}))
}

/// Returns a cluster that answers lists from a script and accepts the removal of the finalizer for all pods but those named
/// `stubborn…`, and the names of the pods that it was asked for.
fn cluster(mut lists: Vec<(u16, Value)>) -> (Cluster, Arc<Mutex<Vec<String>>>) {
    lists.reverse();
    let (lists, asked) = (Mutex::new(lists), Arc::new(Mutex::new(Vec::new())));
    let names = asked.clone();
    let (lists, answers) = (Arc::new(lists), asked);
    let service = tower::service_fn(move |request: Request<Body>| {
        let (code, answer) = if request.method() == Method::PATCH {
            let name = request.uri().path().rsplit('/').next().unwrap().to_owned();
            let answer = if name.starts_with("stubborn") { failure(403) } else { (200, pod(&name, &json!([]))) };
            answers.lock().unwrap().push(name);
            answer
        } else {
            lists.lock().unwrap().pop().unwrap()
        };
        let answer = Response::builder().status(code).body(Body::from(answer.to_string().into_bytes()));
        std::future::ready(answer)
    });
    (Cluster::new(kube::Client::new(service, "default"), &[]), names)
}

#[tokio::test]
async fn an_unreadable_pod_or_an_expired_list_does_not_stop_the_release() {
    let ours = json!([labels::FINALIZER]);
    let first = page(&[pod("a", &ours), pod("odd", &json!({"no": "list"})), pod("free", &json!(["x"]))], "1");
    let (cluster, asked) = cluster(vec![
        first,
        failure(410),
        page(&[pod("a", &json!([])), pod("stubborn", &ours)], "2"),
        page(&[pod("b", &ours)], ""),
    ]);
    let done = cluster.release_finalizers().await.unwrap();
    assert_eq!(done, Released { released: 2, failed: ["spark/stubborn".to_owned()].into() });
    assert_eq!(*asked.lock().unwrap(), ["a", "stubborn", "b"]);
}

#[tokio::test]
async fn finalizers_removed_before_a_list_fails_stay_removed() {
    let (cluster, asked) = cluster(vec![page(&[pod("a", &json!([labels::FINALIZER]))], "1"), failure(403)]);
    cluster.release_finalizers().await.unwrap_err();
    assert_eq!(*asked.lock().unwrap(), ["a"]);
}
