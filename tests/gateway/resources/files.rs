//! Uploads and downloads, and the references to files in submissions.

use std::{path::Path, time::Duration};

use axum::{
    Router,
    body::{Body, Bytes},
    http::Request,
};
use futures::{StreamExt, future::join_all, stream};
use serde_json::json;
use sha2::{Digest, Sha256};
use sparkgate::{
    api::{HttpSettings, router},
    files::FileStore,
    service::{FileSettings, Pace, Service, Setup},
    spark::SparkVersion,
    store::Store,
    submission::SubmissionId,
};
use sqlx::PgPool;
use tempfile::TempDir;

use crate::in_memory::{self, Answer, send, service};
use crate::resources::world::{count, get, is_problem, job, post};

/// The largest file.
pub(crate) const LARGEST: u64 = 7 << 20;
/// The size of the parts of an upload.
pub(crate) const PART: u64 = 1 << 20;

pub(crate) struct World {
    pub(crate) api: Router,
    pub(crate) service: Service,
    pub(crate) dir: TempDir,
    pub(crate) pool: PgPool,
}

impl World {
    pub(crate) async fn new(pool: PgPool) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let service = keeping(pool.clone(), dir.path(), settings(None)).await;
        Self { api: router(service.clone(), HttpSettings::default()).unwrap(), service, dir, pool }
    }

    pub(crate) async fn put(&self, sha256: &str, content: impl Into<Body>) -> Answer {
        send(&self.api, Request::put(format!("/v1/files/{sha256}")).body(content.into()).unwrap()).await
    }

    pub(crate) async fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        send(&self.api, request.body(Body::empty()).unwrap()).await
    }

    /// Returns the number of files in the store, parts included.
    pub(crate) fn objects(&self) -> usize {
        fn count(dir: &Path) -> usize {
            let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
            // The mark of the store's owner is no file of a tenant.
            let entries = entries.filter(|path| !path.to_string_lossy().ends_with("-generation"));
            entries.map(|path| if path.is_dir() { count(&path) } else { 1 }).sum()
        }
        count(self.dir.path())
    }

    /// Returns the folder of the installation.
    pub(crate) fn folder(&self) -> std::path::PathBuf {
        let mut entries = std::fs::read_dir(self.dir.path()).unwrap().map(|entry| entry.unwrap().path());
        entries.find(|path| path.is_dir()).unwrap()
    }

    pub(crate) async fn submit(&self, resource: &str) -> Answer {
        post(&self.api, "/v1/submissions", &[], &job(json!({"appResource": resource}))).await
    }
}

/// Returns the service with a store of files.
pub(crate) async fn keeping(pool: PgPool, dir: &Path, settings: FileSettings) -> Service {
    let store = FileStore::open(dir.to_str().unwrap()).unwrap();
    let setup =
        Setup { files: Some((store, settings)), ..in_memory::settings(in_memory::spark(SparkVersion::V4_3)).into() };
    in_memory::started(Store::new(pool), in_memory::cluster(), setup).await
}

/// Returns the settings of a store for clients that are too slow at once.
pub(crate) fn of_fast_clients() -> FileSettings {
    let pace = Pace { window: Duration::from_millis(500), ..Pace::SLOWEST };
    FileSettings { pace, patience: Duration::from_secs(60), ..settings(None) }
}

/// Sends a drop of a body, and then nothing.
pub(crate) fn a_drop() -> Body {
    let first = stream::iter([Ok::<_, std::io::Error>(Bytes::from_static(b"x"))]);
    Body::from_stream(first.chain(stream::pending()))
}

pub(crate) fn settings(unused_ttl: Option<Duration>) -> FileSettings {
    let patience = Duration::from_secs(1);
    let base_url = "http://gateway:6066".to_owned();
    FileSettings { base_url, driver_url: None, largest: LARGEST, part: PART, unused_ttl, patience, pace: Pace::SLOWEST }
}

