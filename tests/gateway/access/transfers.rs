//! Transfers of files: one tenant's slow clients leave places to others, and end.

use std::time::Duration;

use axum::{
    body::{Body, Bytes},
    http::{Request, header},
    response::Response,
};
use futures::{StreamExt, future::join_all, stream};
use http_body_util::BodyExt;
use serde_json::json;
use sha2::{Digest, Sha256};
use sparkgate::{
    access::Role,
    service::{FileSettings, Pace},
    submission::SubmissionId,
};
use sqlx::PgPool;
use tempfile::TempDir;
use tower::ServiceExt;

use crate::access::world::{TWO_TENANTS, World, file_settings};

/// More than the connections and buffers of a test hold.
const SIZE: usize = 6 << 20;

/// Returns a gateway whose clients may be so slow for so long.
async fn world(pool: PgPool, window: Duration) -> (World, TempDir) {
    let mut world = World::new(pool, TWO_TENANTS).await;
    let dir = tempfile::tempdir().unwrap();
    let settings = FileSettings {
        largest: 1 << 30,
        part: FileSettings::PART,
        patience: Duration::from_secs(60),
        pace: Pace { window, ..Pace::SLOWEST },
        ..file_settings()
    };
    world.keep_files(dir.path(), settings).await;
    (world, dir)
}

fn sha256(content: &[u8]) -> String {
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn put(token: &str, hash: &str, content: Body) -> Request<Body> {
    let request = Request::put(format!("/v1/files/{hash}")).header(header::HOST, "gateway");
    request.header(header::AUTHORIZATION, format!("Bearer {token}")).body(content).unwrap()
}

/// Returns a body of which a drop arrives, and then nothing.
fn a_drop() -> Body {
    let first = stream::iter([Ok::<_, std::io::Error>(Bytes::from_static(b"x"))]);
    Body::from_stream(first.chain(stream::pending()))
}

#[sqlx::test]
async fn slow_uploads_of_one_tenant_delay_no_other(pool: PgPool) {
    let (world, _dir) = world(pool, Duration::from_secs(3600)).await;
    let (red, blue) = (world.key(Role::Submitter, Some("red")).await, world.key(Role::Submitter, Some("blue")).await);
    let slow: Vec<_> = (0..16_u8)
        .map(|number| tokio::spawn(world.router.clone().oneshot(put(&red, &sha256(&[number]), a_drop()))))
        .collect();
    // As many as one caller may have hold places, and the others wait.
    while world.service.files.uploading() < 8 {
        tokio::task::yield_now().await;
    }
    let hash = sha256(b"content");
    assert_eq!(world.answer(put(&blue, &hash, Body::from("content"))).await.status, 201);
    // A file that is here needs no place at all.
    let colleague = world.key(Role::Operator, Some("red")).await;
    assert_eq!(world.answer(put(&colleague, &hash, Body::from("content"))).await.status, 201, "red's own");
    assert_eq!(world.answer(put(&red, &hash, Body::from("content"))).await.status, 200);
    assert!(slow.iter().all(|one| !one.is_finished()));
    slow.into_iter().for_each(|one| one.abort());
}

#[sqlx::test]
async fn an_upload_that_is_too_slow_is_refused(pool: PgPool) {
    let (world, dir) = world(pool, Duration::from_millis(300)).await;
    let red = world.key(Role::Submitter, Some("red")).await;
    let answer = world.answer(put(&red, &sha256(b"content"), a_drop())).await;
    assert_eq!((answer.status, &answer.json()["code"]), (408, &json!("upload-too-slow")));
    assert!(answer.json()["detail"].as_str().unwrap().contains("65536 bytes a second"), "{}", answer.body);
    let folders = std::fs::read_dir(dir.path()).unwrap().filter(|entry| entry.as_ref().unwrap().path().is_dir());
    assert_eq!(folders.count(), 0, "nothing is kept");
    while world.service.files.uploading() > 0 {
        tokio::task::yield_now().await;
    }
}

/// Begins to read a file with a signed URL, and reads nothing more.
async fn open(world: &World, url: &str) -> Response {
    let path = url.strip_prefix("http://gateway:6066").unwrap();
    let request = Request::get(path).header(header::HOST, "gateway").body(Body::empty()).unwrap();
    world.router.clone().oneshot(request).await.unwrap()
}

/// Uploads a large file, and returns a signed URL of it, for a submission to this namespace.
async fn signed(world: &World, token: &str, namespace: &str) -> String {
    let content = vec![7; SIZE];
    let hash = sha256(&content);
    assert!(world.answer(put(token, &hash, content.into())).await.status < 202);
    let job = json!({"appResource": format!("sparkgate-file:/{hash}/app.jar"), "mainClass": "org.example.Main",
        "sparkProperties": {"spark.kubernetes.namespace": namespace}});
    let submitted = world.send(Some(token), "POST", "/v1/submissions", Some(&job)).await;
    assert_eq!(submitted.status, 201, "{}", submitted.body);
    let id: SubmissionId = submitted.json()["id"].as_str().unwrap().parse().unwrap();
    world.service.files.url_of(&id, &hash, "app.jar").unwrap()
}

#[sqlx::test]
async fn slow_downloads_of_one_submission_delay_no_other(pool: PgPool) {
    let (world, _dir) = world(pool, Duration::from_secs(3600)).await;
    let (red, blue) = (world.key(Role::Submitter, Some("red")).await, world.key(Role::Submitter, Some("blue")).await);
    let (of_red, other_of_red) = (signed(&world, &red, "red").await, signed(&world, &red, "red-batch").await);
    let of_blue = signed(&world, &blue, "blue").await;
    let held = join_all((0..32).map(|_| open(&world, &of_red))).await;
    let waiting: Vec<_> = (0..32)
        .map(|_| {
            let (router, path) = (world.router.clone(), of_red.strip_prefix("http://gateway:6066").unwrap().to_owned());
            let request = Request::get(path).header(header::HOST, "gateway").body(Body::empty()).unwrap();
            tokio::spawn(router.oneshot(request))
        })
        .collect();
    for url in [&of_blue, &other_of_red] {
        let answer = open(&world, url).await;
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.into_body().collect().await.unwrap().to_bytes().len(), SIZE);
    }
    assert!(waiting.iter().all(|one| !one.is_finished()));
    // What is given back goes to those that wait.
    drop(held);
    for one in waiting {
        assert_eq!(one.await.unwrap().unwrap().status(), 200);
    }
}

#[sqlx::test]
async fn a_download_that_is_read_too_slowly_ends(pool: PgPool) {
    let (world, _dir) = world(pool, Duration::from_millis(300)).await;
    let red = world.key(Role::Submitter, Some("red")).await;
    let url = signed(&world, &red, "red").await;
    let slow = open(&world, &url).await;
    while world.service.files.downloading() > 0 {
        tokio::task::yield_now().await;
    }
    let arrived = slow.into_body().into_data_stream().filter_map(async |part| part.ok()).map(|part| part.len());
    assert!(arrived.collect::<Vec<_>>().await.into_iter().sum::<usize>() < SIZE, "it has no more than the beginning");
    let fast = open(&world, &url).await;
    assert_eq!(fast.into_body().collect().await.unwrap().to_bytes().len(), SIZE);
}
