//! What drivers said last of their jobs.

use std::time::Duration;

use serde_json::json;
use sparkgate::{
    store::{Prices, Scope, Store},
    submission::SubmissionId,
};
use sqlx::PgPool;

use crate::support::accept;

const PERIOD: Duration = Duration::from_secs(60);

async fn set(pool: &PgPool, id: &SubmissionId, columns: &str) {
    let statement = sqlx::AssertSqlSafe(format!("UPDATE submissions SET {columns} WHERE id = $1"));
    sqlx::query(statement).bind(id.as_str()).execute(pool).await.unwrap();
}

async fn due(pool: &PgPool) {
    sqlx::query("UPDATE spark_summaries SET next_at = clock_timestamp()").execute(pool).await.unwrap();
}

async fn executor(pool: &PgPool, id: &SubmissionId, age: &str) {
    let statement =
        "INSERT INTO executors (submission_id, attempt, executor_id, pod_name, pod_uid, state, created_at, started_at)
         VALUES ($1, 1, 1, 'x', 'x', 'RUNNING', clock_timestamp(), clock_timestamp() - $2::interval)";
    sqlx::query(statement).bind(id.as_str()).bind(age).execute(pool).await.unwrap();
}

/// Returns the seconds until the next question to each driver.
async fn pauses(pool: &PgPool) -> Vec<f64> {
    let statement =
        "SELECT extract(epoch FROM next_at - clock_timestamp())::float8 FROM spark_summaries ORDER BY submission_id";
    sqlx::query_scalar(statement).fetch_all(pool).await.unwrap()
}

#[sqlx::test]
async fn a_running_driver_is_asked_by_one_replica_and_rarely(pool: PgPool) {
    let store = Store::new(pool.clone());
    let (young, old, queued) = (accept(&store, "a").await, accept(&store, "b").await, accept(&store, "c").await);
    set(&pool, &young, "state = 'RUNNING', pod_uid = 'a', started_at = clock_timestamp() - interval '20 s'").await;
    set(&pool, &old, "state = 'RUNNING', pod_uid = 'b', started_at = clock_timestamp() - interval '1 day'").await;
    let ask = async |limit| {
        let drivers = store.drivers_to_ask(PERIOD, limit).await.unwrap();
        drivers.into_iter().map(|driver| (driver.id, driver.pod_uid)).collect::<Vec<_>>()
    };
    assert_eq!(ask(9).await, [(old.clone(), "b".to_owned())], "{young} still starts");
    executor(&pool, &young, "3 s").await;
    due(&pool).await;
    assert_eq!(ask(9).await, [(old.clone(), "b".to_owned())], "{young} runs its first tasks");
    sqlx::raw_sql("DELETE FROM executors").execute(&pool).await.unwrap();
    executor(&pool, &young, "6 s").await;
    sqlx::raw_sql("DELETE FROM spark_summaries").execute(&pool).await.unwrap();
    assert_eq!(ask(1).await, [(young.clone(), "a".to_owned())]);
    let (one, other) = tokio::join!(ask(9), ask(9));
    assert_eq!([one, other].concat(), [(old.clone(), "b".to_owned())], "{queued} doesn't run");
    let times = pauses(&pool).await;
    assert!((3.0..7.0).contains(&times[0]) && (40.0..76.0).contains(&times[1]), "{times:?}");
    due(&pool).await;
    assert_eq!(ask(9).await.len(), 2);
    // Its first job is known now.
    store.write_spark_summary(&young, 1, &json!({"first_job_at": "2026-01-01T00:00:00Z"})).await.unwrap();
    due(&pool).await;
    assert_eq!(ask(9).await.len(), 2);
    let times = pauses(&pool).await;
    assert!((6.0..13.0).contains(&times[0]), "{times:?}");
    due(&pool).await;
    set(&pool, &old, "state = 'FINISHED', finished_at = clock_timestamp()").await;
    assert_eq!(ask(9).await, [(young, "a".to_owned())]);
}

#[sqlx::test]
async fn the_last_answer_stays_as_long_as_its_submission_and_is_read_within_a_scope(pool: PgPool) {
    let store = Store::new(pool.clone());
    let id = accept(&store, "a").await;
    set(&pool, &id, "state = 'RUNNING', pod_uid = 'a', started_at = clock_timestamp() - interval '2 minutes'").await;
    let read = async |scope: &Scope| {
        let document = store.scoped(scope).document(&id, Prices::default()).await.unwrap();
        document.and_then(|document| document.spark)
    };
    store.drivers_to_ask(PERIOD, 9).await.unwrap();
    assert_eq!(read(&Scope::installation()).await, None, "it hasn't answered yet");
    store.write_spark_summary(&id, 1, &json!({"jobs": 1})).await.unwrap();
    set(&pool, &id, "state = 'FINISHED', finished_at = clock_timestamp()").await;
    store.write_spark_summary(&id, 1, &json!({"jobs": 2})).await.unwrap();
    store.write_spark_summary(&id, 2, &json!({"jobs": 3})).await.unwrap();
    let kept = read(&Scope::installation()).await.unwrap();
    assert_eq!((kept.attempt, kept.summary), (1, json!({"jobs": 2})), "that of another attempt isn't recorded");
    assert_eq!(read(&Scope::of(vec!["other".to_owned()], Vec::new(), "")).await, None);
    sqlx::query("DELETE FROM submissions WHERE id = $1").bind(id.as_str()).execute(&pool).await.unwrap();
    let left: i64 = sqlx::query_scalar("SELECT count(*) FROM spark_summaries").fetch_one(&pool).await.unwrap();
    assert_eq!(left, 0);
}
