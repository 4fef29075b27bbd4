//! Secrets are encrypted in the database until no attempt needs them any more.

use std::{fs, io::Write};

use base64::{Engine, prelude::BASE64_STANDARD};
use kube::Client;
use serde_json::{Value, json};
use sparkgate::{access::Role, service::EncryptionKeys, store::Store};
use sparkgate_testing::wait::until;
use sqlx::PgPool;
use tempfile::NamedTempFile;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::access::{
    cluster,
    world::{TWO_TENANTS, World, job},
};

const CANARY: &str = "hunter2-b41c7f";

/// Writes a file with these keys.
fn keys(ids: &[&str]) -> (NamedTempFile, EncryptionKeys) {
    let mut file = NamedTempFile::new().unwrap();
    for id in ids {
        writeln!(file, "{id}:{}", key(id)).unwrap();
    }
    let keys = EncryptionKeys::open(file.path().to_owned()).unwrap();
    (file, keys)
}

/// Returns the key with an id.
fn key(id: &str) -> String {
    BASE64_STANDARD.encode([id.as_bytes()[0]; 32])
}

/// Returns a request with a secret.
fn secret_job(retries: u32) -> Value {
    let mut body = job("red");
    body["sparkProperties"]["spark.kubernetes.driverEnv.DB_PASSWORD"] = json!(CANARY);
    body["maxRetries"] = json!({"application": retries});
    body
}

/// A gateway with keys, and its operator.
struct Gateway {
    world: World,
    operator: String,
    _living: DropGuard,
}

impl Gateway {
    async fn start(pool: &PgPool, client: &Client, keys: EncryptionKeys) -> Self {
        let world = World::of(Store::new(pool.clone()), pool.clone(), TWO_TENANTS, client.clone(), keys).await;
        let living = CancellationToken::new();
        tokio::spawn(world.service.leadership.clone().run_renewal(living.clone()));
        tokio::spawn(world.service.pods.clone().run(living.clone()));
        let operator = world.key(Role::Operator, Some("red")).await;
        Self { world, operator, _living: living.drop_guard() }
    }

    async fn submit(&self, body: &Value) -> String {
        let answer = self.world.send(Some(&self.operator), "POST", "/v1/submissions", Some(body)).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.json()["id"].as_str().unwrap().to_owned()
    }

    async fn get(&self, id: &str) -> Value {
        self.world.get(&self.operator, &format!("/v1/submissions/{id}")).await.json()
    }

    async fn until(&self, id: &str, state: &str, attempt: u32) {
        until("the submission has the state", async || {
            let submission = self.get(id).await;
            submission["state"] == state && submission["attempt"] == attempt
        })
        .await;
    }

    /// Launches what waits, whether it is due or not, and returns how many that were.
    async fn launch(&self) -> usize {
        sqlx::query("UPDATE submissions SET not_before = NULL").execute(&self.world.pool).await.unwrap();
        self.world.service.launcher.work().await.unwrap()
    }

    /// Reports that the driver of an attempt ended with this exit code.
    async fn end(&self, attempt: usize, exit_code: u8) {
        let mut drivers = cluster::drivers(&self.world.client, "red").await;
        drivers.retain(|pod| pod.metadata.labels.as_ref().unwrap()["sparkgate.dev/attempt"] == attempt.to_string());
        let (phase, reason) = if exit_code == 0 { ("Succeeded", "Completed") } else { ("Failed", "Error") };
        let ended = json!({"terminated": {"exitCode": exit_code, "reason": reason}});
        cluster::play(&self.world.client, &drivers[0], phase, ended).await;
    }

    /// Returns the keys of the encrypted objects, by attempt.
    async fn sealed(&self) -> Vec<(i32, String)> {
        let sealed = "SELECT attempt, sealed_key FROM manifests WHERE sealed IS NOT NULL ORDER BY attempt";
        sqlx::query_as(sealed).fetch_all(&self.world.pool).await.unwrap()
    }

    /// Fails if the database has the secret in plain text.
    async fn assert_no_canary(&self) {
        let dump = cluster::dump(&self.world.pool).await;
        let hex: String = CANARY.bytes().map(|byte| format!("{byte:02x}")).collect();
        for form in [CANARY, &hex, BASE64_STANDARD.encode(CANARY).trim_end_matches('=')] {
            let row = dump.lines().find(|row| row.contains(form));
            assert_eq!(row, None);
        }
    }
}

