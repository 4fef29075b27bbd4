//! What is a permission by itself can't be made from a copy of the database, if there is an encryption key file.

use std::io::Write;

use base64::{Engine, prelude::BASE64_STANDARD};
use kube::Client;
use serde_json::json;
use sha2::{Digest, Sha256};
use sparkgate::{
    access::Role,
    api::{HttpSettings, files_listener},
    service::{EncryptionKeys, FileSettings},
    store::Store,
    submission::{Installation, SubmissionId},
};
use sqlx::PgPool;
use tempfile::{NamedTempFile, TempDir};
use uuid::Uuid;

use crate::access::{
    cluster,
    world::{TWO_TENANTS, World, file_settings, job},
};

const BASE: &str = "http://gateway.example";
const CONTENT: &str = "print(1)";

fn keys(bytes: &[u8]) -> (NamedTempFile, EncryptionKeys) {
    let mut file = NamedTempFile::new().unwrap();
    for byte in bytes {
        writeln!(file, "k{byte}:{}", BASE64_STANDARD.encode([*byte; 32])).unwrap();
    }
    let keys = EncryptionKeys::open(file.path().to_owned()).unwrap();
    (file, keys)
}

/// A database with a store of files, and gateways that are started on them one after the other.
struct Place {
    pool: PgPool,
    client: Client,
    dir: TempDir,
}

impl Place {
    async fn new(pool: PgPool) -> Self {
        Self { pool, client: cluster::start("red").await, dir: TempDir::new().unwrap() }
    }

    async fn gateway(&self, keys: EncryptionKeys) -> World {
        let (store, pool) = (Store::new(self.pool.clone()), self.pool.clone());
        let mut world = World::of(store, pool, TWO_TENANTS, self.client.clone(), keys).await;
        world.keep_files(self.dir.path(), FileSettings { base_url: BASE.to_owned(), ..file_settings() }).await;
        world
    }

    async fn sql(&self, statement: &'static str) {
        sqlx::raw_sql(statement).execute(&self.pool).await.unwrap();
    }

    /// Returns an installation as a reader of a copy of the database has it.
    async fn dumped(&self) -> Installation {
        let key: Vec<u8> = sqlx::query_scalar("SELECT key FROM installation").fetch_one(&self.pool).await.unwrap();
        Installation::new(Uuid::nil(), key)
    }

    /// Returns the URL that such a reader makes.
    async fn forged(&self, id: &SubmissionId) -> String {
        url(id, &self.dumped().await.key_for(&format!("file of {id}: {}/job.py", hash())))
    }
}

