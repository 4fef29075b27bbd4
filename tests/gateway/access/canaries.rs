//! A secret in each place of a request is found nowhere else: not in the log at `trace`, replies, events, the audit, the metrics or the
//! database.
//!
//! What is an identifier and no secret is left out: idempotency keys and `X-Request-Id` are stored and shown on purpose.

mod caller;
mod search;

use std::{collections::BTreeSet, io::Write, sync::Arc};

use base64::{Engine, prelude::BASE64_STANDARD};
use caller::Caller;
use kube::Client;
use search::{Canaries, Log};
use serde_json::{Value, json};
use sparkgate::{
    access::Role,
    api,
    app::log_filter,
    server::{ServerSettings, serve},
    service::{CleanUpSettings, EncryptionKeys},
    store::Store,
};
use sparkgate_testing::wait::until;
use sqlx::PgPool;
use tempfile::NamedTempFile;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{
    access::{
        cluster,
        world::{World, job, spark_job},
    },
    sessions::serving,
};

const FILE: &str = "
authentication: {}
tenants:
  red:
    namespaces: [red]
    policy: {properties: {allow: [spark.driver.extraJavaOptions, spark.authenticate.secret]}}
  strict: {namespaces: [strict], policy: {inlineSecrets: forbid, annotations: {deny: ['**']}}}
limits: {writes: 100000/s, reads: 100000/s, failedLogins: 100000/s}
";

/// The paths of both protocols on which a submission is created.
const CREATE: [&str; 2] = ["/v1/submissions", "/v1/submissions/create"];

/// Places of secrets that no driver gets.
const NOT_FOR_DRIVERS: [&str; 5] =
    ["encryption key", "API key", "Proxy-Authorization", "Cookie", "not.of.spark.password"];

/// Returns the document of a reply.
fn document(reply: &str) -> Value {
    serde_json::from_str(reply.split_once('\n').unwrap().1).unwrap_or_else(|error| panic!("{error}: {reply}"))
}

/// Fails unless a request is answered with one of these statuses.
fn is_refused(statuses: &[u16], reply: &(u16, String)) {
    assert!(statuses.contains(&reply.0), "{reply:?}");
}

/// Puts a canary into each place of a request that Spark's rule recognizes.
fn with_canaries(mut body: Value, canaries: &mut Canaries) -> Value {
    for key in [
        "spark.ssl.keyPassword",
        "spark.ssl.ui.trustStorePassword",
        "spark.hadoop.fs.s3a.access.key",
        "spark.hadoop.fs.s3a.secret.key",
        "spark.authenticate.secret",
        "spark.executorEnv.X_PASSWORD",
        "spark.kubernetes.driverEnv.X_TOKEN",
        "spark.kubernetes.driver.annotation.vault-token",
        "spark.kubernetes.driver.label.api-token",
        "spark.kubernetes.driver.service.annotation.dns-token",
        "spark.kubernetes.executor.annotation.vault-token",
        "spark.unknown.password",
        "not.of.spark.password",
    ] {
        body["sparkProperties"][key] = canaries.put(key).into();
    }
    for (key, name) in
        [("spark.driver.extraJavaOptions", "-Ddb.password"), ("spark.kubernetes.driverEnv.URL", "?token")]
    {
        body["sparkProperties"][key] = format!("{name}={}", canaries.put(key)).into();
    }
    body["environmentVariables"]["X_SECRET"] = canaries.put("environmentVariables").into();
    body["appArgs"] = json!([
        format!("--db-password={}", canaries.put("appArgs")),
        format!("-Dtoken={}", canaries.put("appArgs -D"))
    ]);
    body
}

fn template(name: &str, canaries: &mut Canaries) -> Value {
    let mut put = |place: &str| canaries.put(&format!("{name} template: {place}"));
    json!({
        "metadata": {"annotations": {"x-secret": put("annotation")}},
        "spec": {"containers": [{
            "name": "spark-kubernetes-driver", "image": "spark",
            "env": [{"name": "PASSWORD", "value": put("variable")}],
            "startupProbe": {"httpGet": {"port": 1, "httpHeaders": [{"name": "X-Token", "value": put("header")}]}},
        }]},
    })
}

/// Returns a request that both protocols accept, with one property more.
fn with_property(key: &str, value: impl Into<Value>) -> Value {
    let mut body = spark_job("red");
    body["sparkProperties"][key] = value.into();
    body
}

/// A gateway behind a port, with the canaries of its operator and of its clients.
struct Scene {
    world: World,
    client: Client,
    audit_log: Log,
    canaries: Canaries,
    caller: Caller,
    /// The ids of the submissions.
    ids: Vec<String>,
    _key_file: NamedTempFile,
}

