//! The life cycle of one resource.

use axum::{body::Body, http::Request};
use serde_json::{Value, json};
use sqlx::PgPool;

use crate::in_memory::send;
use crate::resources::world::{accepted, api, count, delete, get, is_problem, job, post, submit};

#[sqlx::test]
async fn a_created_submission_can_be_read(pool: PgPool) {
    let api = api(&pool).await;
    let answer = submit(
        &api,
        json!({"labels": {"team": "data"}, "environmentVariables": {"SPARK_USER": "alice"}, "runTimeoutSeconds": 60,
            "maxRetries": {"infrastructure": 2}}),
    )
    .await;
    assert_eq!(answer.status, 201, "{}", answer.body);
    let created = answer.json();
    let location = answer.header("location").unwrap();
    assert_eq!(location, format!("/v1/submissions/{}", created["id"].as_str().unwrap()));
    let expected = json!({"name": "job", "state": "QUEUED", "owner": "alice", "namespace": "default", "attempt": 1,
        "labels": {"team": "data"}, "limits": {"runSeconds": 60}, "retries": {"infrastructure": 2, "application": 0},
        "sparkVersion": "4.3.0"});
    for (field, value) in expected.as_object().unwrap() {
        assert_eq!(created[field], *value, "{field}");
    }
    let again = get(&api, location).await;
    assert_eq!((again.status, again.json(), again.header("etag")), (200, created.clone(), answer.header("etag")));

    // Spark's protocol has the same id for it.
    let id = created["id"].as_str().unwrap();
    let status = get(&api, &format!("/v1/submissions/status/{id}")).await.json();
    assert_eq!((&status["driverState"], &status["success"]), (&json!("SUBMITTED"), &json!(true)));
}

#[sqlx::test]
async fn budgets_for_a_lack_of_room_are_shown_and_repeated_by_a_rerun(pool: PgPool) {
    let api = api(&pool).await;
    let budgets = json!({"infrastructure": 0, "application": 0, "capacity": 3, "quota": 2});
    let by_property = json!({"spark.sparkgate.maxRetries.capacity": "3", "spark.sparkgate.maxRetries.quota": "2"});
    let asked = json!({"capacity": 3, "quota": 2});
    for fields in [json!({"maxRetries": asked}), json!({"sparkProperties": by_property})] {
        let planned = post(&api, "/v1/submissions?dryRun=true", &[], &job(fields.clone())).await.json();
        assert_eq!(planned["submission"]["retries"], budgets, "{planned}");
        let created = submit(&api, fields).await.json();
        assert_eq!(created["retries"], budgets, "{created}");
        let path = format!("/v1/submissions/{}", created["id"].as_str().unwrap());
        assert_eq!(get(&api, &path).await.json()["retries"], budgets);
        let again = post(&api, &format!("{path}/rerun"), &[], &json!({})).await;
        assert_eq!((again.status, &again.json()["retries"]), (201, &budgets), "{}", again.body);
    }
}

#[sqlx::test]
async fn properties_that_are_probably_misspelt_are_warned_of(pool: PgPool) {
    let api = api(&pool).await;
    let odd =
        json!({"sparkProperties": {"spark.executor.instnces": "3", "executor.memory": "2g", "spark.own.team": "data"}});
    let expected = json!([
        "executor.memory: has no effect, because it doesn't begin with spark.; did you mean spark.executor.memory?",
        "spark.executor.instnces: Spark has no such property; did you mean spark.executor.instances?",
    ]);
    for (path, status) in [("/v1/submissions", 201), ("/v1/submissions?dryRun=true", 200)] {
        let answer = post(&api, path, &[], &job(odd.clone())).await;
        assert_eq!((answer.status, &answer.json()["warnings"]), (status, &expected), "{}", answer.body);
    }
    assert_eq!(submit(&api, json!({})).await.json().get("warnings"), None);
}

#[sqlx::test]
async fn heaps_with_which_spark_does_not_start_are_warned_of(pool: PgPool) {
    let api = api(&pool).await;
    let heaps = json!({"sparkProperties": {"spark.driver.memory": "4", "spark.executor.memory": "450m"}});
    let answer = post(&api, "/v1/submissions?dryRun=true", &[], &job(heaps)).await;
    let expected = "spark.driver.memory is 4, which is 4 MiB: Spark doesn't start with a heap of less than 450 MiB";
    assert_eq!((answer.status, &answer.json()["warnings"]), (200, &json!([expected])), "{}", answer.body);
}

#[sqlx::test]
async fn an_unchanged_document_is_not_sent_again(pool: PgPool) {
    let api = api(&pool).await;
    let path = format!("/v1/submissions/{}", accepted(&api, json!({})).await);
    let tag = get(&api, &path).await.header("etag").unwrap().to_owned();
    let asked = async |tag: &str| {
        let request = Request::get(&path).header("if-none-match", tag).body(Body::empty()).unwrap();
        send(&api, request).await
    };
    let unchanged = asked(&format!("\"x\", {tag}")).await;
    assert_eq!((unchanged.status, unchanged.body.as_str()), (304, ""));
    assert_eq!(unchanged.header("etag"), Some(tag.as_str()));
    delete(&api, &path).await;
    let changed = asked(&tag).await;
    assert_eq!((changed.status, &changed.json()["state"]), (200, &json!("KILLED")));
}

