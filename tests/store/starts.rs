//! When the steps of starts happened, on a real Postgres.

use sparkgate::store::{NewStarts, StartTimes, Store};
use sqlx::PgPool;

use crate::attempts::with;

/// Numbers all events, and makes them so old.
async fn events_of(pool: &PgPool, age: &str) {
    let set = format!(
        "UPDATE submission_events SET sequence = id, at = clock_timestamp() - interval '{age}' WHERE sequence IS NULL"
    );
    sqlx::query(sqlx::AssertSqlSafe(set)).execute(pool).await.unwrap();
}

async fn event(
    pool: &PgPool,
    id: &sparkgate::submission::SubmissionId,
    attempt: i32,
    state: &str,
    reason: Option<&str>,
) {
    sqlx::query("INSERT INTO submission_events (submission_id, attempt, state, reason) VALUES ($1, $2, $3, $4)")
        .bind(id.as_str())
        .bind(attempt)
        .bind(state)
        .bind(reason)
        .execute(pool)
        .await
        .unwrap();
}

/// Returns the attempts of new starts with the seconds from their queue to their driver.
fn waits(of: &NewStarts) -> Vec<(&str, i32, i64)> {
    let seconds =
        |times: &StartTimes| (times.started_at.unwrap() - times.recorded.attempt_queued_at.unwrap()).num_seconds();
    of.starts.iter().map(|start| (start.tenant.as_str(), start.times.attempt, seconds(&start.times))).collect()
}

#[sqlx::test]
async fn each_start_is_found_once_and_not_before_its_first_steps_are_recorded(pool: PgPool) {
    let store = Store::new(pool.clone());
    let times = |seconds: i32| {
        format!(
            "queued_at = now() - interval '1 hour', started_at = now() - interval '1 hour' + make_interval(secs => {seconds})"
        )
    };
    let running = with(&pool, &store, &format!("state = 'RUNNING', {}", times(4))).await;
    event(&pool, &running, 1, "RUNNING", None).await;
    event(&pool, &running, 1, "RUNNING", Some("Late")).await;
    let short = with(&pool, &store, &format!("state = 'FINISHED', {}", times(5))).await;
    event(&pool, &short, 1, "FINISHED", None).await;
    let seen = with(&pool, &store, &format!("state = 'FINISHED', {}", times(6))).await;
    event(&pool, &seen, 1, "RUNNING", None).await;
    event(&pool, &seen, 1, "FINISHED", None).await;
    let never = with(&pool, &store, "state = 'KILLED'").await;
    event(&pool, &never, 1, "KILLED", None).await;
    assert_eq!(store.new_starts(100).await.unwrap(), NewStarts::default(), "no event has a number");
    events_of(&pool, "6 minutes").await;
    let young = with(&pool, &store, &format!("state = 'RUNNING', {}", times(7))).await;
    event(&pool, &young, 1, "RUNNING", None).await;
    events_of(&pool, "4 minutes").await;

    let found = store.new_starts(3).await.unwrap();
    assert!(found.more);
    assert_eq!(waits(&found), [("default", 1, 4)]);
    let found = store.new_starts(100).await.unwrap();
    assert!(!found.more);
    let mut rest = waits(&found);
    rest.sort_unstable();
    assert_eq!(rest, [("default", 1, 5), ("default", 1, 6)]);
    assert_eq!(store.new_starts(100).await.unwrap(), NewStarts::default(), "each once");
    sqlx::query("UPDATE submission_events SET at = at - interval '2 minutes'").execute(&pool).await.unwrap();
    assert_eq!(waits(&store.new_starts(100).await.unwrap()), [("default", 1, 7)]);
}

#[sqlx::test]
async fn an_earlier_attempt_has_its_own_times(pool: PgPool) {
    let store = Store::new(pool.clone());
    let id = with(&pool, &store, "state = 'QUEUED', attempt = 2, queued_at = now()").await;
    sqlx::query(
        "INSERT INTO attempts (submission_id, attempt, state, names, queued_at, started_at, finished_at, pod_since)
         SELECT id, 1, 'FAILED', names, now() - interval '1 hour', now() - interval '59 minutes', now(), now() - interval '59 minutes 50 s'
         FROM submissions",
    )
    .execute(&pool)
    .await
    .unwrap();
    sqlx::query(
        "INSERT INTO executors (submission_id, attempt, executor_id, pod_name, pod_uid, state, created_at, started_at)
         VALUES ($1, 1, 1, 'p', 'u', 'RUNNING', now() - interval '58 minutes', now() - interval '57 minutes')",
    )
    .bind(id.as_str())
    .execute(&pool)
    .await
    .unwrap();
    event(&pool, &id, 1, "PENDING", None).await;
    event(&pool, &id, 1, "RUNNING", None).await;
    event(&pool, &id, 1, "FAILED", None).await;
    events_of(&pool, "6 minutes").await;
    let found = store.new_starts(100).await.unwrap();
    assert_eq!(waits(&found), [("default", 1, 60)]);
    let times = &found.starts[0].times;
    let recorded = &times.recorded;
    assert!(recorded.objects_at.is_some());
    let after_start =
        |at: Option<chrono::DateTime<chrono::Utc>>| (at.unwrap() - times.started_at.unwrap()).num_seconds();
    let steps = [recorded.node_at, recorded.executor_created_at, recorded.executor_started_at].map(after_start);
    assert_eq!(steps, [-50, 60, 120]);
}
