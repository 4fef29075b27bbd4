//! The audit.

use std::sync::{Arc, Mutex};

use axum::{body::Body, http::Request};
use serde_json::{Value, json};
use sparkgate::{
    access::Role,
    api::{HttpSettings, audit_line, livy_listener, router},
    store::{AuditEntry, AuditLog, Store},
};
use sqlx::{ConnectOptions, PgPool};

use crate::access::world::{TWO_TENANTS, World, file_settings, job, spark_job};

/// Collects the lines of the audit log.
#[derive(Debug, Default)]
struct Lines(Mutex<Vec<Value>>);

impl AuditLog for Lines {
    fn append(&self, entry: AuditEntry) {
        let line = audit_line(entry);
        assert!(line.find('\n') == Some(line.len() - 1));
        self.0.lock().unwrap().push(serde_json::from_str(&line).unwrap());
    }
}

/// Returns entries without the names of their API keys.
fn without_names(entries: &Value) -> Value {
    let mut entries = entries.clone();
    let all = entries.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut);
    all.for_each(|entry| drop(entry.remove("subjectName")));
    entries
}

#[sqlx::test]
async fn each_change_has_an_entry_with_its_principal_and_verdict(pool: PgPool) {
    let lines = Arc::<Lines>::default();
    let world = World::on(Store::new(pool.clone()).with_audit_log(lines.clone()), pool, TWO_TENANTS).await;
    let (alice, viewer) = (world.key(Role::Submitter, Some("red")).await, world.key(Role::Viewer, Some("red")).await);
    let operator = world.key(Role::Operator, Some("red")).await;
    let admin = world.key(Role::Admin, None).await;
    let first = world.submit(&alice, "red").await;
    let second = world.send(Some(&alice), "POST", "/v1/submissions/create", Some(&spark_job("red"))).await.json();
    let second = second["submissionId"].as_str().unwrap();
    assert_eq!(world.send(Some(&viewer), "DELETE", &format!("/v1/submissions/{first}"), None).await.status, 403);
    assert_eq!(world.send(Some(&operator), "DELETE", &format!("/v1/submissions/{first}"), None).await.status, 202);
    assert_eq!(world.send(Some(&operator), "POST", "/v1/submissions/killall", None).await.status, 200);
    assert_eq!(world.send(Some(&operator), "POST", "/v1/submissions/clear", None).await.status, 200);
    let body = json!({"name": "n", "tenant": "red", "role": "viewer"});
    let key = world.send(Some(&operator), "POST", "/v1/tokens", Some(&body)).await.json();
    let path = format!("/v1/tokens/{}", key["id"].as_str().unwrap());
    assert_eq!(world.send(Some(&operator), "DELETE", &path, None).await.status, 204);

    let audit = world.get(&operator, "/v1/audit").await.json();
    let names: Vec<&Value> = audit["entries"].as_array().unwrap().iter().map(|entry| &entry["subjectName"]).collect();
    assert_eq!((names[0], names[2]), (&json!("submitter-red"), &json!("viewer-red")));
    let logged = Value::from(lines.0.lock().unwrap().clone());
    assert_eq!(without_names(&audit["entries"]), logged, "the log has the same entries, without names");
    let subject = async |key: &str| world.get(key, "/v1/me").await.json()["subject"].as_str().unwrap().to_owned();
    let (alice, viewer, operator_) = (subject(&alice).await, subject(&viewer).await, subject(&operator).await);
    let entries: Vec<_> = audit["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| {
            let text = |name: &str| entry[name].as_str().unwrap_or_default().to_owned();
            assert!(!text("requestId").is_empty());
            (text("subject"), text("action"), text("submission"), text("verdict"))
        })
        .collect();
    let entry = |subject: &str, action: &str, submission: &str, verdict: &str| {
        (subject.to_owned(), action.to_owned(), submission.to_owned(), verdict.to_owned())
    };
    assert_eq!(
        entries,
        [
            entry(&alice, "submit", &first, "allowed"),
            entry(&alice, "submit", second, "allowed"),
            entry(&viewer, "kill", &first, "denied"),
            entry(&operator_, "kill", &first, "allowed"),
            entry(&operator_, "killall", second, "allowed"),
            entry(&operator_, "clear", "", "allowed"),
            entry(&operator_, "create-key", "", "allowed"),
            entry(&operator_, "revoke-key", "", "allowed"),
        ]
    );

    let blue = world.key(Role::Operator, Some("blue")).await;
    assert_eq!(world.get(&blue, "/v1/audit").await.json()["entries"], json!([]));
    let of_one = world.get(&admin, &format!("/v1/audit?submission={second}&limit=1")).await.json();
    assert_eq!(of_one["entries"].as_array().unwrap().len(), 1);
    let next = format!("/v1/audit?submission={second}&after={}", of_one["next"]);
    assert_eq!(world.get(&admin, &next).await.json()["entries"][0]["action"], "killall");
}