pub(crate) fn sha256(content: &[u8]) -> String {
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[sqlx::test]
async fn an_upload_is_kept_once_and_read_in_parts(pool: PgPool) {
    let world = World::new(pool).await;
    let content: Vec<u8> = (0..6_000_000u32).map(|n| (n % 127) as u8).collect();
    let hash = sha256(&content);
    let path = format!("/v1/files/{hash}");
    is_problem(&get(&world.api, &path).await, 404, "file-not-found");

    let created = world.put(&hash, content.clone()).await;
    assert_eq!(
        (created.status, created.json()),
        (201, json!({"sha256": hash, "size": 6_000_000, "tenant": "default"}))
    );
    assert_eq!(world.put(&hash, content.clone()).await.status, 200);
    assert_eq!(world.objects(), 1);

    let head = world.ask("HEAD", &path, &[]).await;
    assert_eq!((head.status, head.header("content-length"), head.body.as_str()), (200, Some("6000000"), ""));
    let tag = format!("\"{hash}\"");
    assert_eq!(head.header("etag"), Some(tag.as_str()));
    let part = world.ask("GET", &path, &[("range", "bytes=65-67")]).await;
    assert_eq!(
        (part.status, part.header("content-range"), part.body.as_str()),
        (206, Some("bytes 65-67/6000000"), "ABC")
    );
    let last = world.ask("GET", &path, &[("range", "bytes=5999999-")]).await;
    assert_eq!((last.status, last.header("content-length")), (206, Some("1")));
    let beyond = world.ask("GET", &path, &[("range", "bytes=6000000-")]).await;
    assert_eq!((beyond.status, beyond.header("content-range")), (416, Some("bytes */6000000")));
    let other = world.ask("GET", &path, &[("range", "bytes=0-1"), ("if-range", "\"other\"")]).await;
    assert_eq!((other.status, other.header("content-length")), (200, Some("6000000")));
    assert_eq!(world.ask("GET", &path, &[("if-none-match", &tag)]).await.status, 304);
    let gzip = world.ask("GET", &path, &[("accept-encoding", "gzip")]).await;
    assert_eq!((gzip.header("content-encoding"), gzip.header("content-length")), (None, Some("6000000")));
}

#[sqlx::test]
async fn nothing_is_kept_of_an_upload_that_is_wrong(pool: PgPool) {
    let world = World::new(pool).await;
    let hash = sha256(b"right");
    let problem = is_problem(&world.put(&hash, "wrong").await, 422, "file-mismatch");
    assert!(problem["detail"].as_str().unwrap().contains(&sha256(b"wrong")), "{problem}");
    let large = vec![7; LARGEST as usize + 1];
    is_problem(&world.put(&sha256(&large), large.clone()).await, 413, "request-too-large");
    // Without an announced length.
    let pieces = large.chunks(1 << 20).map(|piece| Ok::<_, std::io::Error>(Bytes::copy_from_slice(piece)));
    let pieces: Vec<_> = pieces.collect();
    is_problem(&world.put(&sha256(&large), Body::from_stream(stream::iter(pieces))).await, 413, "request-too-large");
    let broken = [Ok(Bytes::from_static(b"rig")), Err(std::io::Error::other("the client has gone"))];
    is_problem(&world.put(&hash, Body::from_stream(stream::iter(broken))).await, 400, "invalid-request");
    for name in ["x", &hash.to_uppercase(), &hash[1..]] {
        is_problem(&world.put(name, "right").await, 400, "invalid-parameter");
    }
    assert_eq!(world.objects(), 0);
    assert_eq!(world.put(&hash, "right").await.status, 201);
    assert_eq!(world.put(&sha256(b""), "").await.status, 201, "an empty file is one");
}

#[sqlx::test]
async fn parallel_uploads_of_one_file_leave_one_object(pool: PgPool) {
    let world = World::new(pool).await;
    let content = Bytes::from(vec![9; 6 << 20]);
    let hash = sha256(&content);
    let answers = join_all((0..100).map(|_| world.put(&hash, content.clone()))).await;
    let of = |status| answers.iter().filter(|answer| answer.status == status).count();
    assert_eq!((of(201), of(200)), (1, 99), "{:?}", answers.iter().map(|answer| answer.status).collect::<Vec<_>>());
    assert_eq!(world.objects(), 1);
}

#[sqlx::test]
async fn a_submission_needs_the_files_that_it_refers_to(pool: PgPool) {
    let world = World::new(pool).await;
    let hash = sha256(b"print(1)");
    let reference = format!("sparkgate-file:/{hash}/job.py");
    let problem = is_problem(&world.submit(&reference).await, 400, "invalid-request");
    assert_eq!(problem["errors"][0]["pointer"], "#/appResource");
    let in_list = job(json!({"sparkProperties": {"spark.files": format!("local:///x,{reference}")}}));
    for path in ["/v1/submissions", "/v1/submissions?dryRun=true"] {
        let problem = is_problem(&post(&world.api, path, &[], &in_list).await, 400, "invalid-request");
        assert_eq!(problem["errors"][0]["pointer"], "#/sparkProperties/spark.files");
    }
    is_problem(&world.submit("sparkgate-file:/x/job.py").await, 400, "invalid-request");
    assert_eq!(count(&world.pool).await, 0);

    world.put(&hash, "print(1)").await;
    assert_eq!(world.submit(&reference).await.status, 201);
    assert_eq!(post(&world.api, "/v1/submissions?dryRun=true", &[], &in_list).await.status, 200);

    // As if another program had deleted the object: the next upload repairs it.
    let replaced = world.dir.path().join("elsewhere");
    let folder = world.folder();
    std::fs::rename(&folder, &replaced).unwrap();
    is_problem(&world.submit(&reference).await, 400, "invalid-request");
    assert_eq!(world.put(&hash, "print(1)").await.status, 201);
    assert_eq!(world.submit(&reference).await.status, 201);
}

#[sqlx::test]
async fn a_signed_url_is_valid_for_its_submission_while_it_is_live(pool: PgPool) {
    let world = World::new(pool).await;
    let hash = sha256(b"print(1)");
    world.put(&hash, "print(1)").await;
    let id = world.submit(&format!("sparkgate-file:/{hash}/job%20one.py")).await.json()["id"].clone();
    let id: SubmissionId = id.as_str().unwrap().parse().unwrap();
    let url = world.service.files.url_of(&id, &hash, "job%20one.py").unwrap();
    let path = url.strip_prefix("http://gateway:6066").unwrap();
    assert_eq!(get(&world.api, path).await.body, "print(1)");
    assert_eq!(world.ask("GET", path, &[("range", "bytes=0-4")]).await.body, "print");

    let other: SubmissionId = "driver-20260101000000-9999".parse().unwrap();
    for forged in [
        path.replace("job%20one", "job%20two"),
        path.replace(id.as_str(), other.as_str()),
        path.replace(&hash, &sha256(b"")),
        path.replace("job%20one.py", "job%20one.py/x"),
        path.replace(id.as_str(), "x"),
    ] {
        assert_eq!(get(&world.api, &forged).await.status, 404, "{forged}");
    }
    let end = "UPDATE submissions SET state = 'FAILED', finished_at = now()";
    sqlx::query(end).execute(&world.pool).await.unwrap();
    is_problem(&get(&world.api, path).await, 410, "file-expired");
}

#[sqlx::test]
async fn a_store_that_is_away_accepts_neither_files_nor_submissions(pool: PgPool) {
    let world = World::new(pool).await;
    let hash = sha256(b"print(1)");
    world.put(&hash, "print(1)").await;
    let (folder, aside) = (world.dir.path().to_owned(), world.dir.path().with_extension("aside"));
    std::fs::rename(&folder, &aside).unwrap();
    std::fs::write(&folder, "no directory").unwrap();
    let answers = [world.submit(&format!("sparkgate-file:/{hash}/job.py")).await, world.put(&sha256(b"x"), "x").await];
    std::fs::remove_file(&folder).unwrap();
    std::fs::rename(&aside, &folder).unwrap();
    for answer in answers {
        is_problem(&answer, 503, "files-unavailable");
        assert_eq!(answer.header("retry-after"), Some("1"));
    }
    assert_eq!(count(&world.pool).await, 0);
    assert_eq!(world.put(&sha256(b"x"), "x").await.status, 201);
}

#[sqlx::test]
async fn a_gateway_without_a_store_says_so(pool: PgPool) {
    let service = service(SparkVersion::V4_3, Store::new(pool.clone())).await;
    let world = World {
        api: router(service.clone(), HttpSettings::default()).unwrap(),
        service,
        dir: tempfile::tempdir().unwrap(),
        pool,
    };
    let problem = is_problem(&world.put(&sha256(b"x"), "x").await, 404, "not-found");
    assert!(problem["detail"].as_str().unwrap().contains("--files-url"), "{problem}");
    let refused = world.submit(&format!("sparkgate-file:/{}/job.py", sha256(b"x"))).await;
    assert!(is_problem(&refused, 400, "invalid-request").to_string().contains("--files-url"));
}

#[sqlx::test]
async fn clean_up_deletes_what_no_submission_uses_and_no_file_has(pool: PgPool) {
    let world = World::new(pool.clone()).await;
    let service = keeping(pool, world.dir.path(), settings(Some(Duration::from_secs(3600)))).await;
    let hashes = [sha256(b"one"), sha256(b"two"), sha256(b"lost")];
    for (hash, content) in hashes.iter().zip(["one", "two", "lost"]) {
        world.put(hash, content).await;
    }
    world.submit(&format!("sparkgate-file:/{}/one.py", hashes[0])).await;
    sqlx::raw_sql("UPDATE files SET last_used_at = now() - interval '2 hours'").execute(&world.pool).await.unwrap();
    // As if its upload had ended before its row was written.
    sqlx::query("DELETE FROM files WHERE sha256 = $1").bind(&hashes[2]).execute(&world.pool).await.unwrap();
    assert_eq!(service.files.clean_up(None).await.unwrap().files, 1, "the one that no submission uses");
    assert_eq!(world.objects(), 2);
    assert_eq!(service.files.sweep(chrono::Utc::now()).await.unwrap().orphans, 0, "it may be an upload");
    let tomorrow = chrono::Utc::now() + chrono::TimeDelta::hours(25);
    assert_eq!(service.files.sweep(tomorrow).await.unwrap().orphans, 1);
    assert_eq!((world.objects(), get(&world.api, &format!("/v1/files/{}", hashes[0])).await.status), (1, 200));
}