#[sqlx::test]
async fn a_kill_may_be_repeated(pool: PgPool) {
    let api = api(&pool).await;
    let path = format!("/v1/submissions/{}", accepted(&api, json!({})).await);
    let first = delete(&api, &path).await;
    assert_eq!((first.status, &first.json()["state"]), (202, &json!("KILLED")), "it had no objects yet");
    let second = delete(&api, &path).await;
    assert_eq!((second.status, second.json()), (200, get(&api, &path).await.json()));
    is_problem(&delete(&api, "/v1/submissions/driver-1-1").await, 404, "submission-not-found");
}

#[sqlx::test]
async fn the_outcome_has_a_status_for_sensors(pool: PgPool) {
    let api = api(&pool).await;
    let id = accepted(&api, json!({})).await;
    let path = format!("/v1/submissions/{id}/outcome");
    is_problem(&get(&api, &path).await, 404, "not-finished");
    delete(&api, &format!("/v1/submissions/{id}")).await;
    let problem = is_problem(&get(&api, &path).await, 424, "submission-failed");
    assert_eq!((&problem["submission"]["state"], &problem["submission"]["id"]), (&json!("KILLED"), &json!(id)));
    sqlx::query("UPDATE submissions SET state = 'FINISHED', exit_code = 0").execute(&pool).await.unwrap();
    let good = get(&api, &path).await;
    assert_eq!((good.status, &good.json()["exitCode"]), (200, &json!(0)));
}

#[sqlx::test]
async fn the_manifest_is_what_is_created(pool: PgPool) {
    let api = api(&pool).await;
    let id = accepted(&api, json!({})).await;
    let list = get(&api, &format!("/v1/submissions/{id}/manifest")).await.json();
    assert_eq!((&list["kind"], &list["items"][0]["kind"]), (&json!("List"), &json!("Pod")));
    assert_eq!(list["items"][0]["metadata"]["labels"]["sparkgate.dev/submission-id"], json!(id));
    is_problem(&get(&api, &format!("/v1/submissions/{id}/manifest?attempt=2")).await, 404, "manifest-not-found");
}

#[sqlx::test]
async fn a_dry_run_returns_the_plan_and_stores_nothing(pool: PgPool) {
    let api = api(&pool).await;
    let answer = post(&api, "/v1/submissions?dryRun=true", &[], &job(json!({"labels": {"a": "b"}}))).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let plan = answer.json();
    assert_eq!((&plan["submission"]["name"], &plan["submission"]["labels"]["a"]), (&json!("job"), &json!("b")));
    assert!(plan["manifest"]["items"].as_array().unwrap().len() >= 3, "{plan}");
    let origin = |key: &str| {
        let all = plan["defaults"].as_array().unwrap();
        all.iter().find(|default| default["key"] == key).map(|default| default["origin"].clone())
    };
    assert_eq!(origin("spark.kubernetes.container.image"), Some(json!("spark-defaults")));
    assert_eq!(origin("spark.kubernetes.driver.pod.name"), Some(json!("spark-submit")));
    assert_eq!(origin("spark.kubernetes.executor.label.sparkgate.dev/attempt"), Some(json!("sparkgate")));
    assert_eq!(origin("spark.app.name"), None, "the request sets it");
    assert_eq!(count(&pool).await, 0);
    let refused = post(&api, "/v1/submissions?dryRun=true", &[], &json!({"mainClass": "A"})).await;
    is_problem(&refused, 400, "invalid-request");
}

#[sqlx::test]
async fn a_unique_name_is_given_to_one_live_submission(pool: PgPool) {
    let api = api(&pool).await;
    let id = accepted(&api, json!({"uniqueName": true})).await;
    accepted(&api, json!({})).await;
    accepted(&api, json!({"uniqueName": true, "name": "other"})).await;
    let elsewhere = json!({"uniqueName": true, "sparkProperties": {"spark.kubernetes.namespace": "elsewhere"}});
    accepted(&api, elsewhere).await;
    let taken = is_problem(&submit(&api, json!({"uniqueName": true})).await, 409, "name-taken");
    assert_eq!(taken["submissionId"], json!(id));
    delete(&api, &format!("/v1/submissions/{id}")).await;
    accepted(&api, json!({"uniqueName": true})).await;
}

#[sqlx::test]
async fn sparkgate_properties_never_reach_the_driver(pool: PgPool) {
    let api = api(&pool).await;
    let asked = json!({"spark.sparkgate.label.team": "data", "spark.sparkgate.startTimeout": "10m", "spark.x": "1"});
    let answer = submit(&api, json!({"sparkProperties": asked})).await;
    let created = answer.json();
    assert_eq!((&created["labels"]["team"], &created["limits"]["startSeconds"]), (&json!("data"), &json!(600)));
    let manifest = get(&api, &format!("{}/manifest", answer.header("location").unwrap())).await.body;
    assert!(manifest.contains("spark.x=1") && !manifest.contains("spark.sparkgate."), "{manifest}");
    let stored: Value = sqlx::query_scalar("SELECT request FROM submissions").fetch_one(&pool).await.unwrap();
    assert!(!stored.to_string().contains("spark.sparkgate."), "{stored}");
}