impl Scene {
    async fn start(pool: &PgPool, stop: &CancellationToken) -> Self {
        let mut canaries = Canaries::default();
        let mut key_file = NamedTempFile::new().unwrap();
        let key = BASE64_STANDARD.encode([7; 32]);
        canaries.note("encryption key", &key);
        writeln!(key_file, "a:{key}").unwrap();
        let keys = EncryptionKeys::open(key_file.path().to_owned()).unwrap();
        let client = cluster::start("red").await;
        let audit_log = Log::default();
        let store = Store::new(pool.clone()).with_audit_log(Arc::new(audit_log.clone()));
        let mut world = World::of(store, pool.clone(), FILE, client.clone(), keys).await;
        world.configure(serving).await;
        tokio::spawn(world.service.leadership.clone().run_renewal(stop.clone()));
        let clean_up = CleanUpSettings { finished_pod_ttl: None, retention: None };
        for (_, part) in world.service.loops(clean_up, stop) {
            tokio::spawn(part);
        }
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(serve(listener, world.router.clone(), ServerSettings::default(), stop.clone()));
        let token = world.key(Role::Admin, None).await;
        canaries.note("API key", token.rsplit('_').next().unwrap());
        let caller = Caller { address, token, replies: Vec::new() };
        Self { world, client, audit_log, canaries, caller, ids: Vec::new(), _key_file: key_file }
    }

    /// Creates submissions over both protocols, whose drivers get the secrets, and runs them to their end; one with a retry.
    async fn run_submissions(&mut self) {
        let Self { world, client, canaries, caller, ids, .. } = self;
        let pool = &world.pool;
        let mut body = with_canaries(job("red"), canaries);
        body["driverPodTemplate"] = template("driver", canaries);
        body["executorPodTemplate"] = template("executor", canaries);
        body["maxRetries"] = json!({"application": 1});
        let (proxy, cookie) = (canaries.put("Proxy-Authorization"), canaries.put("Cookie"));
        let headers =
            [("proxy-authorization", proxy.as_str()), ("cookie", cookie.as_str()), ("idempotency-key", "first")];
        let dry_run = caller.post("/v1/submissions?dryRun=true", &body).await;
        assert_eq!(dry_run.0, 200, "{}", dry_run.1);
        let created = caller.send("POST", CREATE[0], &headers, body.to_string()).await;
        assert_eq!(created.0, 201, "{}", created.1);
        ids.push(document(&created.1)["id"].as_str().unwrap().to_owned());
        let spark = with_canaries(spark_job("red"), canaries);
        let created = caller.post(CREATE[1], &spark).await;
        assert_eq!(created.0, 200, "{}", created.1);
        ids.push(document(&created.1)["submissionId"].as_str().unwrap().to_owned());

        until("there are two drivers", async || cluster::drivers(client, "red").await.len() == 2).await;
        // The places where the secrets have to be.
        until("the secrets are where they have to be", async || {
            let objects = cluster::objects(client, "red").await;
            canaries
                .0
                .iter()
                .all(|(place, canary)| NOT_FOR_DRIVERS.contains(&place.as_str()) || objects.contains(canary))
        })
        .await;
        for (exit_code, phase) in [(3, "Failed"), (0, "Succeeded")] {
            for driver in cluster::drivers(client, "red").await {
                let ended = json!({"terminated": {"exitCode": exit_code, "reason": "Error", "message": "it ended"}});
                cluster::play(client, &driver, phase, ended).await;
            }
            if exit_code == 3 {
                let queued = "SELECT EXISTS (SELECT FROM submissions WHERE attempt = 2)";
                until("the second attempt is queued", async || {
                    sqlx::query_scalar(queued).fetch_one(pool).await.unwrap()
                })
                .await;
                sqlx::query("UPDATE submissions SET not_before = NULL").execute(pool).await.unwrap();
                let pending = "SELECT EXISTS (SELECT FROM submissions WHERE attempt = 2 AND state = 'PENDING')";
                until("the second attempt is pending", async || {
                    sqlx::query_scalar(pending).fetch_one(pool).await.unwrap()
                })
                .await;
            }
        }
        let live = "SELECT count(*) FROM submissions WHERE finished_at IS NULL";
        until("all submissions have ended", async || {
            sqlx::query_scalar::<_, i64>(live).fetch_one(pool).await.unwrap() == 0
        })
        .await;
    }