fn hash() -> String {
    Sha256::digest(CONTENT).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn url(id: &SubmissionId, signature: &[u8; 32]) -> String {
    let signature: String = signature[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{BASE}/v1/files/{}/{id}/{signature}/job.py", hash())
}

/// Submits a job with a file, as the operator of a tenant.
async fn submit(world: &World) -> SubmissionId {
    let operator = world.key(Role::Operator, Some("red")).await;
    let request = axum::http::Request::put(format!("/v1/files/{}?namespace=red", hash()));
    let request = request.header("host", "gateway").header("authorization", format!("Bearer {operator}"));
    let answer = world.answer(request.body(axum::body::Body::from(CONTENT)).unwrap()).await;
    assert!([200, 201].contains(&answer.status), "{answer:?}");
    let mut body = job("red");
    body["appResource"] = json!(format!("sparkgate-file:/{}/job.py", hash()));
    let answer = world.send(Some(&operator), "POST", "/v1/submissions", Some(&body)).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.json()["id"].as_str().unwrap().parse().unwrap()
}

async fn fetch(world: &World, url: &str) -> u16 {
    world.send(None, "GET", url.strip_prefix(BASE).unwrap(), None).await.status
}

fn signed(world: &World, id: &SubmissionId) -> String {
    world.service.files.url_of(id, &hash(), "job.py").unwrap()
}

#[sqlx::test]
async fn a_copy_of_the_database_signs_no_url_of_a_gateway_with_a_key_file(pool: PgPool) {
    let place = Place::new(pool).await;
    let (_file, a) = keys(&[1]);
    let world = place.gateway(a).await;
    // A rollout may still be under way in the first minute.
    place.sql("UPDATE installation SET guarded_since = now() - interval '1 hour'").await;
    drop(world);
    let (_file, a) = keys(&[1]);
    let world = place.gateway(a).await;
    let id = submit(&world).await;
    assert_eq!(fetch(&world, &signed(&world, &id)).await, 200);
    assert_eq!(fetch(&world, &place.forged(&id).await).await, 404);

    // The rotation of the file.
    let url = signed(&world, &id);
    let (_file, both) = keys(&[2, 1]);
    let world = place.gateway(both).await;
    assert_ne!(signed(&world, &id), url);
    assert_eq!((fetch(&world, &url).await, fetch(&world, &signed(&world, &id)).await), (200, 200));
    assert_eq!(fetch(&world, &place.forged(&id).await).await, 404);
}

#[sqlx::test]
async fn urls_of_drivers_from_before_the_key_file_stay_valid_until_they_end(pool: PgPool) {
    let place = Place::new(pool).await;
    let world = place.gateway(EncryptionKeys::none()).await;
    let id = submit(&world).await;
    let url = signed(&world, &id);
    assert_eq!(url, place.forged(&id).await);
    place.sql("UPDATE submissions SET created_at = now() - interval '2 hours'").await;
    let (_file, a) = keys(&[1]);
    drop(place.gateway(a).await);
    place.sql("UPDATE installation SET guarded_since = now() - interval '1 hour'").await;
    let (_file, a) = keys(&[1]);
    let world = place.gateway(a).await;
    assert_ne!(signed(&world, &id), url);
    assert_eq!((fetch(&world, &url).await, fetch(&world, &signed(&world, &id)).await), (200, 200));
    let later = submit(&world).await;
    assert_eq!(fetch(&world, &place.forged(&later).await).await, 404);
    // The file is removed again.
    let world = place.gateway(EncryptionKeys::none()).await;
    assert_eq!(signed(&world, &later), place.forged(&later).await);
    assert_eq!(fetch(&world, &signed(&world, &later)).await, 200);
}

#[sqlx::test]
async fn a_replica_signs_so_that_one_of_an_older_release_can_verify(pool: PgPool) {
    let place = Place::new(pool).await;
    place
        .sql(
            "INSERT INTO leases (name, holder, expires_at) SELECT 'replica/' || id, id, clock_timestamp() + interval '29 s'
             FROM gen_random_uuid() AS id",
        )
        .await;
    let (_file, a) = keys(&[1]);
    let world = place.gateway(a).await;
    let id = submit(&world).await;
    assert_eq!(signed(&world, &id), place.forged(&id).await);
    assert!(!Store::new(place.pool.clone()).rotate_installation_key(&[9; 32]).await.unwrap(), "it would not notice");
    place.sql("DELETE FROM leases").await;
    let (_file, a) = keys(&[1]);
    let world = place.gateway(a).await;
    assert_ne!(signed(&world, &id), place.forged(&id).await);
}

#[sqlx::test]
async fn a_new_key_of_the_installation_leaves_drivers_their_urls_and_identities(pool: PgPool) {
    let place = Place::new(pool).await;
    let world = place.gateway(EncryptionKeys::none()).await;
    let id = submit(&world).await;
    let (url, former) = (signed(&world, &id), place.dumped().await);
    let identity = former.identity(&id, 1, "red", "pi-1-driver");
    assert!(Store::new(place.pool.clone()).rotate_installation_key(&[9; 32]).await.unwrap());
    place
        .sql(
            "UPDATE submissions SET created_at = now() - interval '2 hours';
             UPDATE former_installation_keys SET replaced_at = now() - interval '1 hour'",
        )
        .await;
    let world = place.gateway(EncryptionKeys::none()).await;
    assert_ne!(signed(&world, &id), url);
    assert_eq!((fetch(&world, &url).await, fetch(&world, &signed(&world, &id)).await), (200, 200));
    assert_eq!(place.dumped().await.verify(&identity, "red", "pi-1-driver"), None, "by the new key alone");
    let later = submit(&world).await;
    let purpose = format!("file of {later}: {}/job.py", hash());
    assert_eq!(fetch(&world, &self::url(&later, &former.key_for(&purpose))).await, 404);
    assert_eq!(fetch(&world, &place.forged(&later).await).await, 200);
}

#[sqlx::test]
async fn the_port_of_drivers_serves_signed_files_and_nothing_else(pool: PgPool) {
    let place = Place::new(pool).await;
    let mut world = place.gateway(EncryptionKeys::none()).await;
    let id = submit(&world).await;
    let (url, admin) = (signed(&world, &id), world.key(Role::Admin, None).await);
    world.router = files_listener(world.service.clone(), HttpSettings::default());
    assert_eq!(fetch(&world, &url).await, 200);
    assert_eq!(fetch(&world, &url.replace("job.py", "other.py")).await, 404);
    let file = format!("/v1/files/{}", hash());
    for path in [
        "/v1/submissions",
        "/v1/submissions/create",
        "/v1/submissions/killall",
        &file,
        "/v1/files",
        "/v1/events",
        "/livez",
    ] {
        for method in ["GET", "POST", "PUT", "DELETE"] {
            let answer = world.send(Some(&admin), method, path, None).await;
            assert_eq!(answer.status, 404, "{method} {path}: {answer:?}");
        }
    }
    for path in ["/", "/console/submissions", "/api/v1/spark-submit", "/batches", "/metrics", "/docs"] {
        assert_eq!(world.get(&admin, path).await.status, 404, "{path}");
    }
    let answer = world.send(None, "POST", url.strip_prefix(BASE).unwrap(), None).await;
    assert_eq!((answer.status, answer.headers["allow"].as_str()), (405, "GET,HEAD"), "{answer:?}");
}