#[sqlx::test]
async fn a_refused_submission_is_in_the_audit_and_its_log(pool: PgPool) {
    let lines = Arc::<Lines>::default();
    let world = World::on(Store::new(pool.clone()).with_audit_log(lines.clone()), pool, TWO_TENANTS).await;
    let viewer = world.key(Role::Viewer, Some("red")).await;
    assert_eq!(world.send(Some(&viewer), "POST", "/v1/submissions", Some(&job("red"))).await.status, 403);
    let lines = lines.0.lock().unwrap().clone();
    assert_eq!((lines.len(), &lines[0]["verdict"]), (1, &json!("denied")), "{lines:?}");
    let admin = world.key(Role::Admin, None).await;
    assert_eq!(without_names(&world.get(&admin, "/v1/audit").await.json()["entries"]), Value::from(lines));
}

/// Who asks, for what, and what the audit says of it: the action, the tenant, the submission, and the verdict.
type Attempt<'a> = (&'a str, &'a str, String, Value, u16, (&'a str, Option<&'a str>, &'a str, &'a str));

#[sqlx::test]
async fn each_attempt_at_a_change_has_one_entry_that_the_tenant_aimed_at_sees(pool: PgPool) {
    let mut world = World::new(pool.clone(), TWO_TENANTS).await;
    let dir = tempfile::tempdir().unwrap();
    world.keep_files(dir.path(), file_settings()).await;
    let listener = livy_listener(world.service.clone(), HttpSettings::default()).unwrap();
    let livy = World { router: listener, ..World::new(pool.clone(), TWO_TENANTS).await };
    let router = router(world.service.clone(), HttpSettings::default());
    let world = World { router: router.unwrap(), ..world };
    let red = async |role: Role| world.key(role, Some("red")).await;
    let (viewer, alice, operator) = (red(Role::Viewer).await, red(Role::Submitter).await, red(Role::Operator).await);
    let blue = world.key(Role::Operator, Some("blue")).await;
    let admin = world.key(Role::Admin, None).await;
    let theirs = world.submit(&blue, "blue").await;
    let hook = world
        .send(Some(&blue), "POST", "/v1/webhooks", Some(&json!({"url": "https://hooks.example.org"})))
        .await
        .json();
    let mine = world
        .send(Some(&operator), "POST", "/v1/webhooks", Some(&json!({"url": "https://hooks.example.org"})))
        .await
        .json();
    let path_of = |hook: &Value| format!("/v1/webhooks/{}", hook["id"].as_str().unwrap());
    let (hook, mine) = (path_of(&hook), path_of(&mine));
    let key_of_blue = world.get(&blue, "/v1/tokens").await.json()["tokens"][0]["id"].as_str().unwrap().to_owned();
    let key = |role: &str, tenant: &str| json!({"name": "n", "role": role, "tenant": tenant});
    let batch = json!({"file": "local:///a.jar", "className": "A", "conf": {"spark.kubernetes.namespace": "blue"}});
    let application = json!({"submission_id": "u",
        "spark_submit_args": ["--class", "A", "--conf", "spark.kubernetes.namespace=blue", "local:///a.jar"]});
    // Of the text `x`.
    let file = "/v1/files/2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881".to_owned();
    let of = |path: &str| path.to_owned();
    let none = json!({});
    let (red_, blue_) = (Some("red"), Some("blue"));
    let attempts: Vec<Attempt<'_>> = vec![
        (
            &alice,
            "POST",
            of("/v1/tokens"),
            json!({"name": "n", "role": "admin"}),
            403,
            ("create-key", red_, "", "denied"),
        ),
        (&alice, "POST", of("/v1/tokens"), key("viewer", "blue"), 403, ("create-key", blue_, "", "denied")),
        (&alice, "DELETE", format!("/v1/tokens/{key_of_blue}"), none.clone(), 403, ("revoke-key", blue_, "", "denied")),
        (
            &operator,
            "DELETE",
            format!("/v1/tokens/{key_of_blue}"),
            none.clone(),
            404,
            ("revoke-key", blue_, "", "denied"),
        ),
        (&alice, "POST", of("/v1/submissions"), job("blue"), 400, ("submit", blue_, "", "denied")),
        (&alice, "POST", of("/v1/submissions/create"), spark_job("blue"), 400, ("submit", blue_, "", "denied")),
        (&alice, "POST", of("/batches"), batch, 400, ("submit", blue_, "", "denied")),
        (&alice, "POST", of("/api/v1/spark-submit"), application, 400, ("submit", blue_, "", "denied")),
        (&viewer, "POST", of("/v1/submissions"), job("red"), 403, ("submit", red_, "", "denied")),
        (&alice, "DELETE", format!("/v1/submissions/{theirs}"), none.clone(), 404, ("kill", blue_, &theirs, "denied")),
        (
            &alice,
            "POST",
            format!("/v1/submissions/kill/{theirs}"),
            none.clone(),
            200,
            ("kill", blue_, &theirs, "denied"),
        ),
        (
            &alice,
            "POST",
            format!("/v1/submissions/{theirs}/rerun"),
            none.clone(),
            404,
            ("submit", blue_, &theirs, "denied"),
        ),
        (&viewer, "POST", of("/v1/submissions/killall"), none.clone(), 403, ("killall", red_, "", "denied")),
        (&viewer, "POST", of("/v1/submissions/clear"), none.clone(), 403, ("clear", red_, "", "denied")),
        (&operator, "POST", of("/v1/submissions/killall"), none.clone(), 200, ("killall", red_, "", "allowed")),
        (&operator, "POST", of("/v1/submissions/clear"), none.clone(), 200, ("clear", red_, "", "allowed")),
        (
            &alice,
            "POST",
            of("/v1/webhooks"),
            json!({"url": "https://a.example.org"}),
            403,
            ("create-webhook", red_, "", "denied"),
        ),
        (&operator, "DELETE", hook.clone(), none.clone(), 404, ("delete-webhook", blue_, "", "denied")),
        (&operator, "POST", format!("{hook}/rotate"), none.clone(), 404, ("rotate-webhook", blue_, "", "denied")),
        (&operator, "POST", format!("{mine}/replay"), none.clone(), 202, ("replay-webhook", red_, "", "allowed")),
        (&viewer, "PUT", file.clone(), json!("x"), 403, ("upload-file", red_, "", "denied")),
        (&alice, "PUT", format!("{file}?namespace=blue"), json!("x"), 400, ("upload-file", blue_, "", "denied")),
        (&alice, "PUT", file.clone(), json!("x"), 201, ("upload-file", red_, "", "allowed")),
        (&viewer, "DELETE", file.clone(), none.clone(), 403, ("delete-file", red_, "", "denied")),
        (&alice, "DELETE", file.clone(), none.clone(), 204, ("delete-file", red_, "", "allowed")),
        (&alice, "POST", of("/v1/submissions"), json!({"appResource": 7}), 400, ("submit", red_, "", "denied")),
    ];
    let count = "SELECT count(*) FROM audit";
    for (key, method, path, body, status, (action, tenant, submission, verdict)) in attempts {
        let before: i64 = sqlx::query_scalar(count).fetch_one(&world.pool).await.unwrap();
        let answer = match body.as_str() {
            Some(content) => {
                let request = Request::builder().method(method).uri(&path).header("host", "gateway");
                let request = request.header("authorization", format!("Bearer {key}"));
                world.answer(request.body(Body::from(content.to_owned())).unwrap()).await
            }
            None => {
                let listener = if path == "/batches" { &livy } else { &world };
                listener.send(Some(key), method, &path, Some(&body).filter(|body| **body != none)).await
            }
        };
        assert_eq!(answer.status, status, "{method} {path}: {answer:?}");
        let after: i64 = sqlx::query_scalar(count).fetch_one(&world.pool).await.unwrap();
        assert_eq!(after - before, 1, "{method} {path}: one entry");
        let entry = "SELECT action, tenant, coalesce(submission_id, ''), verdict FROM audit ORDER BY id DESC LIMIT 1";
        let entry: (String, Option<String>, String, String) =
            sqlx::query_as(entry).fetch_one(&world.pool).await.unwrap();
        let expected = (action.to_owned(), tenant.map(str::to_owned), submission.to_owned(), verdict.to_owned());
        assert_eq!(entry, expected, "{method} {path}");
    }
    // Blue's operator sees who tried, and nothing of the other tenant.
    let seen = world.get(&blue, "/v1/audit").await;
    let denied = seen.json()["entries"].as_array().unwrap().iter().filter(|entry| entry["verdict"] == "denied").count();
    assert_eq!((denied, seen.body.contains("red-batch")), (13, false), "{}", seen.body);
    let all = world.get(&admin, "/v1/audit?limit=1000").await.json()["entries"].as_array().unwrap().len();
    let dry_run = world.send(Some(&alice), "POST", "/v1/submissions?dryRun=true", Some(&job("red"))).await;
    assert_eq!(dry_run.status, 200, "{dry_run:?}");
    let then = world.get(&admin, "/v1/audit?limit=1000").await.json()["entries"].as_array().unwrap().len();
    assert_eq!(all, then, "a dry run is no change");
}

