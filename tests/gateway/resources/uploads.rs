//! Uploads that are continued.

use axum::{
    body::{Body, Bytes},
    http::Request,
};
use chrono::{TimeDelta, Utc};
use futures::{future::join_all, stream};
use sparkgate::api::{HttpSettings, router};
use sqlx::PgPool;

use crate::in_memory::{Answer, send};
use crate::resources::{
    files::{LARGEST, PART, World, keeping, settings, sha256},
    world::{get, is_problem},
};

const MIB: usize = 1 << 20;

fn content(size: usize, seed: usize) -> Vec<u8> {
    (0..size).map(|at| ((at + seed) % 249) as u8).collect()
}

/// Returns a body that breaks off after some bytes.
fn broken(content: &[u8]) -> Body {
    let pieces = content.chunks(MIB / 4).map(|piece| Ok(Bytes::copy_from_slice(piece)));
    let end = Err(std::io::Error::other("the client has gone"));
    Body::from_stream(stream::iter(pieces.chain([end]).collect::<Vec<_>>()))
}

impl World {
    /// Sends a part of a file.
    async fn append(&self, sha256: &str, offset: usize, is_last: bool, content: impl Into<Body>) -> Answer {
        let request = Request::patch(format!("/v1/files/{sha256}"))
            .header("content-type", "application/partial-upload")
            .header("upload-offset", offset)
            .header("upload-complete", if is_last { "?1" } else { "?0" });
        send(&self.api, request.body(content.into()).unwrap()).await
    }

    /// Returns how much of a file has arrived, as the gateway answers; `None` if the file is complete.
    async fn arrived(&self, sha256: &str) -> Option<usize> {
        let head = self.ask("HEAD", &format!("/v1/files/{sha256}"), &[]).await;
        match head.status {
            200 => None,
            404 => {
                assert_eq!(head.header("upload-complete"), Some("?0"));
                Some(head.header("upload-offset").unwrap().parse().unwrap())
            }
            other => panic!("{other}"),
        }
    }

    /// Returns another replica.
    async fn replica(&self) -> Self {
        let service = keeping(self.pool.clone(), self.dir.path(), settings(None)).await;
        let api = router(service.clone(), HttpSettings::default()).unwrap();
        Self { api, service, dir: tempfile::tempdir().unwrap(), pool: self.pool.clone() }
    }

    async fn uploads(&self) -> i64 {
        sqlx::query_scalar("SELECT count(*) FROM file_uploads").fetch_one(&self.pool).await.unwrap()
    }
}

#[sqlx::test]
async fn a_broken_upload_continues_on_another_replica(pool: PgPool) {
    let world = World::new(pool).await;
    let whole = content(7 * MIB / 2, 0);
    let hash = sha256(&whole);
    assert_eq!(world.arrived(&hash).await, Some(0));
    let answer = world.append(&hash, 0, true, broken(&whole[..5 * MIB / 2])).await;
    is_problem(&answer, 400, "invalid-request");
    assert_eq!(world.arrived(&hash).await, Some(5 * MIB / 2));
    assert_eq!(world.objects(), 3);

    // It is no file yet.
    let reference = format!("sparkgate-file:/{hash}/x.py");
    is_problem(&world.submit(&reference).await, 400, "invalid-request");
    is_problem(&get(&world.api, &format!("/v1/files/{hash}")).await, 404, "file-not-found");

    let other = world.replica().await;
    let elsewhere = other.append(&hash, MIB, true, whole[MIB..].to_vec()).await;
    let problem = is_problem(&elsewhere, 409, "upload-offset-mismatch");
    assert_eq!((&problem["expected-offset"], &problem["provided-offset"]), (&(5 * MIB / 2).into(), &MIB.into()));
    assert_eq!(elsewhere.header("upload-offset"), Some((5 * MIB / 2).to_string().as_str()));
    let done = other.append(&hash, 5 * MIB / 2, true, whole[5 * MIB / 2..].to_vec()).await;
    assert_eq!(
        (done.status, done.header("upload-complete"), done.json()["size"].as_u64()),
        (201, Some("?1"), Some(3_670_016))
    );
    assert_eq!((world.arrived(&hash).await, world.objects(), world.uploads().await), (None, 1, 0));
    assert_eq!(sha256(&bytes(&world, &hash).await), hash);
    assert_eq!(world.submit(&reference).await.status, 201);
    // Whatever else is sent of it.
    assert_eq!(other.append(&hash, 17, false, vec![1; 10]).await.status, 200);
}

