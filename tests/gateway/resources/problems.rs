//! Invalid input.

use axum::{body::Body, http::Request};
use serde_json::json;
use sqlx::PgPool;

use crate::in_memory::{BODY_LIMIT, send};
use crate::resources::world::{api, count, get, is_problem, submit};

#[sqlx::test]
async fn a_request_that_cannot_run_names_its_fields(pool: PgPool) {
    let api = api(&pool).await;
    for (fields, pointer, says) in [
        (
            json!({"sparkProperties": {"spark.driver.memory": "much"}}),
            Some("#/sparkProperties/spark.driver.memory"),
            "expected memory value",
        ),
        (json!({"sparkProperties": {"spark.master": "local"}}), Some("#/sparkProperties/spark.master"), ""),
        (json!({"labels": {"-": "x"}}), Some("#/labels/-"), "not the key of a label"),
        (json!({"maxRetries": {"application": 1000}}), Some("#/maxRetries/application"), "this gateway allows"),
        (json!({"maxRetries": {"capacity": 1000}}), Some("#/maxRetries/capacity"), "this gateway allows"),
        (
            json!({"sparkProperties": {"spark.sparkgate.maxRetries.quota": "often"}}),
            Some("#/sparkProperties/spark.sparkgate.maxRetries.quota"),
            "not a number of retries",
        ),
        (json!({"startTimeoutSeconds": 0}), Some("#/startTimeoutSeconds"), "at least one second"),
        (
            json!({"sparkProperties": {"spark.sparkgate.x": "1"}}),
            Some("#/sparkProperties/spark.sparkgate.x"),
            "no such",
        ),
        (json!({"environmentVariables": {"1A=": "x"}}), Some("#/environmentVariables/1A="), "not a valid name"),
        (json!({"colour": "green"}), Some("#/colour"), "no such field"),
        (json!({"name": "a\u{0}b"}), Some("#/name"), "NUL"),
        (
            json!({"maxRetries": {"application": 1}, "sparkProperties": {"spark.kubernetes.driver.pod.name": "p"}}),
            Some("#/sparkProperties/spark.kubernetes.driver.pod.name"),
            "each attempt needs a pod of its own",
        ),
    ] {
        let problem = is_problem(&submit(&api, fields.clone()).await, 400, "invalid-request");
        assert!(problem["detail"].as_str().unwrap().contains(says), "{fields}: {problem}");
        if let Some(pointer) = pointer {
            assert_eq!(problem["errors"][0]["pointer"], pointer, "{problem}");
        }
    }
    assert_eq!(count(&pool).await, 0);
}

#[sqlx::test]
async fn all_fields_at_fault_are_named(pool: PgPool) {
    let api = api(&pool).await;
    let memory = json!({"spark.driver.memory": "much", "spark.executor.memory": "more", "spark.driver.cores": "x"});
    let fields = json!({"sparkProperties": memory, "appArgs": ["1", null], "labels": {"team": 5}, "nmae": "x"});
    let problem = is_problem(&submit(&api, fields).await, 400, "invalid-request");
    let errors = problem["errors"].as_array().unwrap();
    for (pointer, says) in [
        ("#/sparkProperties/spark.driver.memory", "'much'"),
        ("#/sparkProperties/spark.executor.memory", "'more'"),
        ("#/sparkProperties/spark.driver.cores", "numeric"),
        ("#/appArgs/1", "must be a string, not null"),
        ("#/labels/team", "must be a string, not a number"),
        ("#/nmae", "did you mean `name`?"),
    ] {
        let named = errors.iter().find(|error| error["pointer"] == pointer);
        assert!(named.is_some_and(|error| error["detail"].as_str().unwrap().contains(says)), "{pointer}: {problem}");
    }
    assert_eq!(errors.len(), 6, "{problem}");
    assert!(!problem.to_string().contains("java"), "{problem}");
    let query = is_problem(&get(&api, "/v1/submissions?limit=0&nmae=x&total=1").await, 400, "invalid-parameter");
    assert_eq!(query["errors"].as_array().unwrap().len(), 3, "{query}");
}

#[sqlx::test]
async fn a_body_that_is_no_request_is_refused(pool: PgPool) {
    let api = api(&pool).await;
    let post = async |content_type: Option<&str>, body: &[u8]| {
        let request = Request::post("/v1/submissions");
        let request = content_type.into_iter().fold(request, |request, value| request.header("content-type", value));
        send(&api, request.body(Body::from(body.to_vec())).unwrap()).await
    };
    let json = Some("application/json; charset=utf-8");
    for body in [&b""[..], b"{", b"nul", b"\xff"] {
        is_problem(&post(json, body).await, 400, "invalid-json");
    }
    is_problem(&post(json, b"[]").await, 400, "invalid-request");
    for other in [None, Some("text/plain"), Some("application/x-www-form-urlencoded"), Some("application/jsonx")] {
        is_problem(&post(other, b"{}").await, 415, "unsupported-media-type");
    }
    let large = format!("{{\"name\": \"{}\"}}", "x".repeat(BODY_LIMIT));
    is_problem(&post(json, large.as_bytes()).await, 413, "request-too-large");
}

#[sqlx::test]
async fn unknown_paths_and_methods_are_refused(pool: PgPool) {
    let api = api(&pool).await;
    for path in ["/v1/submissions/driver-1-1", "/v1/submissions/driver-x", "/v1/submissions/driver-1-1/manifest"] {
        is_problem(&get(&api, path).await, 404, "submission-not-found");
    }
    is_problem(&get(&api, "/v1/submissions/driver-1-1/nothing").await, 404, "not-found");
    for (method, path, allow) in [
        ("PUT", "/v1/submissions", "GET,HEAD,POST"),
        ("POST", "/v1/submissions/driver-1-1", "DELETE,GET,HEAD"),
        ("DELETE", "/v1/submissions/driver-1-1/outcome", "GET,HEAD"),
    ] {
        let answer = send(&api, Request::builder().method(method).uri(path).body(Body::empty()).unwrap()).await;
        is_problem(&answer, 405, "method-not-allowed");
        let mut allowed: Vec<&str> = answer.header("allow").unwrap().split(',').collect();
        allowed.sort_unstable();
        assert_eq!(allowed.join(","), allow);
    }
}
