//! Repeated requests, with every way to pass a key.

use std::collections::HashSet;

use futures::future::join_all;
use serde_json::{Value, json};
use sqlx::PgPool;

use crate::resources::world::{accepted, api, count, get, is_problem, job, post, submit};

const PATH: &str = "/v1/submissions";

/// Returns a request of Spark's protocol.
fn spark(properties: Value) -> Value {
    json!({"action": "CreateSubmissionRequest", "clientSparkVersion": "4.3.0", "appResource": "local:///a.jar",
        "mainClass": "A", "appArgs": [], "environmentVariables": {}, "sparkProperties": properties})
}

#[sqlx::test]
async fn the_same_request_is_the_same_submission(pool: PgPool) {
    let api = api(&pool).await;
    let key = [("idempotency-key", "\"etl/2026-01-02\"")];
    let first = post(&api, PATH, &key, &job(json!({}))).await;
    assert_eq!((first.status, first.header("idempotency-replayed")), (201, None));
    // The key without quotes, the fields in another order, and a null: the same request.
    let again = json!({"name": "job", "mainClass": "A", "appResource": "local:///a.jar", "runTimeoutSeconds": null});
    let second = post(&api, PATH, &[("idempotency-key", "etl/2026-01-02")], &again).await;
    assert_eq!((second.status, second.header("idempotency-replayed")), (200, Some("true")));
    assert_eq!((second.json(), second.header("location")), (first.json(), first.header("location")));
    assert_eq!(count(&pool).await, 1);

    for other in [json!({"appArgs": ["1"]}), json!({"labels": {"a": "b"}}), json!({"runTimeoutSeconds": 1})] {
        let problem = is_problem(&post(&api, PATH, &key, &job(other)).await, 422, "idempotency-key-reused");
        assert_eq!(problem["submissionId"], first.json()["id"]);
    }
    let alice = json!({"environmentVariables": {"SPARK_USER": "alice"}});
    assert_eq!(post(&api, PATH, &key, &job(alice)).await.status, 201, "each owner has keys of its own");
    accepted(&api, json!({})).await;
    assert_eq!(count(&pool).await, 3);
}

#[sqlx::test]
async fn a_clients_id_names_one_submission_of_its_tenant(pool: PgPool) {
    let api = api(&pool).await;
    let named = |id: &str, more: Value| {
        let mut body = job(more);
        body["clientId"] = id.into();
        body
    };
    let key = [("idempotency-key", "k")];
    let first = post(&api, PATH, &key, &named("nightly/1 ü", json!({}))).await;
    assert_eq!((first.status, &first.json()["clientId"]), (201, &json!("nightly/1 ü")));
    let id = first.json()["id"].clone();
    for (headers, body) in [
        (&[][..], named("nightly/1 ü", json!({}))),
        (&[][..], job(json!({"sparkProperties": {"spark.sparkgate.clientId": "nightly/1 ü"}}))),
        (&[("idempotency-key", "other")][..], named("nightly/1 ü", json!({}))),
    ] {
        let problem = is_problem(&post(&api, PATH, headers, &body).await, 409, "client-id-taken");
        assert_eq!(problem["submissionId"], id, "{problem}");
    }
    let taken =
        post(&api, "/v1/submissions/create", &[], &spark(json!({"spark.sparkgate.clientId": "nightly/1 ü"}))).await;
    assert!(taken.status == 409 && taken.json().to_string().contains(id.as_str().unwrap()), "{}", taken.json());
    let again = post(&api, PATH, &key, &named("nightly/1 ü", json!({}))).await;
    assert_eq!((again.status, &again.json()["id"]), (200, &id), "the same request is no conflict");
    is_problem(&post(&api, PATH, &key, &named("nightly/2", json!({}))).await, 422, "idempotency-key-reused");
    is_problem(&post(&api, PATH, &[], &named("", json!({}))).await, 400, "invalid-request");
    is_problem(&post(&api, PATH, &[], &named("a\nb", json!({}))).await, 400, "invalid-request");
    assert_eq!(count(&pool).await, 1);

    assert_eq!(post(&api, PATH, &[], &named("nightly/2", json!({}))).await.status, 201);
    for (query, expected) in [("nightly/1%20%C3%BC", vec![&id]), ("nightly", vec![])] {
        let list = get(&api, &format!("{PATH}?clientId={query}")).await.json();
        let ids: Vec<&Value> = list["items"].as_array().unwrap().iter().map(|item| &item["id"]).collect();
        assert_eq!(ids, expected, "{list}");
    }
}

