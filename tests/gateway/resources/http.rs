//! What HTTP clients ask for besides the resources: compression, HEAD, pages for people, and room for their bodies.

use std::{convert::Infallible, io::Read, time::Duration};

use axum::{Router, body::Body, http::Request};
use flate2::read::GzDecoder;
use futures::{StreamExt, stream};
use http_body_util::BodyExt;
use serde_json::json;
use sparkgate::{
    api::{HttpSettings, livy_listener, router},
    spark::SparkVersion,
    store::Store,
};
use sqlx::PgPool;
use tower::ServiceExt;

use crate::in_memory::{Answer, BODY_LIMIT, send, service};
use crate::resources::world::{accepted, api, get, is_problem, job, post};

const HTML: &str = "text/html,application/xhtml+xml,*/*;q=0.8";

async fn asked(api: &Router, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
    let request = Request::builder().method(method).uri(path);
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    send(api, request.body(Body::empty()).unwrap()).await
}

#[sqlx::test]
async fn a_browser_finds_a_page_at_the_root(pool: PgPool) {
    let api = api(&pool).await;
    let page = asked(&api, "GET", "/", &[("accept", HTML)]).await;
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    for part in
        [env!("CARGO_PKG_VERSION"), "/docs", "/v1/openapi.json", "/readyz", "curl -s $SPARKGATE_URL/v1/submissions"]
    {
        assert!(page.body.contains(part), "{part}: {}", page.body);
    }
    assert!(!page.body.contains("<script"), "{}", page.body);
    for (headers, command) in [
        (&[("host", "gateway.example.org:7066")][..], "curl -s http://gateway.example.org:7066/v1/submissions"),
        (&[("host", "gw"), ("x-forwarded-proto", "https")], "curl -s https://gw/v1/submissions"),
        (&[("host", "a'$(id)")], "curl -s $SPARKGATE_URL/v1/submissions"),
    ] {
        let page = asked(&api, "GET", "/", &[&[("accept", HTML)][..], headers].concat()).await;
        assert!(page.body.contains(command), "{command}: {}", page.body);
    }
    for (method, headers) in [("GET", &[][..]), ("GET", &[("accept", "*/*")]), ("POST", &[("accept", HTML)])] {
        let sparks = asked(&api, method, "/", headers).await;
        assert_eq!((sparks.status, &sparks.json()["action"]), (400, &json!("ErrorResponse")), "{method} {headers:?}");
    }
}

#[sqlx::test]
async fn a_path_that_is_nearly_right_shows_the_way(pool: PgPool) {
    let api = api(&pool).await;
    let accept = [("accept", "*/*")];
    for (path, expected) in [
        ("/healthz", "/livez"),
        ("/openapi.json", "/v1/openapi.json"),
        ("/v1/submissions/", "/v1/submissions"),
        ("/v1/events/", "/v1/events"),
    ] {
        let moved = asked(&api, "GET", path, &accept).await;
        assert_eq!((moved.status, moved.header("location")), (308, Some(expected)), "{path}");
    }
    for path in ["/v1/submission", "/v1/submission/driver-1-1", "/v1/sumbissions"] {
        let problem = is_problem(&asked(&api, "GET", path, &accept).await, 404, "not-found");
        assert!(problem["detail"].as_str().unwrap().contains("Did you mean /v1/submissions?"), "{problem}");
    }
    // All others, and all requests of Spark's clients, are Spark's.
    for (method, path, headers, status) in [
        ("GET", "/v1/other", &accept[..], 468),
        ("GET", "/v1/submissions/other", &accept, 400),
        ("GET", "/healthz", &[], 468),
        ("GET", "/v1/submissions/", &[], 400),
        ("POST", "/v1/submissions/", &accept, 400),
    ] {
        let answer = asked(&api, method, path, headers).await;
        assert_eq!((answer.status, &answer.json()["action"]), (status, &json!("ErrorResponse")), "{method} {path}");
    }
}

#[sqlx::test]
async fn a_path_without_a_route_is_answered_as_by_its_api(pool: PgPool) {
    let service = service(SparkVersion::V4_3, Store::new(pool)).await;
    let api = router(service.clone(), HttpSettings::default()).unwrap();
    let livy = livy_listener(service, HttpSettings::default()).unwrap();
    for path in [
        "/v1/files/a/b",
        "/v1/submissions/driver-1/",
        "/v1/submissions/driver-1/x",
        "/v1/tokens/",
        "/v1/tokens/a/b",
        "/v1/ui/a",
        "/v1/webhooks/a/b",
    ] {
        let problem = is_problem(&asked(&api, "GET", path, &[]).await, 404, "not-found");
        assert!(problem["detail"].as_str().unwrap().starts_with(&format!("There is nothing at {path}.")), "{problem}");
        assert_eq!(problem["instance"], path);
    }
    for path in ["/batches/", "/batches/7/x", "/sessions", "/sessions/", "/sessions/0", "/v1/submissions"] {
        let answer = asked(&livy, "GET", path, &[]).await;
        let message = answer.json()["msg"].as_str().unwrap_or_default().to_owned();
        assert!(answer.status == 404 && message.starts_with("There is nothing at "), "{path}: {answer:?}");
    }
    for path in ["/console/elsewhere", "/console/submissions/a/b"] {
        let answer = asked(&api, "GET", path, &[]).await;
        assert_eq!((answer.status, answer.header("content-type")), (404, Some("text/html; charset=utf-8")), "{path}");
    }
    for path in [
        "/api/v1/spark-submit/",
        "/batches/7",
        "/consoles",
        "/v1/submissions/kill",
        "/v1/submissions/x/events",
        "/v1/tokensx",
        "/v1/ui",
    ] {
        let answer = asked(&api, "POST", path, &[]).await;
        assert_eq!(answer.json()["action"], "ErrorResponse", "{path}: {answer:?}");
    }
}

