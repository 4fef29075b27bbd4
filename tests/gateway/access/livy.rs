//! Livy's batches: what each caller may do with whose batches, and the errors that Livy's clients parse.

use axum::{
    body::Body,
    http::{Request, header},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use sparkgate::{
    access::Role,
    api::{HttpSettings, livy_listener},
};
use sqlx::PgPool;

use crate::access::world::{TWO_TENANTS, World};
use crate::in_memory::Answer;

/// Creates a gateway, and the same one with its port for Livy's clients.
async fn worlds(pool: PgPool) -> (World, World) {
    let gateway = World::new(pool.clone(), TWO_TENANTS).await;
    let livy = World::new(pool, TWO_TENANTS).await;
    let router = livy_listener(gateway.service.clone(), HttpSettings::default()).unwrap();
    (gateway, World { router, ..livy })
}

fn batch(namespace: &str) -> Value {
    json!({
        "file": "local:///app.jar",
        "className": "org.example.Main",
        "conf": {"spark.kubernetes.namespace": namespace},
    })
}

/// Creates a batch and returns its document.
async fn create(livy: &World, key: &str, body: &Value) -> Value {
    let answer = livy.send(Some(key), "POST", "/batches", Some(body)).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    let batch = answer.json();
    assert_eq!(answer.headers["location"], format!("/batches/{}", batch["id"]));
    batch
}

fn message(answer: &Answer) -> String {
    let document = answer.json();
    assert_eq!(document.as_object().unwrap().len(), 1, "{document}");
    document["msg"].as_str().unwrap().to_owned()
}

#[sqlx::test]
async fn a_batch_is_a_submission_with_its_number(pool: PgPool) {
    let (gateway, livy) = worlds(pool).await;
    let key = gateway.key(Role::Submitter, Some("red")).await;
    let native = gateway.submit(&key, "red").await;
    let body = json!({"proxyUser": "alice", "name": "nightly", "numExecutors": 2, "queue": "default"});
    let mut body: Value = body;
    body.as_object_mut().unwrap().extend(batch("red").as_object().unwrap().clone());
    let mut created = create(&livy, &key, &body).await;
    assert!(created["log"][0].as_str().unwrap().starts_with("warning: queue: "), "{created}");
    created["log"] = json!([]);
    let number = created["id"].as_i64().unwrap();
    assert!(created["appId"].as_str().unwrap().starts_with("spark-"), "{created}");
    let expected = json!({
        "id": number, "name": "nightly", "owner": created["owner"], "proxyUser": "alice", "state": "starting",
        "appId": created["appId"], "log": [],
        "appInfo": {"driverLogUrl": null, "sparkUiUrl": null, "executorLogUrls": null},
    });
    assert_eq!(created, expected);

    let mut read = livy.get(&key, &format!("/batches/{number}")).await.json();
    let log = read["log"].take();
    assert!(log[0].as_str().unwrap().contains("is QUEUED: it waits to be launched"), "{log}");
    read["log"] = json!([]);
    assert_eq!(read, created);
    assert_eq!(livy.get(&key, "/batches/nightly/state").await.json(), json!({"id": number, "state": "starting"}));
    let log = livy.get(&key, &format!("/batches/{number}/log?from=0&size=100")).await.json();
    assert_eq!((&log["id"], &log["from"], &log["total"]), (&json!(number), &json!(0), &json!(1)), "{log}");
    let second = create(&livy, &key, &batch("red")).await;
    let listed = livy.get(&key, "/batches").await.json();
    assert_eq!((&listed["from"], &listed["total"]), (&json!(0), &json!(2)), "{listed}");
    assert_eq!((&listed["sessions"][0], &listed["sessions"][1]["id"]), (&created, &second["id"]), "the oldest first");
    let page = livy.get(&key, "/batches?from=1&size=5").await.json();
    assert_eq!((&page["from"], &page["total"], &page["sessions"][0]["id"]), (&json!(1), &json!(2), &second["id"]));

    // The other API has all of them.
    let all = gateway.get(&key, "/v1/submissions?total=true").await.json();
    assert_eq!((&all["total"], &all["items"][2]["id"]), (&json!(3), &json!(native)));
    let same = &all["items"][1];
    assert_eq!(
        (&same["name"], &same["owner"], &same["applicationId"]),
        (&json!("nightly"), &json!("alice"), &created["appId"])
    );
    let native_number: i64 = native.rsplit_once('-').unwrap().1.parse().unwrap();
    assert_eq!(livy.get(&key, &format!("/batches/{native_number}")).await.status, 404, "it isn't one of Livy's");
}

#[sqlx::test]
async fn a_deleted_batch_is_killed_and_known_to_the_other_api_only(pool: PgPool) {
    let (gateway, livy) = worlds(pool).await;
    let key = gateway.key(Role::Submitter, Some("red")).await;
    let number = create(&livy, &key, &batch("red")).await["id"].clone();
    let path = format!("/batches/{number}");
    let deleted = livy.send(Some(&key), "DELETE", &path, None).await;
    assert_eq!((deleted.status, deleted.json()), (200, json!({"msg": "deleted"})));
    for (method, path) in [("GET", path.clone()), ("GET", format!("{path}/state")), ("DELETE", path)] {
        let answer = livy.send(Some(&key), method, &path, None).await;
        assert_eq!((answer.status, message(&answer)), (404, format!("Session '{number}' not found.")));
    }
    assert_eq!(livy.get(&key, "/batches").await.json()["total"], 0);
    let kept = gateway.get(&key, "/v1/submissions").await.json();
    assert_eq!(kept["items"][0]["state"], "KILLED", "{kept}");
    let next = create(&livy, &key, &batch("red")).await["id"].clone();
    assert!(next.as_i64() > number.as_i64(), "a number isn't given twice");
}

#[sqlx::test]
async fn a_name_is_taken_until_its_batch_has_ended(pool: PgPool) {
    let (gateway, livy) = worlds(pool).await;
    let key = gateway.key(Role::Submitter, Some("red")).await;
    let mut named = batch("red");
    named["name"] = json!("nightly");
    let first = create(&livy, &key, &named).await["id"].clone();
    let again = livy.send(Some(&key), "POST", "/batches", Some(&named)).await;
    assert_eq!(again.status, 400);
    assert!(message(&again).starts_with("Rejected, Reason: \"nightly\" is the name of a live submission"), "{again:?}");
    livy.send(Some(&key), "DELETE", &format!("/batches/{first}"), None).await;
    let second = create(&livy, &key, &named).await["id"].clone();
    assert_eq!(livy.get(&key, "/batches/nightly").await.json()["id"], second);
}

#[sqlx::test]
async fn every_operation_answers_each_role_and_owner_as_it_should(pool: PgPool) {
    let (gateway, livy) = worlds(pool).await;
    let admin = gateway.key(Role::Admin, None).await;
    let colleague = gateway.key(Role::Submitter, Some("red")).await;
    for role in [None, Some(Role::Viewer), Some(Role::Submitter), Some(Role::Operator), Some(Role::Admin)] {
        let key = match role {
            None => None,
            Some(Role::Admin) => Some(gateway.key(Role::Admin, None).await),
            Some(role) => Some(gateway.key(role, Some("red")).await),
        };
        let submits = role.is_some_and(|role| role >= Role::Submitter);
        for (owner, namespace) in [("own", "red"), ("same", "red"), ("other", "blue")] {
            let submitter = match (owner, &key) {
                ("own", Some(key)) if submits => key,
                ("other", _) => &admin,
                _ => &colleague,
            };
            let number = create(&livy, submitter, &batch(namespace)).await["id"].clone();
            let sees = role == Some(Role::Admin) || (role.is_some() && owner != "other");
            let kills = role >= Some(Role::Operator) || (submits && owner == "own");
            let expected = |allowed: bool| match role {
                None => 401,
                Some(_) if !sees => 404,
                Some(_) if !allowed => 403,
                Some(_) => 200,
            };
            let path = format!("/batches/{number}");
            for (method, path, right) in [
                ("GET", path.clone(), expected(true)),
                ("GET", format!("{path}/state"), expected(true)),
                ("GET", format!("{path}/log"), expected(true)),
                // As older releases of Airflow's provider ask.
                ("POST", format!("{path}/state"), expected(true)),
                ("POST", format!("{path}/log"), expected(true)),
                ("GET", "/batches".to_owned(), if role.is_some() { 200 } else { 401 }),
                ("DELETE", path, expected(kills)),
            ] {
                let answer = livy.send(key.as_deref(), method, &path, None).await;
                assert_eq!(answer.status, right, "{role:?} {owner}: {method} {path} {answer:?}");
                let leaks = !sees && answer.body.contains("blue");
                assert!(!leaks, "{role:?} learns of a foreign batch: {answer:?}");
                if answer.status >= 400 {
                    assert!(!message(&answer).is_empty());
                }
            }
            let answer = livy.send(key.as_deref(), "POST", "/batches", Some(&batch(namespace))).await;
            let right = match role {
                None => 401,
                Some(_) if !submits => 403,
                Some(_) if !sees => 400,
                Some(_) => 201,
            };
            assert_eq!(answer.status, right, "{role:?} {owner}: {answer:?}");
        }
    }
}

#[sqlx::test]
async fn a_token_may_be_a_password(pool: PgPool) {
    let (gateway, livy) = worlds(pool).await;
    let key = gateway.key(Role::Viewer, Some("red")).await;
    let ask = async |world: &World, path: &str, password: &str| {
        let credentials = STANDARD.encode(format!("airflow:{password}"));
        let request = Request::get(path).header(header::HOST, "gateway");
        let request = request.header(header::AUTHORIZATION, format!("Basic {credentials}"));
        world.answer(request.body(Body::empty()).unwrap()).await
    };
    assert_eq!(ask(&livy, "/batches", &key).await.status, 200);
    let refused = ask(&livy, "/batches", "sg_wrong").await;
    assert_eq!(refused.status, 401, "{refused:?}");
    assert!(refused.headers["www-authenticate"].starts_with("Basic "), "the last of them: {refused:?}");
    assert_eq!(ask(&gateway, "/v1/submissions", &key).await.status, 200);
    let refused = ask(&gateway, "/v1/submissions", "sg_wrong").await;
    assert!(
        !refused.headers["www-authenticate"].contains("Basic"),
        "no browser asks its user for a password: {refused:?}"
    );
}

#[sqlx::test]
async fn a_refusal_has_the_body_that_clients_of_livy_parse(pool: PgPool) {
    let (gateway, livy) = worlds(pool).await;
    let key = gateway.key(Role::Submitter, Some("red")).await;
    let with = |member: &str, value: Value| {
        let mut body = batch("red");
        body[member] = value;
        body
    };
    for (body, says) in [
        (json!({}), "Rejected, Reason: file: the application's file is required"),
        (with("file", json!("/home/alice/app.jar")), "Rejected, Reason: file: "),
        (with("driverMemory", json!("much")), "Rejected, Reason: conf/spark.driver.memory: expected memory value"),
        (with("kind", json!("spark")), "Rejected, Reason: kind: a batch has no such field"),
        (json!([]), "Rejected, Reason: The request is not a JSON object."),
    ] {
        let answer = livy.send(Some(&key), "POST", "/batches", Some(&body)).await;
        assert_eq!(answer.status, 400, "{answer:?}");
        assert!(message(&answer).starts_with(says), "{answer:?}");
    }
    for (method, path, status, says) in [
        ("GET", "/batches/7", 404, "Session '7' not found."),
        ("GET", "/batches/%00", 404, "Session '\0' not found."),
        ("GET", "/batches/none/log", 404, "Session 'none' not found."),
        ("GET", "/batches?from=x", 400, "Rejected, Reason: from: \"x\" is not a whole number"),
        ("GET", "/sessions", 404, "There is nothing at /sessions."),
        ("PUT", "/batches", 405, "/batches does not allow PUT"),
        ("GET", "/v1/submissions", 404, "There is nothing at /v1/submissions."),
    ] {
        let answer = livy.send(Some(&key), method, path, None).await;
        assert_eq!(answer.status, status, "{method} {path}: {answer:?}");
        assert!(message(&answer).starts_with(says), "{method} {path}: {answer:?}");
    }
    assert_eq!(gateway.get(&key, "/v1/submissions?total=true").await.json()["total"], 0, "nothing was accepted");
}

#[sqlx::test]
async fn batches_are_served_by_their_port_alone(pool: PgPool) {
    let (gateway, livy) = worlds(pool).await;
    let key = gateway.key(Role::Submitter, Some("red")).await;
    let created = livy.send(Some(&key), "POST", "/batches?doAs=bob", Some(&batch("red"))).await;
    assert_eq!(created.status, 201, "{created:?}");
    let (location, batch) = (&created.headers["location"], created.json());
    assert_eq!((location, &batch["proxyUser"]), (&format!("/batches/{}", batch["id"]), &json!("bob")));
    assert_eq!(livy.get(&key, location).await.json()["id"], batch["id"]);
    assert_eq!(livy.send(None, "GET", location, None).await.json().as_object().unwrap().len(), 1);
    let answer = gateway.send(Some(&key), "GET", "/batches", None).await;
    assert!(
        answer.status == 468 && answer.body.contains("ErrorResponse"),
        "Spark's protocol has this path: {answer:?}"
    );
}