#[sqlx::test]
async fn denials_of_one_principal_do_not_fill_the_audit(pool: PgPool) {
    let world = World::new(pool, TWO_TENANTS).await;
    let alice = world.key(Role::Submitter, Some("red")).await;
    let mut body = job("red");
    for at in 0..90 {
        body["sparkProperties"][format!("spark.kubernetes.driver.annotation.sparkgate.dev/{at}-{}", "x".repeat(40))] =
            json!("x");
    }
    for _ in 0..60 {
        let answer = world.send(Some(&alice), "POST", "/v1/submissions", Some(&body)).await;
        assert_eq!(answer.status, 422, "{answer:?}");
    }
    let size = "SELECT count(*), max(octet_length(detail)) FROM audit WHERE verdict = 'denied'";
    let (entries, longest): (i64, i32) = sqlx::query_as(size).fetch_one(&world.pool).await.unwrap();
    assert_eq!((entries, longest <= 2048), (20, true), "{longest}");
}

#[sqlx::test]
async fn a_replayed_submission_has_one_entry(pool: PgPool) {
    let world = World::new(pool, TWO_TENANTS).await;
    let key = world.key(Role::Operator, Some("red")).await;
    let mut body = spark_job("red");
    body["sparkProperties"]["spark.sparkgate.idempotencyKey"] = json!("k");
    for _ in 0..2 {
        assert_eq!(world.send(Some(&key), "POST", "/v1/submissions/create", Some(&body)).await.status, 200);
    }
    assert_eq!(world.get(&key, "/v1/audit").await.json()["entries"].as_array().unwrap().len(), 1);
}

