//! What a caller learns of submissions of other tenants: nothing.

use serde_json::json;
use sparkgate::{
    access::Role,
    files::{FileStore, LogChunk, LogEnding, LogPosition},
    service::LogStoreSettings,
    store::Store,
};
use sqlx::PgPool;

use crate::access::world::{TWO_TENANTS, World, job};

/// Replaces what differs between any two answers.
fn anonymised(text: &str, id: &str, request_id: Option<&String>) -> String {
    let request_id = request_id.map_or("REQUEST", String::as_str);
    text.replace(id, "ID").replace(request_id, "REQUEST")
}

#[sqlx::test]
async fn a_foreign_submission_is_answered_as_an_unknown_one_byte_for_byte(pool: PgPool) {
    let world = World::new(pool, TWO_TENANTS).await;
    let (red, blue) = (world.key(Role::Operator, Some("red")).await, world.key(Role::Operator, Some("blue")).await);
    let foreign = world.submit(&blue, "blue").await;
    // Of the same length.
    let unknown = foreign.replace(&foreign[7..11], "1999");
    for (method, path) in [
        ("GET", "/v1/submissions/{id}"),
        ("DELETE", "/v1/submissions/{id}"),
        ("GET", "/v1/submissions/{id}/outcome"),
        ("GET", "/v1/submissions/{id}/wait?timeoutSeconds=0"),
        ("GET", "/v1/submissions/{id}/attempts"),
        ("GET", "/v1/submissions/{id}/manifest"),
        ("GET", "/v1/submissions/{id}/request"),
        ("GET", "/v1/submissions/{id}/executors"),
        ("GET", "/v1/submissions/{id}/logs"),
        ("GET", "/v1/submissions/{id}/events"),
        ("GET", "/v1/submissions/{id}/ui"),
        ("GET", "/v1/submissions/{id}/ui/jobs/job/?id=1"),
        ("GET", "/v1/submissions/status/{id}"),
        ("POST", "/v1/submissions/kill/{id}"),
        ("PUT", "/v1/submissions/{id}/hold"),
        ("DELETE", "/v1/submissions/{id}/hold"),
    ] {
        let mut answers = Vec::new();
        for id in [&foreign, &unknown] {
            let mut answer = world.send(Some(&red), method, &path.replace("{id}", id), None).await;
            let request_id = answer.headers.remove("x-request-id");
            answer.body = anonymised(&answer.body, id, request_id.as_ref());
            answer.headers.remove("etag");
            answers.push(answer);
        }
        assert_eq!(answers[0], answers[1], "{method} {path}");
    }
    assert_eq!(world.get(&blue, &format!("/v1/submissions/{foreign}")).await.json()["state"], "QUEUED");
}

