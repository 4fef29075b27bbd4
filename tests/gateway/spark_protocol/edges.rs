//! Cases for which Spark has no answer: ids, faults, probes.

use axum::{body::Body, http::Request};
use sparkgate::spark::SparkVersion;
use sqlx::PgPool;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::in_memory::{BODY_LIMIT, ask, face, send};

fn get(target: &str) -> axum::http::request::Builder {
    Request::builder().uri(target)
}

#[sqlx::test]
async fn every_answer_has_the_requests_id(pool: PgPool) {
    let face = face(SparkVersion::V4_3, pool).await;
    let given = get("/livez").header("x-request-id", "abc-1.2:3_4").body(Body::empty()).unwrap();
    assert_eq!(send(&face, given).await.header("x-request-id"), Some("abc-1.2:3_4"));
    for odd in ["", "a b", "a\"b", "é", &"x".repeat(129)] {
        let request = get("/v2").header("x-request-id", odd).body(Body::empty()).unwrap();
        let answer = send(&face, request).await;
        let id = answer.header("x-request-id").expect("an id");
        assert_eq!((id.len(), answer.status), (36, 468), "{odd}: {id}");
    }
}

#[sqlx::test]
async fn a_body_without_an_announced_length_is_bounded_too(pool: PgPool) {
    let face = face(SparkVersion::V4_3, pool).await;
    let chunks = (0..100).map(|_| Ok::<_, std::io::Error>(vec![b' '; BODY_LIMIT / 10]));
    let body = Body::from_stream(futures::stream::iter(chunks));
    let request = Request::post("/v1/submissions/create").body(body).unwrap();
    let answer = send(&face, request).await;
    assert_eq!(answer.status, 413);
    let message = answer.json()["message"].as_str().unwrap().to_owned();
    assert!(message.contains("(2048 bytes)") && message.contains("spark.master.rest.maxRequestBodySize"), "{message}");
}

#[sqlx::test]
async fn a_body_that_breaks_off_is_the_clients_fault(pool: PgPool) {
    let face = face(SparkVersion::V4_3, pool).await;
    let broken = futures::stream::iter([Ok(b"{".to_vec()), Err(std::io::Error::other("gone"))]);
    let request = Request::post("/v1/submissions/create").body(Body::from_stream(broken)).unwrap();
    let answer = send(&face, request).await;
    assert_eq!(answer.status, 400);
    assert!(answer.json()["message"].as_str().unwrap().contains("gone"), "{answer:?}");
}

#[sqlx::test]
async fn a_head_tells_the_length_of_the_get(pool: PgPool) {
    let face = face(SparkVersion::V4_3, pool).await;
    let path = "/v1/submissions/status/driver-1-1";
    let whole = ask(&face, "GET", path, Vec::new()).await;
    let head = ask(&face, "HEAD", path, Vec::new()).await;
    let length = whole.body.len().to_string();
    assert_eq!((head.status, head.body.as_str(), head.header("content-length")), (200, "", Some(length.as_str())));
}

#[sqlx::test]
async fn a_page_shows_markup_as_text(pool: PgPool) {
    let face = face(SparkVersion::V4_3, pool).await;
    let request = get("/v1/submissions/create/'&x?q=1").header("host", "<b>").body(Body::empty()).unwrap();
    let answer = send(&face, request).await;
    assert_eq!(answer.status, 405);
    assert!(
        answer.body.contains("<td>http://&lt;b&gt;/v1/submissions/create/&apos;&amp;x?q=1</td>"),
        "{}",
        answer.body
    );
}

#[sqlx::test]
async fn livez_answers_ok(pool: PgPool) {
    let answer = ask(&face(SparkVersion::V3_5, pool).await, "GET", "/livez", Vec::new()).await;
    assert_eq!((answer.status, answer.body.as_str()), (200, "ok"));
}

#[sqlx::test]
async fn the_status_line_of_468_repeats_the_number(pool: PgPool) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut client = tokio::net::TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let server = tokio::spawn(async move { axum::serve(listener, face(SparkVersion::V4_3, pool).await).await });
    client.write_all(b"GET /v2 HTTP/1.1\r\nHost: master\r\nConnection: close\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    server.abort();
    assert!(answer.starts_with("HTTP/1.1 468 468\r\n"), "{answer}");
    assert!(!answer.to_lowercase().contains("\nserver:"), "{answer}");
}
