//! The list of files, and their deletion.

use std::time::Duration;

use axum::http::Request;
use serde_json::Value;
use sqlx::PgPool;

use crate::in_memory::send;
use crate::resources::{
    files::{World, sha256},
    world::is_problem,
};

#[sqlx::test]
async fn files_are_listed_page_by_page(pool: PgPool) {
    let world = World::new(pool).await;
    let hashes: Vec<String> = (0..5).map(|n: i32| sha256(n.to_string().as_bytes())).collect();
    for (n, hash) in hashes.iter().enumerate() {
        assert_eq!(world.put(hash, n.to_string()).await.status, 201);
    }
    assert_eq!(world.submit(&format!("sparkgate-file:/{}/job.py", hashes[1])).await.status, 201);
    let (mut found, mut path, mut pages) = (Vec::new(), "/v1/files?limit=2".to_owned(), 0);
    loop {
        let page = world.ask("GET", &path, &[]).await.json();
        found.extend(page["items"].as_array().unwrap().clone());
        pages += 1;
        let Some(next) = page["next"].as_str() else { break };
        path = format!("/v1/files?limit=2&cursor={next}");
    }
    let listed: Vec<&str> = found.iter().map(|file| file["sha256"].as_str().unwrap()).collect();
    assert_eq!((pages, listed), (3, hashes.iter().rev().map(String::as_str).collect()));
    let of = |hash: &String| found.iter().find(|file| file["sha256"] == **hash).unwrap();
    assert_eq!((&of(&hashes[1])["submissions"], of(&hashes[1]).get("expiresAt")), (&1.into(), None));
    assert_eq!((&of(&hashes[2])["submissions"], &of(&hashes[2])["size"]), (&0.into(), &1.into()));
    is_problem(&world.ask("GET", "/v1/files?cursor=x", &[]).await, 400, "invalid-cursor");
    // A cursor is one of its list.
    let next = world.ask("GET", "/v1/files?limit=1", &[]).await.json()["next"].as_str().unwrap().to_owned();
    is_problem(&world.ask("GET", &format!("/v1/files?namespace=x&cursor={next}"), &[]).await, 400, "invalid-cursor");
}

#[sqlx::test]
async fn a_file_is_deleted_unless_a_live_submission_uses_it(pool: PgPool) {
    let world = World::new(pool).await;
    let hash = sha256(b"print(1)");
    let path = format!("/v1/files/{hash}");
    is_problem(&world.ask("DELETE", &path, &[]).await, 404, "file-not-found");
    world.put(&hash, "print(1)").await;
    let submitted = world.submit(&format!("sparkgate-file:/{hash}/job.py")).await;
    assert_eq!(submitted.status, 201);
    let used = is_problem(&world.ask("DELETE", &path, &[]).await, 409, "file-used");
    assert!(used["detail"].as_str().unwrap().starts_with("a live submission"), "{used}");
    assert_eq!(world.objects(), 1);

    // Its uses are released later than it ends.
    sqlx::query("UPDATE submissions SET state = 'FAILED', finished_at = now()").execute(&world.pool).await.unwrap();
    let deleted = send(&world.api, Request::delete(&path).body(axum::body::Body::empty()).unwrap()).await;
    assert_eq!((deleted.status, deleted.body.as_str()), (204, ""));
    assert_eq!((world.objects(), world.ask("HEAD", &path, &[]).await.status), (0, 404));
    assert_eq!(world.ask("GET", "/v1/files", &[]).await.json()["items"], Value::Array(Vec::new()));
    assert_eq!(world.put(&hash, "print(1)").await.status, 201);
}

/// A submission that is being accepted either keeps its file, or is refused.
#[sqlx::test]
async fn a_file_is_never_deleted_under_a_submission(pool: PgPool) {
    let world = World::new(pool).await;
    let hash = sha256(b"print(1)");
    let path = format!("/v1/files/{hash}");
    let reference = format!("sparkgate-file:/{hash}/job.py");
    for _ in 0..20 {
        world.put(&hash, "print(1)").await;
        let (submitted, deleted) = tokio::join!(world.submit(&reference), world.ask("DELETE", &path, &[]));
        match (submitted.status, deleted.status) {
            (201, 409) => {}
            (400, 204) => continue,
            both => panic!("{both:?} {submitted:?}"),
        }
        assert_eq!(world.ask("HEAD", &path, &[]).await.status, 200);
        sqlx::query("UPDATE submissions SET state = 'FAILED', finished_at = now()").execute(&world.pool).await.unwrap();
        tokio::time::timeout(Duration::from_secs(30), world.ask("DELETE", &path, &[])).await.unwrap();
    }
}
