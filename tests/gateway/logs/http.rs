//! Logs over HTTP.

use std::io::Read;

use axum::body::Body;
use flate2::read::GzDecoder;
use http::{Request, Response};
use http_body_util::BodyExt;
use serde_json::Value;
use sparkgate::{
    api::{HttpSettings, router},
    submission::DriverState,
};
use sqlx::PgPool;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use tower::ServiceExt;

use super::site::Site;
use crate::world::eventually;

pub(crate) async fn get(site: &Site, path: &str) -> Response<Body> {
    get_path(site, &format!("/v1/submissions/{path}")).await
}

pub(crate) async fn get_path(site: &Site, path: &str) -> Response<Body> {
    let router = router(site.service().clone(), HttpSettings::default()).unwrap();
    router.oneshot(Request::get(path).body(Body::empty()).unwrap()).await.unwrap()
}

fn header<'a>(response: &'a Response<Body>, name: &str) -> &'a str {
    response.headers().get(name).map_or("", |value| value.to_str().unwrap())
}

async fn problem(site: &Site, path: &str) -> (u16, String, String) {
    let response = get(site, path).await;
    let status = response.status().as_u16();
    let body: Value = serde_json::from_slice(&response.into_body().collect().await.unwrap().to_bytes()).unwrap();
    (status, body["code"].as_str().unwrap().to_owned(), body["detail"].as_str().unwrap().to_owned())
}

#[sqlx::test]
async fn a_log_is_plain_text_with_its_source_in_a_header(pool: PgPool) {
    let site = Site::new(pool).await;
    let id = site.launch("seq 1000000 1099999; printf '\\xff\\0'").await;
    site.until(&id, DriverState::Finished).await;
    for (source, cut) in [("pod", ""), ("kept", "true")] {
        let response = get(&site, &format!("{id}/logs?tail=2")).await;
        assert_eq!((response.status().as_u16(), header(&response, "sparkgate-log-source")), (200, source));
        assert_eq!(header(&response, "sparkgate-log-cut"), cut);
        assert_eq!(header(&response, "content-type"), "text/plain; charset=utf-8");
        assert_eq!(header(&response, "x-content-type-options"), "nosniff");
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), &b"1099999\n\xff\0"[..]);
        if source == "pod" {
            site.delete_pod().await;
        }
    }
}

#[sqlx::test]
async fn a_log_is_compressed_unless_it_is_followed(pool: PgPool) {
    let site = Site::new(pool).await;
    let id = site.launch("seq 1000000 1099999").await;
    site.until(&id, DriverState::Finished).await;
    let asked = async |path: &str| {
        let router = router(site.service().clone(), HttpSettings::default()).unwrap();
        let request = Request::get(format!("/v1/submissions/{id}/{path}")).header("accept-encoding", "gzip");
        router.oneshot(request.body(Body::empty()).unwrap()).await.unwrap()
    };
    let plain = get(&site, &format!("{id}/logs")).await;
    assert_eq!((header(&plain, "content-encoding"), header(&plain, "vary")), ("", ""));
    let plain = plain.into_body().collect().await.unwrap().to_bytes();
    let packed = asked("logs").await;
    assert_eq!(header(&packed, "content-encoding"), "gzip");
    let packed = packed.into_body().collect().await.unwrap().to_bytes();
    let mut unpacked = Vec::new();
    GzDecoder::new(&packed[..]).read_to_end(&mut unpacked).unwrap();
    assert!(unpacked == plain && packed.len() < plain.len() / 2, "{} of {}", packed.len(), plain.len());
    assert_eq!(header(&asked("logs?follow=true").await, "content-encoding"), "");
}

/// The length of a log is not known before its end.
#[sqlx::test]
async fn a_head_of_a_log_has_no_length(pool: PgPool) {
    let site = Site::new(pool).await;
    let id = site.launch("echo one").await;
    site.until(&id, DriverState::Finished).await;
    let router = router(site.service().clone(), HttpSettings::default()).unwrap();
    let request = Request::head(format!("/v1/submissions/{id}/logs")).body(Body::empty()).unwrap();
    let head = router.oneshot(request).await.unwrap();
    assert_eq!((head.status().as_u16(), header(&head, "sparkgate-log-source")), (200, "pod"));
    assert_eq!(head.headers().get("content-length"), None);
}

#[sqlx::test]
async fn a_wait_answers_with_the_cause_of_a_failure(pool: PgPool) {
    let site = Site::new(pool).await;
    let log = "Exception in thread \"main\" a.B: c\n";
    let id = site.launch(&format!("echo -n '{log}'; exit 1")).await;
    site.until(&id, DriverState::Failed).await;
    let response = get(&site, &format!("{id}/wait")).await;
    let body: Value = serde_json::from_slice(&response.into_body().collect().await.unwrap().to_bytes()).unwrap();
    assert_eq!(body["failure"]["message"], "the driver exited with code 1 (Error): a.B: c", "{body}");
    assert_eq!(body["failure"]["logTail"], log, "{body}");
}

#[sqlx::test]
async fn a_missing_log_has_a_problem_code(pool: PgPool) {
    let site = Site::new(pool).await;
    let id = site.world.submit(&[]).await;
    for (path, status, code, detail) in [
        ("driver-20200101000000-9999/logs".to_owned(), 404, "submission-not-found", "driver-20200101000000-9999"),
        (format!("{id}/logs"), 404, "log-not-found", "hasn't started"),
        (format!("{id}/logs?attempt=2"), 404, "log-not-found", "attempt 2"),
        (format!("{id}/logs?executor=5"), 404, "executor-not-found", "executor 5"),
        (format!("{id}/logs?tail=-1"), 400, "invalid-parameter", "tail"),
        (format!("{id}/logs?since=yesterday"), 400, "invalid-parameter", "since"),
        (format!("{id}/logs?follow=1"), 400, "invalid-parameter", "follow"),
        (format!("{id}/logs?lines=5"), 400, "invalid-parameter", "lines"),
    ] {
        let said = problem(&site, &path).await;
        assert_eq!((said.0, said.1.as_str()), (status, code), "{path}");
        assert!(said.2.contains(detail), "{path}: {}", said.2);
    }
}

#[sqlx::test]
async fn a_client_that_hangs_up_ends_its_log_stream(pool: PgPool) {
    let site = Site::new(pool).await;
    let id = site.launch("echo one; exec sleep 300").await;
    site.until(&id, DriverState::Running).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(axum::serve(listener, router(site.service().clone(), HttpSettings::default()).unwrap()).into_future());
    let mut client = TcpStream::connect(address).await.unwrap();
    let request = format!("GET /v1/submissions/{id}/logs?follow=true HTTP/1.1\r\nHost: localhost\r\n\r\n");
    client.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    while !answer.contains("one\n") {
        let mut piece = [0; 1024];
        let length = client.read(&mut piece).await.unwrap();
        assert!(length > 0, "{answer}");
        answer.push_str(std::str::from_utf8(&piece[..length]).unwrap());
    }
    assert!(answer.to_ascii_lowercase().contains("transfer-encoding: chunked"), "{answer}");
    let before = site.proxy.live();
    drop(client);
    eventually(|| async { if site.proxy.live() < before { Ok(()) } else { Err("its log is still read") } }).await;
}