    /// Sends requests that are refused. Each has a secret, and most refusals quote what is wrong.
    async fn provoke_refusals(&mut self) {
        let Self { canaries, caller, .. } = self;
        for target in CREATE {
            let cut_off = format!("{{\"sparkProperties\": {{\"x.password\": \"{}\"", canaries.put("cut off body"));
            is_refused(&[400], &caller.send("POST", target, &[], cut_off).await);
            let no_json = format!("password={}", canaries.put("body that is no JSON"));
            is_refused(&[400], &caller.send("POST", target, &[], no_json).await);
            let no_object = json!([format!("password={}", canaries.put("body that is no object"))]);
            is_refused(&[400, 422], &caller.post(target, &no_object).await);
            let unknown = json!({"sparkProperties": {"x.password": canaries.put("body of another type")}, "id": 1});
            is_refused(&[400, 422], &caller.post(target, &unknown).await);
            for field in ["sparkProperties", "environmentVariables", "appArgs", "driverPodTemplate"] {
                let mut body = spark_job("red");
                body[field] = format!("password={}", canaries.put(&format!("wrong type of {field}"))).into();
                is_refused(&[400, 422], &caller.post(target, &body).await);
            }
            for key in [
                "spark.driver.memory",
                "spark.driver.cores",
                "spark.driver.supervise",
                "spark.executor.memory",
                "spark.kubernetes.driver.podTemplateFile",
                "spark.kubernetes.driver.master",
            ] {
                let secret = canaries.put(&format!("wrong {key}"));
                caller.post(target, &with_property(key, format!("password={secret}"))).await;
            }
            for key in ["spark.kubernetes.driverEnv.BAD NAME_TOKEN", "spark.kubernetes.driver.annotation.bad key token"]
            {
                caller.post(target, &with_property(key, canaries.put(key))).await;
            }
            let nul = with_property("spark.ssl.keyPassword", format!("{}\0", canaries.put("NUL")));
            is_refused(&[400, 422], &caller.post(target, &nul).await);
            let large = with_property("spark.ssl.keyPassword", canaries.put("too large").repeat(60_000));
            is_refused(&[400, 413, 422], &caller.post(target, &large).await);
            let other = with_property("spark.ssl.keyPassword", canaries.put("another request of the same key"));
            is_refused(
                &[409, 422],
                &caller.send("POST", target, &[("idempotency-key", "first")], other.to_string()).await,
            );

            let secret = canaries.put("policy");
            let mut body = spark_job("strict");
            body["sparkProperties"]["spark.kubernetes.driverEnv.X_TOKEN"] = secret.clone().into();
            body["sparkProperties"]["spark.kubernetes.driver.annotation.vault-token"] = secret.into();
            let reply = caller.post(target, &body).await;
            assert!(reply.1.contains("X_TOKEN"), "{reply:?}");
            is_refused(&[422], &reply);
        }
        let query = canaries.put("query");
        caller.get(&format!("/v1/submissions?access_token={query}")).await;
        let wrong = canaries.put("wrong credentials");
        for credentials in
            [format!("Bearer {wrong}"), format!("Bearer sg_abc_{wrong}"), format!("Basic {wrong}"), wrong]
        {
            let refused = caller.send("GET", "/v1/me", &[("authorization", &credentials)], String::new()).await;
            is_refused(&[401], &refused);
        }
    }

    /// Creates submissions that wait or are killed, and one whose label the API server refuses and quotes.
    async fn run_into_errors(&mut self) {
        let Self { canaries, caller, ids, .. } = self;
        let mut body = job("red");
        body["sparkProperties"]["spark.ssl.keyPassword"] = canaries.put("same name").into();
        body["uniqueName"] = true.into();
        let held = caller.post(CREATE[0], &body).await;
        assert_eq!(held.0, 201, "{held:?}");
        let held = document(&held.1)["id"].as_str().unwrap().to_owned();
        is_refused(&[409], &caller.post(CREATE[0], &body).await);
        is_refused(&[202], &caller.send("DELETE", &format!("/v1/submissions/{held}"), &[], String::new()).await);
        ids.push(held);
        let mut body = job("red");
        body["sparkProperties"]["spark.kubernetes.driver.label.api-token"] =
            format!("{} !", canaries.put("refused label")).into();
        let created = caller.post(CREATE[0], &body).await;
        assert_eq!(created.0, 201, "{created:?}");
        let id = document(&created.1)["id"].as_str().unwrap().to_owned();
        let reply = caller.get(&format!("/v1/submissions/{id}/wait?timeoutSeconds=30")).await;
        assert!(reply.1.contains("Invalid value"), "the API server quotes it: {reply:?}");
        ids.push(id);
    }