/// Returns the content of a file.
async fn bytes(world: &World, sha256: &str) -> Vec<u8> {
    use http_body_util::BodyExt;
    use tower::ServiceExt;
    let request = Request::get(format!("/v1/files/{sha256}")).body(Body::empty()).unwrap();
    let response = world.api.clone().oneshot(request).await.unwrap();
    assert_eq!(response.status(), 200);
    response.into_body().collect().await.unwrap().to_bytes().to_vec()
}

#[sqlx::test]
async fn an_upload_arrives_in_parts_of_any_size(pool: PgPool) {
    let world = World::new(pool).await;
    let whole = content(MIB + 77, 3);
    let hash = sha256(&whole);
    let mut at = 0;
    for size in [1, 0, 500_000, 76] {
        let answer = world.append(&hash, at, false, whole[at..at + size].to_vec()).await;
        at += size;
        assert_eq!((answer.status, answer.header("upload-complete")), (204, Some("?0")));
        assert_eq!(answer.header("upload-offset"), Some(at.to_string().as_str()));
    }
    assert_eq!(world.append(&hash, at, false, whole[at..].to_vec()).await.status, 204);
    assert_eq!(world.append(&hash, whole.len(), true, "").await.status, 201);
    assert_eq!((sha256(&bytes(&world, &hash).await), world.objects()), (hash, 1));
    assert_eq!(world.append(&sha256(b""), 0, true, "").await.status, 201, "an empty file is one");
}

#[sqlx::test]
async fn an_upload_that_is_wrong_is_deleted(pool: PgPool) {
    let world = World::new(pool).await;
    let hash = sha256(b"right");
    assert_eq!(world.append(&hash, 0, false, "wro").await.status, 204);
    let problem = is_problem(&world.append(&hash, 3, true, "ng").await, 422, "file-mismatch");
    assert!(problem["detail"].as_str().unwrap().contains(&sha256(b"wrong")), "{problem}");
    assert_eq!((world.objects(), world.uploads().await, world.arrived(&hash).await), (0, 0, Some(0)));

    let large = vec![7; LARGEST as usize - 1];
    let hash = sha256(&large);
    assert_eq!(world.append(&hash, 0, false, large.clone()).await.status, 204);
    is_problem(&world.append(&hash, large.len(), true, broken(b"2b")).await, 413, "request-too-large");
    assert_eq!((world.objects(), world.uploads().await), (0, 0));
    is_problem(&world.append(&hash, 0, true, vec![7; LARGEST as usize + 1]).await, 413, "request-too-large");

    let path = format!("/v1/files/{hash}");
    let partial = ("content-type", "application/partial-upload");
    let (offset, complete) = (("upload-offset", "0"), ("upload-complete", "?1"));
    is_problem(&world.ask("PATCH", &path, &[offset, complete]).await, 415, "unsupported-media-type");
    for headers in [
        vec![partial, complete],
        vec![partial, offset],
        vec![partial, ("upload-offset", "+1"), complete],
        vec![partial, offset, ("upload-complete", "1")],
    ] {
        is_problem(&world.ask("PATCH", &path, &headers).await, 400, "invalid-parameter");
    }
    is_problem(&world.append("x", 0, true, "").await, 400, "invalid-parameter");
}

#[sqlx::test]
async fn clients_that_continue_one_upload_at_once_complete_it_once(pool: PgPool) {
    let world = World::new(pool).await;
    let replicas = [world.replica().await, world.replica().await];
    let whole = content(4 * MIB, 9);
    let hash = sha256(&whole);
    let clients = (0..6).map(|client| {
        let (replica, world, hash, whole) = (&replicas[client % 2], &world, hash.as_str(), whole.as_slice());
        async move {
            // Each breaks off at another place, again and again.
            for turn in 1.. {
                let Some(at) = world.arrived(hash).await else { return turn };
                let end = (at + (client + 2) * MIB / 3).min(whole.len());
                let is_whole = end == whole.len();
                let body = if is_whole { Body::from(whole[at..].to_vec()) } else { broken(&whole[at..end]) };
                let answer = replica.append(hash, at, true, body).await;
                assert!([200, 201, 400, 409].contains(&answer.status), "{answer:?}");
                assert!(turn < 1000, "no client advances");
            }
            0
        }
    });
    join_all(clients).await;
    assert_eq!((world.objects(), world.uploads().await), (1, 0));
    assert_eq!(sha256(&bytes(&world, &hash).await), hash);
}