#[sqlx::test]
async fn a_large_list_is_compressed_for_clients_that_ask(pool: PgPool) {
    let api = api(&pool).await;
    for _ in 0..5 {
        accepted(&api, json!({})).await;
    }
    let path = "/v1/submissions";
    let plain = get(&api, path).await;
    assert_eq!((plain.header("content-encoding"), plain.header("vary")), (None, None));
    let gzip = ("accept-encoding", "br, gzip;q=0.9");
    let request = Request::get(path).header(gzip.0, gzip.1).body(Body::empty()).unwrap();
    let (head, body) = api.clone().oneshot(request).await.unwrap().into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let mut unpacked = String::new();
    GzDecoder::new(&body[..]).read_to_string(&mut unpacked).unwrap();
    assert!(unpacked == plain.body && body.len() < unpacked.len() / 2, "{} of {}", body.len(), unpacked.len());
    assert_eq!(
        (&head.headers["content-encoding"], &head.headers["vary"]),
        (&"gzip".parse().unwrap(), &"accept-encoding".parse().unwrap())
    );
    assert_eq!(head.headers.get("content-length"), None);
    let tag = head.headers["etag"].to_str().unwrap();
    assert_eq!(tag, format!("W/{}", plain.header("etag").unwrap()));
    let unchanged = asked(&api, "GET", path, &[gzip, ("if-none-match", tag)]).await;
    assert_eq!((unchanged.status, unchanged.body.as_str()), (304, ""));
    // A small document isn't worth it.
    let small = asked(&api, "GET", &format!("{path}?name=none"), &[gzip]).await;
    assert_eq!((small.header("content-encoding"), small.body.as_str()), (None, r#"{"items":[]}"#));
}

#[sqlx::test]
async fn the_length_for_head_is_that_of_the_document(pool: PgPool) {
    let api = api(&pool).await;
    for _ in 0..5 {
        accepted(&api, json!({})).await;
    }
    let length = get(&api, "/v1/submissions").await.body.len().to_string();
    let head = asked(&api, "HEAD", "/v1/submissions", &[]).await;
    assert_eq!((head.header("content-length"), head.body.as_str()), (Some(length.as_str()), ""));
    let compressed = asked(&api, "HEAD", "/v1/submissions", &[("accept-encoding", "gzip")]).await;
    assert_eq!((compressed.status, compressed.header("content-length")), (200, None), "it isn't known");
    let missing = asked(&api, "HEAD", "/v1/submissions/driver-1-1", &[]).await;
    assert!(missing.header("content-length").is_some_and(|length| length != "0"), "{missing:?}");
}

#[sqlx::test]
async fn a_body_waits_for_room_and_is_refused_after_the_timeout(pool: PgPool) {
    let settings = HttpSettings {
        max_request_body_bytes: BODY_LIMIT,
        max_body_bytes_in_flight: BODY_LIMIT,
        request_timeout: Duration::from_secs(3),
        ..HttpSettings::default()
    };
    let api = router(service(SparkVersion::V4_3, Store::new(pool)).await, settings).unwrap();
    // A body without a length reserves the most that it may have.
    let body = Body::from_stream(stream::once(async { Ok::<_, Infallible>("{") }).chain(stream::pending()));
    let request = Request::post("/v1/submissions").header("content-type", "application/json").body(body).unwrap();
    let slow = tokio::spawn(api.clone().oneshot(request));
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let (body, sparks) = (job(json!({})), json!({}));
    let waiting = post(&api, "/v1/submissions", &[], &body);
    let sparks = post(&api, "/v1/submissions/create", &[], &sparks);
    let slow_end = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        slow.abort();
    };
    let (answer, sparks, ()) = tokio::join!(waiting, sparks, slow_end);
    assert_eq!((answer.status, sparks.status), (201, 400), "{answer:?} {sparks:?}");

    // Two that send nothing have the room one after the other.
    let silent = || {
        let body = Body::from_stream(stream::pending::<Result<&str, Infallible>>());
        tokio::spawn(api.clone().oneshot(Request::post("/v1/submissions/create").body(body).unwrap()))
    };
    let first = silent();
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let second = silent();
    tokio::time::sleep(Duration::from_millis(500)).await;
    let sparks = json!({});
    let (answer, sparks) =
        tokio::join!(post(&api, "/v1/submissions", &[], &body), post(&api, "/v1/submissions/create", &[], &sparks),);
    is_problem(&answer, 503, "busy");
    assert_eq!((answer.header("retry-after"), sparks.header("retry-after")), (Some("1"), Some("1")));
    assert_eq!((sparks.status, &sparks.json()["action"]), (503, &json!("ErrorResponse")));
    first.abort();
    second.abort();
}