    /// Opens a session of Spark Connect.
    async fn open_session(&mut self) {
        let Self { canaries, caller, ids, .. } = self;
        let body = json!({
            "sparkProperties": {
                "spark.kubernetes.namespace": "red",
                "spark.ssl.keyPassword": canaries.put("property of a session"),
            },
            "environmentVariables": {"X_SECRET": canaries.put("variable of a session")},
        });
        let opened = caller.post("/v1/sessions", &body).await;
        assert_eq!(opened.0, 201, "{opened:?}");
        ids.push(document(&opened.1)["id"].as_str().unwrap().to_owned());
    }

    /// Creates a webhook with a token for its receiver. Its id is read as those of submissions are.
    async fn create_webhook(&mut self) {
        let Self { canaries, caller, ids, .. } = self;
        let token = canaries.put("bearer token of a webhook");
        let webhook = json!({"url": "https://hooks.invalid/x", "tenant": "red", "bearerToken": token});
        let created = caller.post("/v1/webhooks", &webhook).await;
        assert_eq!(created.0, 201, "{created:?}");
        ids.push(document(&created.1)["id"].as_str().unwrap().to_owned());
    }

    /// Calls every operation that reads.
    async fn read_everything(&mut self) {
        let Self { caller, ids, .. } = self;
        let openapi = serde_json::to_value(api::openapi()).unwrap();
        let reads = openapi["paths"].as_object().unwrap().iter().filter(|(_, path)| path.get("get").is_some());
        let mut without_reply = BTreeSet::new();
        for (path, _) in reads {
            let mut statuses = Vec::new();
            for id in ids.iter() {
                statuses.push(caller.get(&path.replace("{id}", id).replace("{job}", "job")).await.0);
            }
            if !statuses.contains(&200) {
                without_reply.insert(path.as_str());
            }
        }
        // The drivers wrote no log, there are no files, and a UI is elsewhere.
        let expected = [
            "/v1/files",
            "/v1/files/{sha256}",
            "/v1/files/{sha256}/{id}/{signature}/{name}",
            "/v1/submissions/{id}/logs",
            "/v1/submissions/{id}/ui",
        ];
        assert_eq!(without_reply, BTreeSet::from(expected));
        for id in ids.iter() {
            caller.get(&format!("/v1/submissions/{id}/manifest?attempt=2")).await;
        }
        caller.get("/v1/submissions?total=true").await;
        let stream = [("accept", "text/event-stream"), ("last-event-id", "0")];
        caller.send("GET", "/v1/events", &stream, String::new()).await;
        let events = caller.get("/v1/events?after=0").await.1;
        assert!(events.contains("FINISHED"), "{events}");
        let audit = caller.get("/v1/audit?limit=1000").await.1;
        assert!(audit.contains("denied") && audit.contains("allowed"), "{audit}");
    }
}

#[sqlx::test]
async fn secrets_of_requests_are_found_in_no_output(pool: PgPool) {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_env_filter(log_filter("trace").unwrap());
    let _logging = tracing::subscriber::set_default(subscriber.with_writer(move || writer.clone()).finish());
    // With a single subscriber, a line that the thread of another test logs first would stay off for this one.
    let _another = tracing::Dispatch::new(tracing_subscriber::registry());
    let stop = CancellationToken::new();
    let _stop = stop.clone().drop_guard();
    let mut scene = Scene::start(&pool, &stop).await;
    scene.run_submissions().await;
    scene.provoke_refusals().await;
    scene.run_into_errors().await;
    scene.open_session().await;
    scene.create_webhook().await;
    scene.read_everything().await;

    let Scene { canaries, caller, audit_log, .. } = &scene;
    let (log, audit_log) = (log.text(), audit_log.text());
    assert!(log.contains("TRACE") && log.contains("state changed"), "the log is complete");
    assert!(audit_log.contains("denied") && audit_log.contains("allowed"), "{audit_log}");
    let mut found = canaries.found_in("the log", &log);
    found.extend(canaries.found_in("the audit log", &audit_log));
    let metrics = scene.world.service.scrape.text().await.unwrap();
    assert!(metrics.contains("sparkgate_submissions_accepted_total{tenant=\"red\"}"), "{metrics}");
    found.extend(canaries.found_in("the metrics", &metrics));
    found.extend(canaries.found_in("the database", &cluster::dump(&pool).await));
    for (what, reply) in &caller.replies {
        found.extend(canaries.found_in(what, reply));
    }
    assert!(found.is_empty(), "{} secrets in {} replies:\n{}", found.len(), caller.replies.len(), found.join("\n"));
}
