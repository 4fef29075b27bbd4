//! Requests to the resource API.

use axum::{Router, body::Body, http::Request};
use serde_json::{Value, json};
use sparkgate::spark::SparkVersion;
use sqlx::PgPool;

use crate::in_memory::{Answer, ask, face, send};

pub(crate) async fn api(pool: &PgPool) -> Router {
    face(SparkVersion::V4_3, pool.clone()).await
}

/// Returns a small request, with these additional fields.
pub(crate) fn job(fields: Value) -> Value {
    let mut job = json!({"appResource": "local:///a.jar", "mainClass": "A", "name": "job"});
    for (key, value) in fields.as_object().unwrap() {
        job[key] = value.clone();
    }
    job
}

pub(crate) async fn get(api: &Router, path: &str) -> Answer {
    ask(api, "GET", path, Vec::new()).await
}

pub(crate) async fn delete(api: &Router, path: &str) -> Answer {
    ask(api, "DELETE", path, Vec::new()).await
}

pub(crate) async fn post(api: &Router, path: &str, headers: &[(&str, &str)], body: &Value) -> Answer {
    let mut request = Request::post(path).header("content-type", "application/json");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    send(api, request.body(Body::from(body.to_string())).unwrap()).await
}

pub(crate) async fn submit(api: &Router, fields: Value) -> Answer {
    post(api, "/v1/submissions", &[], &job(fields)).await
}

/// Returns the id of a new submission.
pub(crate) async fn accepted(api: &Router, fields: Value) -> String {
    let answer = submit(api, fields).await;
    assert_eq!(answer.status, 201, "{}", answer.body);
    answer.json()["id"].as_str().unwrap().to_owned()
}

/// Checks that the answer is a problem with this code; returns its body.
pub(crate) fn is_problem(answer: &Answer, status: u16, code: &str) -> Value {
    assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{answer:?}");
    let problem = answer.json();
    assert_eq!((answer.status, problem["code"].as_str()), (status, Some(code)), "{problem}");
    assert_eq!(problem["status"], status);
    assert_eq!(problem["type"], format!("https://sparkgate.dev/problems/{code}"));
    assert_eq!(problem["requestId"].as_str(), answer.header("x-request-id"));
    problem
}

pub(crate) async fn count(pool: &PgPool) -> i64 {
    sqlx::query_scalar("SELECT count(*) FROM submissions").fetch_one(pool).await.unwrap()
}
