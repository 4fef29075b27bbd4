//! The port for Spark's clients that send no credentials.

use axum::{Router, body::Body, http::Request};
use http_body_util::BodyExt;
use serde_json::Value;
use sparkgate::{
    access::Role,
    api::{HttpSettings, spark_listener},
};
use sqlx::PgPool;
use tower::ServiceExt;

use crate::access::world::{World, spark_job};

const FILE: &str = "
authentication:
  sparkListener: {listen: \"127.0.0.1:0\", subject: spark-submit}
tenants:
  red:
    namespaces: [red]
    limits: {queued: 2}
    members: [{role: submitter, subjects: [\"listener:spark-submit\"]}]
  blue: {namespaces: [blue]}
";

async fn ask(router: &Router, method: &str, path: &str, body: &Value) -> (u16, String) {
    let request = Request::builder().method(method).uri(path).header("host", "gateway");
    let response = router.clone().oneshot(request.body(Body::from(body.to_string())).unwrap()).await.unwrap();
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8_lossy(&body).into_owned())
}

#[sqlx::test]
async fn a_client_without_credentials_submits_in_its_tenant_and_reaches_nothing_else(pool: PgPool) {
    let world = World::new(pool, FILE).await;
    let router = spark_listener(world.service.clone(), HttpSettings::default()).unwrap();
    let (status, answer) = ask(&router, "POST", "/v1/submissions/create", &spark_job("red")).await;
    assert_eq!(status, 200, "{answer}");
    let id = serde_json::from_str::<Value>(&answer).unwrap()["submissionId"].as_str().unwrap().to_owned();
    let (status, answer) = ask(&router, "GET", &format!("/v1/submissions/status/{id}"), &Value::Null).await;
    assert!(status == 200 && answer.contains("SUBMITTED"), "{answer}");
    let (status, _) = ask(&router, "POST", "/v1/submissions/create", &spark_job("blue")).await;
    assert_eq!(status, 400);
    for path in ["/v1/submissions", "/v1/events", "/v1/tokens", "/docs", "/v1/openapi.json", "/v1/audit"] {
        let (status, answer) = ask(&router, "GET", path, &Value::Null).await;
        assert!([400, 404, 468].contains(&status), "{path}: {status} {answer}");
    }
    let admin = world.key(Role::Admin, None).await;
    let submission = world.get(&admin, &format!("/v1/submissions/{id}")).await.json();
    assert_eq!(submission["principal"], "listener:spark-submit");
}

#[sqlx::test]
async fn a_tenant_whose_queue_is_full_is_asked_to_wait(pool: PgPool) {
    let world = World::new(pool, FILE).await;
    let router = spark_listener(world.service.clone(), HttpSettings::default()).unwrap();
    for expected in [200, 200, 429] {
        let (status, answer) = ask(&router, "POST", "/v1/submissions/create", &spark_job("red")).await;
        assert_eq!(status, expected, "{answer}");
        assert!(status == 200 || answer.contains("its limit `queued`"), "{answer}");
    }
    let blue = world.key(Role::Submitter, Some("blue")).await;
    world.submit(&blue, "blue").await;
}
