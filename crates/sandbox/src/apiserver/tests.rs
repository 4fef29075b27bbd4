//! Tests of what the script that also runs against a real server can't show: logs through a kubelet, a WebSocket, shutdown, web
//! pages.

use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::routing::get;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tower::ServiceExt;

use super::*;

const PODS: &str = "/api/v1/namespaces/default/pods";
const PATIENCE: Duration = Duration::from_secs(20);

async fn send(server: &Apiserver, method: &str, path: &str, body: Value) -> (StatusCode, String) {
    let request = Request::builder().method(method).uri(path).body(Body::from(body.to_string())).unwrap();
    receive(server, request).await
}

async fn receive(server: &Apiserver, request: Request) -> (StatusCode, String) {
    let response = server.router().oneshot(request).await.unwrap();
    let status = response.status();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(bytes.to_vec()).unwrap())
}

async fn listen() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

/// Returns a server with a pod on a node whose kubelet listens at `port`.
async fn pod_on_node(port: u16) -> Apiserver {
    let server = Apiserver::default();
    let node = json!({ "metadata": { "name": "n" }, "status": {
        "addresses": [{ "type": "InternalIP", "address": "127.0.0.1" }],
        "daemonEndpoints": { "kubeletEndpoint": { "Port": port } } } });
    assert_eq!(send(&server, "POST", "/api/v1/nodes", node).await.0, StatusCode::CREATED);
    let pod = json!({ "metadata": { "name": "p" }, "spec": { "nodeName": "n", "containers": [{ "name": "c", "image": "i" }] } });
    assert_eq!(send(&server, "POST", PODS, pod).await.0, StatusCode::CREATED);
    server
}

#[tokio::test]
async fn an_access_review_is_allowed() {
    let review = json!({ "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": { "resourceAttributes": { "verb": "create", "resource": "pods" } } });
    let (status, text) = send(&Apiserver::default(), "POST", review::PATH, review).await;
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((status, &answer["status"]["allowed"]), (StatusCode::CREATED, &json!(true)));
    assert_eq!(answer["spec"]["resourceAttributes"]["verb"], "create");
}

#[tokio::test]
async fn a_client_is_told_its_name() {
    let review = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview" });
    let (status, text) = send(&Apiserver::default(), "POST", review::WHO, review).await;
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((status, &answer["status"]["userInfo"]["username"]), (StatusCode::CREATED, &json!("sandbox")));
    assert_eq!(answer["kind"], "SelfSubjectReview");
}

#[tokio::test]
async fn logs_come_from_the_kubelet() {
    let (listener, port) = listen().await;
    let kubelet = Router::new().route(
        "/containerLogs/{namespace}/{pod}/{container}",
        get(|request: Request| async move {
            match request.uri().query() {
                Some("previous=true") => (StatusCode::NOT_FOUND, "no previous container".to_owned()),
                _ => (StatusCode::OK, format!("asked for {}", request.uri())),
            }
        }),
    );
    tokio::spawn(axum::serve(listener, kubelet).into_future());
    let server = pod_on_node(port).await;
    let (status, text) = send(&server, "GET", &format!("{PODS}/p/log?container=c&tailLines=5"), json!(null)).await;
    assert_eq!((status, text.as_str()), (StatusCode::OK, "asked for /containerLogs/default/p/c?tailLines=5"));
    let (status, text) = send(&server, "GET", &format!("{PODS}/p/log?previous=true"), json!(null)).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    assert!(text.contains("no previous container"), "{text}");
}

#[tokio::test]
async fn an_unreachable_kubelet_is_reported() {
    let (listener, port) = listen().await;
    drop(listener);
    let server = pod_on_node(port).await;
    let (status, text) = send(&server, "GET", &format!("{PODS}/p/log"), json!(null)).await;
    assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
    assert!(text.contains(&format!("http://127.0.0.1:{port}/containerLogs/default/p/c")), "{text}");
}