#[sqlx::test]
async fn old_entries_are_deleted_by_the_owner_of_the_tables_alone(pool: PgPool) {
    let write = "INSERT INTO audit (at, principal, action, verdict)
        SELECT now() - interval '1 day' * (12000 - n), 'corp:alice', 'kill', 'allowed' FROM generate_series(1, 12000) AS n";
    sqlx::query(write).execute(&pool).await.unwrap();
    let url = pool.connect_options().to_url_lossy().to_string();
    let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_sparkgate"));
    command.args(["prune-audit", "--older-than", "400d"]).env("SPARKGATE_DATABASE_URL", &url);
    let output = command.output().await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let left = "SELECT count(*), min(at) > now() - interval '400 days', max(at) FILTER (WHERE action = 'prune-audit') IS NOT NULL,
        max(detail) FROM audit";
    let left: (i64, bool, bool, String) = sqlx::query_as(left).fetch_one(&pool).await.unwrap();
    assert_eq!(left, (401, true, true, "11600 entries older than 400 days".to_owned()));
    // A second run finds nothing, and writes no entry.
    assert!(command.output().await.unwrap().status.success());
    let entries: i64 = sqlx::query_scalar("SELECT count(*) FROM audit").fetch_one(&pool).await.unwrap();
    assert_eq!(entries, 401);
}