#[sqlx::test]
async fn a_driver_gets_its_secrets_and_the_database_has_them_encrypted_until_it_is_launched(pool: PgPool) {
    let client = cluster::start("red").await;
    let (_file, keys) = keys(&["a"]);
    let gateway = Gateway::start(&pool, &client, keys).await;
    let id = gateway.submit(&secret_job(0)).await;
    assert_eq!(gateway.sealed().await, [(1, "a".to_owned())]);
    gateway.assert_no_canary().await;
    assert_eq!(gateway.launch().await, 1);
    gateway.until(&id, "PENDING", 1).await;
    let objects = cluster::objects(&client, "red").await;
    assert_eq!(objects.matches(CANARY).count(), 2, "the variable of the pod, and the property: {objects}");
    assert_eq!(gateway.sealed().await, []);
    gateway.assert_no_canary().await;
    let shown = gateway.world.get(&gateway.operator, &format!("/v1/submissions/{id}/manifest")).await.body;
    assert!(shown.contains("DB_PASSWORD") && !shown.contains(CANARY), "{shown}");
}

#[sqlx::test]
async fn a_retry_gets_the_secrets_of_the_attempt_before(pool: PgPool) {
    let client = cluster::start("red").await;
    let (_file, old) = keys(&["a"]);
    let (_file, new) = keys(&["b", "a"]);
    let gateway = Gateway::start(&pool, &client, old).await;
    let id = gateway.submit(&secret_job(1)).await;
    gateway.launch().await;
    gateway.until(&id, "PENDING", 1).await;
    assert_eq!(gateway.sealed().await, [(1, "a".to_owned())], "a retry may need them");
    drop(gateway);

    let gateway = Gateway::start(&pool, &client, new).await;
    gateway.end(1, 3).await;
    gateway.until(&id, "QUEUED", 2).await;
    assert_eq!(gateway.launch().await, 1);
    gateway.until(&id, "PENDING", 2).await;
    assert_eq!(gateway.sealed().await, [], "none can follow");
    gateway.assert_no_canary().await;
    let objects = cluster::objects(&client, "red").await;
    assert_eq!(objects.matches(CANARY).count(), 4, "{objects}");
    gateway.end(2, 0).await;
    gateway.until(&id, "FINISHED", 2).await;
    gateway.assert_no_canary().await;
}

#[sqlx::test]
async fn retries_that_are_left_need_no_secrets_after_the_end(pool: PgPool) {
    let client = cluster::start("red").await;
    let (_file, keys) = keys(&["a"]);
    let gateway = Gateway::start(&pool, &client, keys).await;
    let (ended, killed, queued) = (secret_job(3), secret_job(3), secret_job(3));
    let id = gateway.submit(&ended).await;
    gateway.launch().await;
    gateway.until(&id, "PENDING", 1).await;
    gateway.end(1, 0).await;
    gateway.until(&id, "FINISHED", 1).await;
    assert_eq!(gateway.sealed().await, []);
    let kill = async |id: &str| {
        let path = format!("/v1/submissions/{id}");
        assert_eq!(gateway.world.send(Some(&gateway.operator), "DELETE", &path, None).await.status, 202);
    };
    let id = gateway.submit(&queued).await;
    kill(&id).await;
    assert_eq!(gateway.sealed().await, [], "killed before its launch");
    let id = gateway.submit(&killed).await;
    gateway.launch().await;
    gateway.until(&id, "PENDING", 1).await;
    kill(&id).await;
    assert_eq!(gateway.sealed().await, [], "killed after its launch");
    let mut overdue = secret_job(3);
    overdue["startTimeoutSeconds"] = json!(600);
    let id = gateway.submit(&overdue).await;
    sqlx::query("UPDATE submissions SET deadline = now() - interval '1 s' WHERE state = 'QUEUED'")
        .execute(&pool)
        .await
        .unwrap();
    gateway.world.service.leadership.kill_overdue().await.unwrap();
    gateway.until(&id, "KILLED", 1).await;
    assert_eq!(gateway.sealed().await, [], "killed by its timeout");
    gateway.submit(&secret_job(3)).await;
    let path = "/v1/submissions/killall";
    assert_eq!(gateway.world.send(Some(&gateway.operator), "POST", path, None).await.status, 200);
    assert_eq!(gateway.sealed().await, [], "killed with all others");
}