#[tokio::test]
async fn a_watch_works_over_a_websocket() {
    let (listener, port) = listen().await;
    let shutdown = CancellationToken::new();
    let serving = tokio::spawn(serve(listener, None, shutdown.clone()));
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let request = "GET /api/v1/namespaces?watch=true HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n\
        Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut received = Vec::new();
    while !String::from_utf8_lossy(&received).contains("kube-system") {
        assert_ne!(timeout(PATIENCE, stream.read_buf(&mut received)).await.unwrap().unwrap(), 0);
    }
    let text = String::from_utf8_lossy(&received);
    assert!(text.starts_with("HTTP/1.1 101 ") && text.contains("{\"type\":\"ADDED\",\"object\":{"), "{text}");
    shutdown.cancel();
    timeout(PATIENCE, serving).await.unwrap().unwrap().unwrap();
}

#[tokio::test]
async fn a_watch_does_not_delay_a_shutdown() {
    let (listener, port) = listen().await;
    let shutdown = CancellationToken::new();
    let serving = tokio::spawn(serve(listener, None, shutdown.clone()));
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let request = format!("GET {PODS}?watch=true HTTP/1.1\r\nHost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut received = Vec::new();
    while !received.windows(4).any(|end| end == b"\r\n\r\n") {
        assert_ne!(timeout(PATIENCE, stream.read_buf(&mut received)).await.unwrap().unwrap(), 0);
    }
    shutdown.cancel();
    timeout(PATIENCE, serving).await.unwrap().unwrap().unwrap();
}

#[tokio::test]
async fn requests_of_web_pages_are_refused() {
    let server = Apiserver::default();
    for (header, value) in [("origin", "http://evil.example"), ("host", "evil.example:8001"), ("origin", "null")] {
        let request = Request::get(PODS).header(header, value).body(Body::empty()).unwrap();
        assert_eq!(receive(&server, request).await.0, StatusCode::FORBIDDEN, "{header}: {value}");
    }
    let request = Request::get(PODS).header("host", "127.0.0.1:8001").body(Body::empty()).unwrap();
    assert_eq!(receive(&server, request).await.0, StatusCode::OK);
}

#[tokio::test]
async fn versions_of_an_earlier_process_are_expired() {
    let earlier = chrono::Utc::now().timestamp_millis() - 1;
    let server = Apiserver::default();
    let path = format!("{PODS}?watch=true&resourceVersion={earlier}");
    let (status, text) = send(&server, "GET", &path, json!(null)).await;
    assert_eq!(status, StatusCode::OK);
    assert!(text.contains("\"type\":\"ERROR\"") && text.contains("\"code\":410"), "{text}");
}

#[tokio::test]
async fn malicious_requests_are_refused() {
    let server = Apiserver::default();
    let nested = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for body in
        [nested.as_str(), "null", "[]", "\"\"", "{\"metadata\":[]}", "{\"metadata\":{\"name\":\"a\\u0000\"}}", ""]
    {
        let request = Request::post(PODS).body(Body::from(body.to_owned())).unwrap();
        let (status, text) = receive(&server, request).await;
        assert!(status.is_client_error(), "{} {text}", &body[..body.len().min(40)]);
    }
    for query in [
        "limit=-1",
        "limit=99999999999999999999",
        "continue=AAAA",
        "labelSelector=%00",
        "watch=true&timeoutSeconds=-9&resourceVersion=1",
    ] {
        let (status, _) = send(&server, "GET", &format!("{PODS}?{query}"), json!(null)).await;
        assert!(!status.is_server_error(), "{query}");
    }
    let grace = json!({ "metadata": { "name": "p" }, "spec": { "nodeName": "n", "terminationGracePeriodSeconds": i64::MAX,
        "containers": [{ "name": "c", "image": "i" }] } });
    send(&server, "POST", PODS, grace).await;
    assert_eq!(send(&server, "DELETE", &format!("{PODS}/p"), json!({})).await.0, StatusCode::OK);
}

#[tokio::test]
async fn a_server_with_a_token_admits_only_clients_that_have_it() {
    let router = with_token(Apiserver::default().router(), "s3cret");
    for (header, status) in [("", 401), ("Bearer other", 401), ("s3cret", 401), ("Bearer s3cret", 200)] {
        let request = Request::get(PODS).header("authorization", header).body(Body::empty()).unwrap();
        let answer = router.clone().oneshot(request).await.unwrap();
        assert_eq!(answer.status().as_u16(), status, "{header:?}");
    }
}