#[sqlx::test]
async fn each_change_of_a_webhook_has_an_entry_with_its_host(pool: PgPool) {
    let world = World::new(pool, TWO_TENANTS).await;
    let operator = world.key(Role::Operator, Some("red")).await;
    let send =
        async |method: &str, path: &str, body: Option<&Value>| world.send(Some(&operator), method, path, body).await;
    let body = json!({"url": "https://hooks.example.org/secret-path"});
    let webhook = send("POST", "/v1/webhooks", Some(&body)).await;
    assert_eq!(webhook.status, 201, "{webhook:?}");
    let id = webhook.json()["id"].as_str().unwrap().to_owned();
    let path = format!("/v1/webhooks/{id}");
    assert_eq!(send("POST", &format!("{path}/rotate"), None).await.status, 200);
    let dead = "INSERT INTO webhook_deliveries (webhook_id, submission_id, sequence, event, status, ended_at)
        VALUES ($1, 'driver-20260102030405-0000', 1, '{}', 'dead', now())";
    sqlx::query(dead).bind(&id).execute(&world.pool).await.unwrap();
    assert_eq!(send("POST", &format!("{path}/replay"), None).await.status, 202);
    // Of another tenant, it is unknown.
    let blue = world.key(Role::Operator, Some("blue")).await;
    for (method, path) in [("GET", path.clone()), ("POST", format!("{path}/rotate")), ("DELETE", path.clone())] {
        assert_eq!(world.send(Some(&blue), method, &path, None).await.status, 404, "{method} {path}");
    }
    // A submitter manages its own webhooks only.
    let submitter = world.key(Role::Submitter, Some("red")).await;
    assert_eq!(world.send(Some(&submitter), "POST", "/v1/webhooks", Some(&body)).await.status, 403);
    assert_eq!(world.get(&submitter, &path).await.status, 404);
    let own = json!({"url": "https://hooks.example.org/secret-path", "submissions": "own"});
    assert_eq!(world.send(Some(&submitter), "POST", "/v1/webhooks", Some(&own)).await.status, 201);
    assert_eq!(send("DELETE", &path, None).await.status, 204);

    let audit = world.get(&operator, "/v1/audit").await;
    assert!(!audit.body.contains("secret-path"), "a path may be a credential: {}", audit.body);
    let entries: Vec<_> = audit.json()["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| (entry["action"].as_str().unwrap().to_owned(), entry["detail"].as_str().unwrap().to_owned()))
        .collect();
    let actions: Vec<_> = entries.iter().map(|(action, _)| action.as_str()).collect();
    assert_eq!(
        actions,
        [
            "create-webhook",
            "rotate-webhook",
            "replay-webhook",
            "rotate-webhook",
            "delete-webhook",
            "create-webhook",
            "create-webhook",
            "delete-webhook"
        ]
    );
    let verdicts: Vec<_> =
        audit.json()["entries"].as_array().unwrap().iter().map(|entry| entry["verdict"] == "denied").collect();
    assert_eq!(verdicts, [false, false, false, true, true, true, false, false], "those of others are denied");
    assert_eq!(entries[0].1, format!("webhook {id}, hooks.example.org"));
    assert_eq!(entries[2].1, format!("webhook {id}, 1 deliveries"));
}

#[sqlx::test]
async fn the_webhook_of_the_installation_is_that_of_its_operators(pool: PgPool) {
    let world = World::new(pool, TWO_TENANTS).await;
    let url = "http://marquez:5000/api/v1/lineage";
    Store::new(world.pool.clone()).put_installation_webhook("openlineage", url, "openlineage").await.unwrap();
    let dead = "INSERT INTO webhook_deliveries (webhook_id, submission_id, sequence, event, status, ended_at)
        VALUES ('openlineage', 'driver-20260102030405-0000', 1, '{\"attempt\": 1, \"state\": \"QUEUED\"}', 'dead', now())";
    sqlx::query(dead).execute(&world.pool).await.unwrap();
    let path = "/v1/webhooks/openlineage".to_owned();
    let requests = [
        ("GET", path.clone()),
        ("DELETE", path.clone()),
        ("POST", format!("{path}/rotate")),
        ("GET", format!("{path}/deliveries")),
        ("POST", format!("{path}/replay")),
    ];
    for role in [Role::Viewer, Role::Submitter, Role::Operator] {
        let key = world.key(role, Some("red")).await;
        let list = world.get(&key, "/v1/webhooks").await;
        assert!(!list.body.contains("openlineage"), "{role}: {list:?}");
        let expected = if role == Role::Viewer { 403 } else { 404 };
        for (method, path) in &requests {
            let answer = world.send(Some(&key), method, path, None).await;
            assert_eq!(answer.status, expected, "{role}: {method} {path}");
            assert!(!answer.body.contains("marquez"), "{role}: {method} {path}");
        }
    }
    let admin = world.key(Role::Admin, None).await;
    assert_eq!(world.get(&admin, "/v1/webhooks").await.json()["items"][0]["url"], url);
    let statuses: Vec<_> = futures::future::join_all(
        requests.iter().map(async |(method, path)| world.send(Some(&admin), method, path, None).await.status),
    )
    .await;
    assert_eq!(statuses, [200, 403, 403, 200, 202]);
    let audit = world.get(&admin, "/v1/audit").await.json();
    let entries = audit["entries"].as_array().unwrap();
    let entry =
        entries.iter().find(|entry| entry["action"] == "replay-webhook" && entry["verdict"] == "allowed").unwrap();
    assert_eq!((entry.get("tenant"), &entry["verdict"]), (None, &json!("allowed")), "{entry}");
}