#[sqlx::test]
async fn a_thousand_uploads_of_one_file_leave_one_object(pool: PgPool) {
    let world = World::new(pool).await;
    let whole = Bytes::from(content(3000, 5));
    let hash = sha256(&whole);
    let uploads = (0..1000).map(|n| {
        let (world, hash, whole) = (&world, hash.as_str(), whole.clone());
        async move {
            match n % 3 {
                0 => world.put(hash, whole).await.status,
                1 => world.append(hash, 0, true, whole).await.status,
                _ => world.append(hash, 0, n % 2 == 0, broken(&whole[..n])).await.status,
            }
        }
    });
    let statuses = join_all(uploads).await;
    assert!(statuses.iter().all(|status| [200, 201, 400, 409].contains(status)), "{statuses:?}");
    // A part that arrived after the file was complete is deleted with its upload.
    let later = Utc::now() + TimeDelta::hours(25);
    sqlx::query("UPDATE file_uploads SET updated_at = now() - interval '25 hours'").execute(&world.pool).await.unwrap();
    world.service.files.clean_up(None).await.unwrap();
    world.service.files.sweep(later).await.unwrap();
    assert_eq!((world.objects(), world.uploads().await), (1, 0));
    assert_eq!(sha256(&bytes(&world, &hash).await), hash);
}

#[sqlx::test]
async fn an_upload_waits_for_a_store_that_is_away(pool: PgPool) {
    let world = World::new(pool).await;
    let whole = content(2 * MIB + 5, 1);
    let hash = sha256(&whole);
    let part = PART as usize;
    assert_eq!(world.append(&hash, 0, false, whole[..part].to_vec()).await.status, 204);
    let (folder, aside) = (world.dir.path().to_owned(), world.dir.path().with_extension("aside"));
    std::fs::rename(&folder, &aside).unwrap();
    std::fs::write(&folder, "no directory").unwrap();
    let answers = [
        world.append(&hash, part, true, whole[part..].to_vec()).await,
        // Nothing is left to send but the end.
        world.append(&hash, part, true, "").await,
    ];
    std::fs::remove_file(&folder).unwrap();
    std::fs::rename(&aside, &folder).unwrap();
    for answer in answers {
        is_problem(&answer, 503, "files-unavailable");
    }
    assert_eq!(world.arrived(&hash).await, Some(part));
    assert_eq!(world.append(&hash, part, true, whole[part..].to_vec()).await.status, 201);
    assert_eq!(sha256(&bytes(&world, &hash).await), hash);
}

#[sqlx::test]
async fn an_upload_begins_anew_if_the_store_has_lost_a_part(pool: PgPool) {
    let world = World::new(pool).await;
    let whole = content(2 * MIB, 2);
    let hash = sha256(&whole);
    assert_eq!(world.append(&hash, 0, false, whole.clone()).await.status, 204);
    let part: String = sqlx::query_scalar("SELECT objects[1] FROM file_uploads").fetch_one(&world.pool).await.unwrap();
    let root = world.folder();
    std::fs::remove_file(root.join(part)).unwrap();
    let lost = world.append(&hash, whole.len(), true, "").await;
    is_problem(&lost, 409, "upload-offset-mismatch");
    assert_eq!((lost.header("upload-offset"), world.objects(), world.uploads().await), (Some("0"), 0, 0));
    assert_eq!(world.append(&hash, 0, true, whole).await.status, 201);
}

#[sqlx::test]
async fn an_upload_that_was_given_up_is_deleted_after_a_day(pool: PgPool) {
    let world = World::new(pool).await;
    let (kept, given_up) = (sha256(b"kept"), sha256(b"given up"));
    for hash in [&kept, &given_up] {
        assert_eq!(world.append(hash, 0, false, "k").await.status, 204);
    }
    let age = "UPDATE file_uploads SET updated_at = now() - interval '25 hours' WHERE sha256 = $1";
    sqlx::query(age).bind(&given_up).execute(&world.pool).await.unwrap();
    let doubted = Utc::now() - TimeDelta::hours(1);
    assert_eq!(world.service.files.clean_up(Some(doubted)).await.unwrap().uploads, 0);
    assert_eq!(world.service.files.clean_up(None).await.unwrap().uploads, 1);
    assert_eq!((world.objects(), world.arrived(&given_up).await), (1, Some(0)));
    // The part belongs to an upload, however old it is.
    let swept = world.service.files.sweep(Utc::now() + TimeDelta::hours(25)).await.unwrap();
    assert_eq!((swept.orphans, world.arrived(&kept).await), (0, Some(1)));
    assert_eq!(world.append(&kept, 1, true, "ept").await.status, 201);
}