#[sqlx::test]
async fn concurrent_requests_with_one_id_of_a_client_create_one_submission(pool: PgPool) {
    let api = api(&pool).await;
    let twin = async |_| post(&api, PATH, &[], &job(json!({"clientId": "one", "uniqueName": true}))).await;
    let answers = join_all((0..20).map(twin)).await;
    let created = answers.iter().filter(|answer| answer.status == 201).count();
    let refused = answers.iter().filter(|answer| answer.status == 409).count();
    assert_eq!((created, refused, count(&pool).await), (1, 19, 1));
}

#[sqlx::test]
async fn concurrent_requests_with_one_key_create_one_submission(pool: PgPool) {
    let api = api(&pool).await;
    for round in ["a", "b", "c"] {
        let twin = async || {
            let body = job(json!({"uniqueName": true, "name": round}));
            post(&api, PATH, &[("idempotency-key", round)], &body).await
        };
        let answers = join_all((0..20).map(|_| twin())).await;
        let ids: HashSet<String> = answers.iter().map(|answer| answer.json()["id"].to_string()).collect();
        let created = answers.iter().filter(|answer| answer.status == 201).count();
        assert_eq!(
            (ids.len(), created),
            (1, 1),
            "{:?}",
            answers.iter().map(|answer| answer.status).collect::<Vec<_>>()
        );
        assert!(answers.iter().all(|answer| matches!(answer.status, 200 | 201)));
    }
    assert_eq!(count(&pool).await, 3);
}

#[sqlx::test]
async fn an_idempotency_key_works_through_sparks_protocol(pool: PgPool) {
    let api = api(&pool).await;
    let create = "/v1/submissions/create";
    let keyed = json!({"spark.app.name": "x", "spark.sparkgate.idempotencyKey": "k"});
    let first = post(&api, create, &[], &spark(keyed.clone())).await;
    let second = post(&api, create, &[], &spark(keyed)).await;
    assert_eq!((first.status, second.status), (200, 200), "{}", first.body);
    assert_eq!(first.body, second.body);
    let other = json!({"spark.app.name": "y", "spark.sparkgate.idempotencyKey": "k"});
    let reused = post(&api, create, &[], &spark(other)).await;
    assert_eq!((reused.status, &reused.json()["action"]), (422, &json!("ErrorResponse")), "{}", reused.body);

    let header = [("Idempotency-Key", "h")];
    let body = spark(json!({"spark.app.name": "x"}));
    let (first, second) = (post(&api, create, &header, &body).await, post(&api, create, &header, &body).await);
    assert_eq!((first.status, first.body), (200, second.body));
    assert_eq!(count(&pool).await, 2);
}

#[sqlx::test]
async fn a_key_that_cannot_be_kept_is_refused(pool: PgPool) {
    let api = api(&pool).await;
    for key in ["", "\"\"", &"x".repeat(256)] {
        let answer = post(&api, PATH, &[("idempotency-key", key)], &job(json!({}))).await;
        let problem = is_problem(&answer, 400, "invalid-parameter");
        assert_eq!(problem["errors"][0]["parameter"], "Idempotency-Key");
    }
    let answer = submit(&api, json!({"sparkProperties": {"spark.sparkgate.idempotencyKey": "é"}})).await;
    let problem = is_problem(&answer, 400, "invalid-request");
    assert_eq!(problem["errors"][0]["pointer"], "#/sparkProperties/spark.sparkgate.idempotencyKey");
    assert_eq!(count(&pool).await, 0);
}
