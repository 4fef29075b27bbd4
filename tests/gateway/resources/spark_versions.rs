//! Spark releases side by side.

use axum::Router;
use serde_json::{Value, json};
use sparkgate::{
    api::{HttpSettings, router},
    spark::SparkVersion,
    store::Store,
};
use sqlx::PgPool;

use crate::in_memory::{cluster, settings, spark, started};
use crate::resources::world::{api, get, is_problem, job, post, submit};

const LINES: &str = "lines: [{version: 3.5.9, image: 'old:3.5'}, {version: 4.1.4, image: 'x'}]";

/// Returns a gateway of Spark 4.3.0 that also serves 3.5.9 and 4.1.4.
async fn several(pool: &PgPool) -> Router {
    let spark = spark(SparkVersion::V4_3).with_lines(Some(LINES)).unwrap();
    let service = started(Store::new(pool.clone()), cluster(), settings(spark)).await;
    router(service, HttpSettings::default()).unwrap()
}

#[sqlx::test]
async fn the_served_versions_are_listed(pool: PgPool) {
    let listed = get(&several(&pool).await, "/v1/spark-versions").await.json();
    let old = json!({"version": "3.5.9", "line": "3.5", "image": "old:3.5"});
    let own = json!({"version": "4.3.0", "line": "4.3"});
    assert_eq!((&listed["items"][0], &listed["items"][2], &listed["default"]), (&old, &own, &json!("4.3.0")));
    let me = get(&several(&pool).await, "/v1/me").await.json();
    assert_eq!(me["tenants"][0]["sparkVersions"], json!(["3.5.9", "4.1.4", "4.3.0"]));
    assert_eq!(me["tenants"][0]["defaultSparkVersion"], "4.3.0");
    let listed = get(&api(&pool).await, "/v1/spark-versions").await.json();
    assert_eq!(listed, json!({"items": [own], "default": "4.3.0"}));
}

#[sqlx::test]
async fn a_request_selects_its_version(pool: PgPool) {
    let api = several(&pool).await;
    for (asked, version) in
        [(json!("3.5"), "3.5.9"), (json!(4.1), "4.1.4"), (json!("4.3.0"), "4.3.0"), (Value::Null, "4.3.0")]
    {
        let fields = json!({ "sparkVersion": asked });
        assert_eq!(submit(&api, fields.clone()).await.json()["sparkVersion"], version, "{asked}");
        let plan = post(&api, "/v1/submissions?dryRun=true", &[], &job(fields)).await.json();
        assert_eq!(plan["submission"]["sparkVersion"], version, "{asked}");
        let pod = plan["manifest"]["items"].as_array().unwrap().iter().find(|object| object["kind"] == "Pod").unwrap();
        assert_eq!(pod["metadata"]["labels"]["spark-version"], version);
    }
    let plan = post(&api, "/v1/submissions?dryRun=true", &[], &job(json!({"sparkVersion": "3.5"}))).await.json();
    let image = json!({"key": "spark.kubernetes.container.image", "value": "old:3.5", "origin": "lines/3.5"});
    assert!(plan["defaults"].as_array().unwrap().contains(&image), "{plan}");
}

#[sqlx::test]
async fn a_version_that_is_not_served_is_a_problem_of_its_field(pool: PgPool) {
    let api = several(&pool).await;
    let property = json!({"spark.sparkgate.sparkVersion": "4.0"});
    for (fields, pointer) in [
        (json!({"sparkVersion": "4.0"}), "#/sparkVersion"),
        (json!({"sparkProperties": property}), "#/sparkProperties/spark.sparkgate.sparkVersion"),
    ] {
        let problem = is_problem(&submit(&api, fields).await, 400, "invalid-request");
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{problem}");
        let says = "`4.0` is not a Spark version of this gateway, which serves 3.5.9, 4.1.4 and 4.3.0";
        assert_eq!(problem["errors"][0]["detail"], says);
    }
}

#[sqlx::test]
async fn the_reply_of_create_names_the_version_of_the_driver(pool: PgPool) {
    let api = several(&pool).await;
    let request = |version: &str| {
        json!({"action": "CreateSubmissionRequest", "clientSparkVersion": "3.5.1", "appResource": "local:///a.jar",
            "mainClass": "A", "appArgs": [], "environmentVariables": {},
            "sparkProperties": {"spark.app.name": "x", "spark.sparkgate.sparkVersion": version}})
    };
    let created = post(&api, "/v1/submissions/create", &[], &request("3.5")).await.json();
    assert_eq!((&created["success"], &created["serverSparkVersion"]), (&json!(true), &json!("3.5.9")));
    let id = created["submissionId"].as_str().unwrap();
    let status = get(&api, &format!("/v1/submissions/status/{id}")).await.json();
    assert_eq!(status["serverSparkVersion"], "4.3.0", "the gateway's own");
    let refused = post(&api, "/v1/submissions/create", &[], &request("4.2")).await;
    let message = refused.json()["message"].as_str().unwrap().to_owned();
    assert_eq!(refused.status, 400, "{message}");
    assert!(message.contains("serves 3.5.9, 4.1.4 and 4.3.0"), "{message}");
}