#[sqlx::test]
async fn a_submission_waits_for_the_key_of_its_secrets(pool: PgPool) {
    let client = cluster::start("red").await;
    let (_file, a) = keys(&["a"]);
    let gateway = Gateway::start(&pool, &client, a).await;
    let (first, second) = (gateway.submit(&secret_job(0)).await, gateway.submit(&secret_job(0)).await);
    drop(gateway);

    let (_file, both) = keys(&["b", "a"]);
    let gateway = Gateway::start(&pool, &client, both).await;
    let third = gateway.submit(&secret_job(0)).await;
    assert_eq!(gateway.sealed().await.iter().map(|(_, key)| key.as_str()).collect::<Vec<_>>(), ["a", "a", "b"]);
    sqlx::query("UPDATE submissions SET not_before = now() + interval '1 minute' WHERE id = $1")
        .bind(&second)
        .execute(&pool)
        .await
        .unwrap();
    assert_eq!(gateway.world.service.launcher.work().await.unwrap(), 2);
    gateway.until(&first, "PENDING", 1).await;
    gateway.until(&third, "PENDING", 1).await;
    drop(gateway);

    for keys in [EncryptionKeys::none(), keys(&["b"]).1] {
        let gateway = Gateway::start(&pool, &client, keys).await;
        assert_eq!(gateway.launch().await, 1);
        let waiting = gateway.get(&second).await;
        let why = &waiting["waiting"];
        assert_eq!((&waiting["state"], &why["code"]), (&json!("LAUNCHING"), &json!("CONFIG_MISSING")), "{waiting}");
        assert_eq!(why["reason"], "EncryptionKeyMissing");
        assert!(why["message"].as_str().unwrap().contains("the key \"a\""), "{waiting}");
    }
    // The same id with another key.
    let mut file = NamedTempFile::new().unwrap();
    writeln!(file, "a:{}", key("z")).unwrap();
    let gateway = Gateway::start(&pool, &client, EncryptionKeys::open(file.path().to_owned()).unwrap()).await;
    assert_eq!(gateway.launch().await, 1);
    assert!(gateway.get(&second).await["waiting"]["message"].as_str().unwrap().contains("doesn't decrypt"));
    // The file is read again.
    let stop = CancellationToken::new();
    let _stop = stop.clone().drop_guard();
    tokio::spawn(gateway.world.service.encryption.clone().run(stop));
    fs::write(file.path(), format!("b:{}\na:{}\n", key("b"), key("a"))).unwrap();
    until("the new keys are read", async || gateway.world.service.encryption.ids() == ["b", "a"]).await;
    assert_eq!(gateway.launch().await, 1);
    gateway.until(&second, "PENDING", 1).await;
    assert_eq!(cluster::objects(&client, "red").await.matches(CANARY).count(), 6);
    assert_eq!(gateway.sealed().await, []);
}

#[sqlx::test]
async fn a_kill_needs_no_key(pool: PgPool) {
    let client = cluster::start("red").await;
    let (_file, a) = keys(&["a"]);
    let gateway = Gateway::start(&pool, &client, a).await;
    let id = gateway.submit(&secret_job(1)).await;
    drop(gateway);
    let gateway = Gateway::start(&pool, &client, EncryptionKeys::none()).await;
    gateway.launch().await;
    gateway.until(&id, "LAUNCHING", 1).await;
    let path = format!("/v1/submissions/{id}");
    assert_eq!(gateway.world.send(Some(&gateway.operator), "DELETE", &path, None).await.status, 202);
    gateway.launch().await;
    gateway.until(&id, "KILLED", 1).await;
}

#[sqlx::test]
async fn objects_without_secrets_are_stored_as_they_are(pool: PgPool) {
    let client = cluster::start("red").await;
    let (_file, a) = keys(&["a"]);
    let gateway = Gateway::start(&pool, &client, a).await;
    gateway.submit(&job("red")).await;
    assert_eq!(gateway.sealed().await, []);
    drop(gateway);
    let gateway = Gateway::start(&pool, &client, EncryptionKeys::none()).await;
    gateway.submit(&secret_job(0)).await;
    assert_eq!(gateway.sealed().await, []);
    let dump = cluster::dump(&pool).await;
    let tables: Vec<_> = dump.lines().filter(|row| row.contains(CANARY)).map(|row| row.split(' ').next()).collect();
    assert_eq!(tables, [Some("manifests")], "without a key, the objects of the launch are plain; the request isn't");
    assert_eq!(gateway.launch().await, 2);
}