#[sqlx::test]
async fn lists_counts_and_events_have_only_what_the_caller_may_see(pool: PgPool) {
    let world = World::new(pool, TWO_TENANTS).await;
    let (red, blue) = (world.key(Role::Operator, Some("red")).await, world.key(Role::Operator, Some("blue")).await);
    let admin = world.key(Role::Admin, None).await;
    let ours = [world.submit(&red, "red").await, world.submit(&red, "red-batch").await];
    world.submit(&blue, "blue").await;
    for (key, count) in [(&red, 2), (&blue, 1), (&admin, 3)] {
        let list = world.get(key, "/v1/submissions?total=true").await.json();
        assert_eq!((list["items"].as_array().unwrap().len(), &list["total"]), (count, &json!(count)));
        while world.service.events.publish().await.unwrap().more {}
        let events = world.get(key, "/v1/events?after=0").await.json();
        assert_eq!(events["items"].as_array().unwrap().len(), count, "{events}");
    }
    let listed = world.get(&red, "/v1/submissions?namespace=blue").await.json();
    assert_eq!(listed["items"], json!([]));
    let mine = world.get(&red, "/v1/submissions").await.json();
    let ids: Vec<_> = mine["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap()).collect();
    assert_eq!(ids, [ours[1].as_str(), ours[0].as_str()]);
}

#[sqlx::test]
async fn kill_all_and_clear_concern_what_the_caller_may_end(pool: PgPool) {
    let world = World::new(pool, TWO_TENANTS).await;
    let alice = world.key(Role::Submitter, Some("red")).await;
    let bob = world.key(Role::Submitter, Some("red")).await;
    let (operator, blue) =
        (world.key(Role::Operator, Some("red")).await, world.key(Role::Submitter, Some("blue")).await);
    let of_alice = world.submit(&alice, "red").await;
    let of_bob = world.submit(&bob, "red").await;
    let of_blue = world.submit(&blue, "blue").await;
    let admin = world.key(Role::Admin, None).await;
    let state = async |id: &str| {
        world.get(&admin, &format!("/v1/submissions/{id}")).await.json()["state"].as_str().unwrap().to_owned()
    };
    assert_eq!(world.send(Some(&alice), "POST", "/v1/submissions/killall", None).await.status, 200);
    assert_eq!([state(&of_alice).await, state(&of_bob).await, state(&of_blue).await], ["KILLED", "QUEUED", "QUEUED"]);
    assert_eq!(world.send(Some(&operator), "POST", "/v1/submissions/killall", None).await.status, 200);
    assert_eq!([state(&of_bob).await, state(&of_blue).await], ["KILLED", "QUEUED"]);

    // Spark's status doesn't find what was cleared.
    let found =
        async |id: &str| world.get(&admin, &format!("/v1/submissions/status/{id}")).await.json()["success"] == true;
    assert_eq!(world.send(Some(&bob), "POST", "/v1/submissions/clear", None).await.status, 200);
    assert!(found(&of_alice).await && !found(&of_bob).await);
    assert_eq!(world.send(Some(&blue), "POST", "/v1/submissions/clear", None).await.status, 200);
    assert!(found(&of_alice).await && found(&of_blue).await);
}

#[sqlx::test]
async fn an_idempotency_key_belongs_to_the_principal_that_used_it(pool: PgPool) {
    let world = World::new(pool, TWO_TENANTS).await;
    let alice = world.key(Role::Submitter, Some("red")).await;
    let mallory = world.key(Role::Submitter, Some("red")).await;
    let mut body = job("red");
    body["sparkProperties"]["spark.sparkgate.idempotencyKey"] = json!("nightly");
    body["environmentVariables"] = json!({"SPARK_USER": "alice"});
    let mut ids = Vec::new();
    for (key, status) in [(&mallory, 201), (&alice, 201), (&alice, 200), (&mallory, 200)] {
        let answer = world.send(Some(key), "POST", "/v1/submissions", Some(&body)).await;
        assert_eq!(answer.status, status, "{answer:?}");
        ids.push(answer.json()["id"].as_str().unwrap().to_owned());
    }
    assert!(ids[0] == ids[3] && ids[1] == ids[2] && ids[0] != ids[1], "{ids:?}");
}

#[sqlx::test]
async fn a_stored_log_is_read_in_its_own_tenant_only(pool: PgPool) {
    let mut world = World::new(pool.clone(), TWO_TENANTS).await;
    let (red, blue) = (world.key(Role::Operator, Some("red")).await, world.key(Role::Viewer, Some("blue")).await);
    let owner = world.key(Role::Submitter, Some("blue")).await;
    let id = world.submit(&owner, "blue").await;
    let end = "UPDATE submissions SET state = 'FINISHED', finished_at = now() WHERE id = $1";
    sqlx::query(end).bind(&id).execute(&pool).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let store = FileStore::open(dir.path().to_str().unwrap()).unwrap();
    let installation = Store::new(pool).installation().await.unwrap().id;
    let log = store.clone().for_logs_of_installation(installation).log(format!("blue/{}/{id}/1/driver", &id[7..15]));
    let text = b"2026-01-02T03:04:05Z of blue\n";
    log.append(&LogChunk::default(), text, LogPosition::default()).await.unwrap();
    log.end(LogEnding::Whole).await.unwrap();
    world.configure(|setup| setup.logs = Some((store, LogStoreSettings { largest: 1 << 30 }))).await;
    let path = format!("/v1/submissions/{id}/logs");
    let answer = world.get(&blue, &path).await;
    assert_eq!(
        (answer.status, answer.body.as_str(), &answer.headers["sparkgate-log-source"][..]),
        (200, "of blue\n", "store")
    );
    for query in ["", "?tail=1", "?follow=true", "?attempt=1"] {
        let answer = world.get(&red, &format!("{path}{query}")).await;
        assert_eq!((answer.status, &answer.json()["code"]), (404, &json!("submission-not-found")), "{query}");
    }
}
