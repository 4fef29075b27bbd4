//! Cases that a real API server doesn't produce on demand: pods that can't be read, lists that expire half-way, watches
//! that end at once. The server follows a script.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{StatusCode, Uri};
use kube::client::Body;
use serde_json::{Value, json};
use sparkgate::cluster::{Cluster, WatchReport};

use crate::watch::watching::{Watching, names};
use crate::watch::world::brisk;

/// The remaining replies, in their order: to lists and to watches.
type Script = Arc<Mutex<(Vec<Reply>, Vec<Reply>)>>;

#[derive(Clone)]
enum Reply {
    Page { version: u32, items: Vec<Value>, next: &'static str },
    Events(Vec<Value>),
    Text(String),
    Status(u16),
}

async fn answer(State(script): State<Script>, uri: Uri) -> Response {
    let query = uri.query().unwrap_or_default();
    let reply = {
        let (lists, watches) = &mut *script.lock().unwrap();
        let replies = if query.contains("watch=true") { watches } else { lists };
        // The last reply is repeated.
        if replies.len() > 1 { replies.remove(0) } else { replies[0].clone() }
    };
    match reply {
        Reply::Page { version, items, next } => {
            let metadata = json!({"resourceVersion": version.to_string(), "continue": next});
            json!({"kind": "PodList", "metadata": metadata, "items": items}).to_string().into_response()
        }
        Reply::Events(events) => events.iter().map(|event| format!("{event}\n")).collect::<String>().into_response(),
        Reply::Text(text) => text.into_response(),
        Reply::Status(code) => (StatusCode::from_u16(code).unwrap(), status(code).to_string()).into_response(),
    }
}

fn status(code: u16) -> Value {
    let (reason, message) = match code {
        410 => ("Expired", "as the script says"),
        // Of a version in the future.
        504 => ("Timeout", "Too large resource version, as the script says"),
        503 => ("ServiceUnavailable", "as the script says"),
        _ => ("InternalError", "as the script says"),
    };
    json!({"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message})
}

fn watch(lists: &[Reply], watches: &[Reply], resume: Option<&str>) -> Watching {
    let script: Script = Arc::new(Mutex::new((lists.to_vec(), watches.to_vec())));
    let router = Router::new().fallback(answer).with_state(script);
    let service = tower::ServiceBuilder::new()
        .map_request(|request: http::Request<Body>| request.map(axum::body::Body::new))
        .service(router);
    let cluster = Cluster::new(kube::Client::new(service, "default"), &[]).with_pace(brisk());
    Watching::new(cluster.watch(None, resume.map(str::to_owned)))
}

fn driver(number: u32, version: &str) -> Value {
    json!({"metadata": {"name": "driver", "uid": format!("u{number}"), "resourceVersion": version,
        "labels": {"spark-role": "driver", "sparkgate.dev/submission-id": format!("driver-{number}"),
            "sparkgate.dev/attempt": "1"}}, "status": {"phase": "Running"}})
}

/// Returns a pod with valid labels and an invalid status.
fn unreadable(number: u32, version: &str) -> Value {
    let mut pod = driver(number, version);
    pod["status"] = json!("of another kind");
    pod
}

fn event(kind: &str, object: &Value) -> Value {
    json!({"type": kind, "object": object})
}

fn page(version: u32, items: &[Value]) -> Reply {
    Reply::Page { version, items: items.to_vec(), next: "" }
}

#[tokio::test]
async fn a_pod_that_cannot_be_read_stops_neither_list_nor_watch() {
    let list =
        page(10, &[unreadable(1, "5"), driver(2, "6"), json!("no pod at all"), json!({"metadata": {"labels": 7}})]);
    let events = vec![
        event("MODIFIED", &unreadable(1, "11")),
        json!({"type": 3}),
        event("DANCED", &driver(9, "11")),
        event("BOOKMARK", &json!({"kind": "Pod", "metadata": {"resourceVersion": "12"}, "spec": {"containers": null}})),
        event("ADDED", &driver(3, "13")),
    ];
    let mut watch = watch(&[list], &[Reply::Text("not JSON\n\n".to_owned()), Reply::Events(events)], None);
    let (items, listed) = watch.listed().await;
    assert_eq!(listed, names(["driver-1", "driver-2"]), "an unreadable pod still exists");
    assert_eq!(items.len(), 1, "{items:?}");
    assert_eq!(watch.version.as_deref(), Some("10"));
    assert_eq!(watch.driver(|_| true).await.submission.as_str(), "driver-3");
    assert_eq!(watch.version.as_deref(), Some("13"));
}

#[tokio::test]
async fn a_list_that_expires_half_way_begins_anew() {
    let first = Reply::Page { version: 10, items: vec![driver(1, "5")], next: "more" };
    let lists = [first.clone(), Reply::Status(410), first, page(10, &[driver(2, "6")])];
    let mut watch = watch(&lists, &[Reply::Events(Vec::new())], None);
    let (items, listed) = watch.listed().await;
    assert_eq!(listed, names(["driver-1", "driver-2"]));
    assert!(!items.iter().any(|seen| matches!(seen, WatchReport::Broken { .. })), "{items:?}");
}

#[tokio::test]
async fn deletions_before_the_list_are_shown_up_to_the_lists_version() {
    let past = vec![
        event("DELETED", &driver(1, "8")),
        event("MODIFIED", &driver(2, "12")),
        event("DELETED", &driver(2, "13")),
    ];
    let mut watch = watch(&[page(10, &[driver(2, "6")])], &[Reply::Events(past)], Some("7"));
    let (items, _) = watch.listed().await;
    let gone: Vec<_> = items.iter().map(|seen| matches!(seen, WatchReport::Driver(driver) if driver.gone)).collect();
    assert_eq!(gone, [false, true, false], "the list follows the first event after its version: {items:?}");
    assert_eq!(watch.version.as_deref(), Some("12"));
    watch.driver(|seen| seen.gone).await;
}

/// An API server that is behind refuses the position (504) once: deletions meanwhile aren't lost. A watch that ends at
/// once has sent its changes before.
#[tokio::test]
async fn a_failed_watch_is_tried_once_more_after_the_list() {
    let lists = [page(10, &[driver(1, "5")]), page(12, &[])];
    let gone = Reply::Events(vec![event("DELETED", &driver(1, "11"))]);
    let mut watch = watch(&lists, &[Reply::Status(504), gone, Reply::Events(Vec::new())], None);
    assert_eq!(watch.listed().await.1, names(["driver-1"]));
    let (items, listed) = watch.listed().await;
    assert!(matches!(&items[..], [WatchReport::Driver(driver)] if driver.gone), "{items:?}");
    assert_eq!((listed, watch.version.as_deref()), (names([]), Some("12")));
}

#[tokio::test]
async fn an_expired_watch_lists_again_and_other_errors_are_retried() {
    let watches = [
        Reply::Status(503),
        Reply::Events(vec![event("ADDED", &driver(1, "11")), event("ERROR", &status(500))]),
        Reply::Status(500),
        Reply::Events(vec![event("ERROR", &status(410))]),
        Reply::Status(410),
        Reply::Events(vec![event("ADDED", &driver(3, "20"))]),
    ];
    let mut watch = watch(&[page(10, &[]), page(15, &[driver(2, "12")])], &watches, None);
    assert_eq!(watch.listed().await, (Vec::new(), names([])));
    assert!(watch.broken().await.contains("as the script says"));
    assert_eq!(watch.version.as_deref(), Some("10"));
    watch.driver(|_| true).await;
    watch.broken().await;
    assert_eq!(watch.version.as_deref(), Some("11"));
    watch.broken().await;
    let (items, listed) = watch.listed().await;
    assert_eq!(listed, names(["driver-2"]));
    assert!(!items.iter().any(|seen| matches!(seen, WatchReport::Broken { .. })), "{items:?}");
    assert_eq!(watch.driver(|_| true).await.submission.as_str(), "driver-3");
}
