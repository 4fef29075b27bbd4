//! Clean-up on a real Postgres: what is due, and how few rows are read to find it.

use std::time::Duration;

use sparkgate::store::Store;
use sqlx::{
    PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};

use crate::support::publish_statistics;

const DAY: Duration = Duration::from_secs(24 * 3600);

/// Inserts submissions `numbers` that ended `days` ago in `state`; a state that isn't final has no end.
async fn ended(pool: &PgPool, numbers: std::ops::Range<i64>, state: &str, days: f64, pod: Option<&str>) {
    sqlx::query(
        "INSERT INTO submissions (id, number, state, request, spark_version, spark_user, namespace, names, created_at,
                                  finished_at, pod_uid)
         SELECT 'driver-20260101000000-' || lpad(n::text, 6, '0'), n, $3, '{}', '4.3.0', 'tester', 'spark',
                jsonb_build_object('driverPod', 'pod-' || n), now(),
                CASE WHEN $3 NOT IN ('QUEUED', 'RUNNING') THEN now() - make_interval(secs => 86400 * $4 - n * 0.01) END, $5
         FROM generate_series($1, $2 - 1) AS n",
    )
    .bind(numbers.start)
    .bind(numbers.end)
    .bind(state)
    .bind(days)
    .bind(pod)
    .execute(pool)
    .await
    .unwrap();
}

async fn pods(store: &Store, age: Duration) -> Vec<String> {
    store.ended_pods(age, 100, &[], None).await.unwrap().into_iter().map(|pod| pod.pod).collect()
}

async fn left(pool: &PgPool) -> Vec<i64> {
    sqlx::query_scalar("SELECT number FROM submissions ORDER BY number").fetch_all(pool).await.unwrap()
}

#[sqlx::test]
async fn a_pod_is_due_after_its_time_until_it_is_deleted_or_put_off(pool: PgPool) {
    let store = Store::new(pool.clone());
    ended(&pool, 0..2, "FINISHED", 8.0, Some("u")).await;
    ended(&pool, 2..3, "FAILED", 6.0, Some("u")).await;
    ended(&pool, 3..4, "RUNNING", 9.0, Some("u")).await;
    ended(&pool, 4..5, "ERROR", 9.0, None).await;
    assert_eq!(pods(&store, 7 * DAY).await, ["pod-0", "pod-1"]);
    assert_eq!(store.ended_pods(7 * DAY, 1, &[], None).await.unwrap().len(), 1);

    store.put_clean_up_off(&["driver-20260101000000-000000"], DAY).await.unwrap();
    assert_eq!(pods(&store, 7 * DAY).await, ["pod-1"]);
    store.put_clean_up_off(&["driver-20260101000000-000000"], Duration::ZERO).await.unwrap();
    assert_eq!(pods(&store, 7 * DAY).await, ["pod-0", "pod-1"]);
    store.note_pods_deleted(&[("driver-20260101000000-000000", 1), ("driver-20260101000000-000001", 1)]).await.unwrap();
    assert_eq!(pods(&store, 7 * DAY).await, Vec::<String>::new());
    assert_eq!(pods(&store, 5 * DAY).await, ["pod-2"]);
}

#[sqlx::test]
async fn an_old_row_is_deleted_with_its_records_once_its_pod_is_gone(pool: PgPool) {
    let store = Store::new(pool.clone());
    ended(&pool, 0..3, "KILLED", 91.0, Some("u")).await;
    ended(&pool, 3..4, "ERROR", 91.0, None).await;
    ended(&pool, 4..5, "FINISHED", 89.0, None).await;
    ended(&pool, 5..6, "RUNNING", 91.0, Some("u")).await;
    ended(&pool, 6..7, "QUEUED", 91.0, None).await;
    sqlx::query("INSERT INTO submission_events (submission_id, attempt, state) SELECT id, 1, state FROM submissions")
        .execute(&pool)
        .await
        .unwrap();
    assert_eq!(store.delete_ended(90 * DAY, 100, None).await.unwrap(), 1);
    assert_eq!(left(&pool).await, [0, 1, 2, 4, 5, 6], "pods may exist, or may have been deleted just now");

    let these = [("driver-20260101000000-000000", 1), ("driver-20260101000000-000001", 1)];
    store.note_pods_deleted(&these).await.unwrap();
    assert_eq!(store.delete_ended(90 * DAY, 100, None).await.unwrap(), 0);
    sqlx::query("UPDATE submissions SET pod_deleted_at = pod_deleted_at - interval '2 min'")
        .execute(&pool)
        .await
        .unwrap();
    assert_eq!(store.delete_ended(90 * DAY, 1, None).await.unwrap(), 1);
    assert_eq!(left(&pool).await, [1, 2, 4, 5, 6], "the oldest first");
    assert_eq!(store.delete_ended(90 * DAY, 100, None).await.unwrap(), 1);
    let events: i64 = sqlx::query_scalar("SELECT count(*) FROM submission_events").fetch_one(&pool).await.unwrap();
    assert_eq!((left(&pool).await, events), (vec![2, 4, 5, 6], 4));
}

#[sqlx::test]
async fn the_objects_are_deleted_with_the_pod_unless_some_were_created_before_it(pool: PgPool) {
    let store = Store::new(pool.clone());
    ended(&pool, 0..3, "FINISHED", 8.0, Some("u")).await;
    ended(&pool, 3..4, "RUNNING", 8.0, Some("u")).await;
    sqlx::query(
        r#"INSERT INTO manifests (submission_id, objects)
         SELECT id, CASE number WHEN 1 THEN '{"before":[{}],"pod":{}}' ELSE '{"before":[],"pod":{}}' END FROM submissions"#,
    )
    .execute(&pool)
    .await
    .unwrap();
    let these = [0, 1, 3].map(|number| format!("driver-20260101000000-{number:06}"));
    store.note_pods_deleted(&these.each_ref().map(|id| (id.as_str(), 1))).await.unwrap();
    let kept: Vec<i64> =
        sqlx::query_scalar("SELECT number FROM manifests JOIN submissions ON id = submission_id ORDER BY number")
            .fetch_all(&pool)
            .await
            .unwrap();
    assert_eq!(kept, [1, 2, 3]);
}

#[sqlx::test]
async fn pods_of_earlier_attempts_are_due_and_keep_their_row(pool: PgPool) {
    let store = Store::new(pool.clone());
    ended(&pool, 0..1, "RUNNING", 0.0, Some("u2")).await;
    ended(&pool, 1..2, "KILLED", 91.0, None).await;
    sqlx::query("UPDATE submissions SET attempt = 2").execute(&pool).await.unwrap();
    sqlx::query(
        r#"INSERT INTO attempts (submission_id, attempt, state, names, pod_uid, finished_at)
         SELECT id, 1, 'FAILED', jsonb_build_object('driverPod', 'old-' || number), 'u1', now() - interval '8 days'
         FROM submissions"#,
    )
    .execute(&pool)
    .await
    .unwrap();
    sqlx::query(
        r#"INSERT INTO manifests (submission_id, attempt, objects)
         SELECT id, n, CASE WHEN n = 1 AND number = 0 THEN '{"before":[{}],"pod":{}}' ELSE '{"before":[],"pod":{}}' END
         FROM submissions, generate_series(1, 2) AS n"#,
    )
    .execute(&pool)
    .await
    .unwrap();
    let due = store.ended_pods(7 * DAY, 100, &[], None).await.unwrap();
    let due: Vec<_> =
        due.iter().map(|it| (it.pod.as_str(), it.uid.as_str(), it.attempt, it.manifest.is_some())).collect();
    assert_eq!(due, [("old-0", "u1", 1, true), ("old-1", "u1", 1, false)]);
    assert_eq!(store.delete_ended(90 * DAY, 100, None).await.unwrap(), 0, "one of its pods may exist");

    let these = [("driver-20260101000000-000000", 1), ("driver-20260101000000-000001", 1)];
    store.note_pods_deleted(&these).await.unwrap();
    assert_eq!(store.ended_pods(7 * DAY, 100, &[], None).await.unwrap(), []);
    let kept = "SELECT number, m.attempt FROM manifests m JOIN submissions ON id = submission_id ORDER BY 1, 2";
    let kept: Vec<(i64, i32)> = sqlx::query_as(kept).fetch_all(&pool).await.unwrap();
    assert_eq!(kept, [(0, 1), (0, 2), (1, 2)], "another attempt may be derived from them");
    let present: i64 = sqlx::query_scalar("SELECT count(*) FROM submissions WHERE pod_deleted_at IS NOT NULL")
        .fetch_one(&pool)
        .await
        .unwrap();
    assert_eq!(present, 0, "the present attempt has a pod of its own");
    assert_eq!(store.delete_ended(90 * DAY, 100, None).await.unwrap(), 0, "its pod was deleted just now");
    sqlx::query("UPDATE attempts SET pod_deleted_at = pod_deleted_at - interval '2 min'").execute(&pool).await.unwrap();
    assert_eq!(store.delete_ended(90 * DAY, 100, None).await.unwrap(), 1);
    assert_eq!(left(&pool).await, [0]);
}

/// Postgres' own statistics count the reads.
#[sqlx::test]
async fn a_round_reads_what_is_due_and_not_the_table(options: PgPoolOptions, connect: PgConnectOptions) {
    // One connection, whose statistics are published before they are read.
    let pool = options.max_connections(1).connect_with(connect).await.unwrap();
    ended(&pool, 0..50, "FINISHED", 100.0, Some("u")).await;
    ended(&pool, 50..80_000, "FINISHED", 3.0, Some("u")).await;
    ended(&pool, 80_000..90_000, "FAILED", 30.0, Some("u")).await;
    sqlx::query("UPDATE submissions SET pod_deleted_at = now() WHERE number >= 80000").execute(&pool).await.unwrap();
    ended(&pool, 90_000..100_000, "RUNNING", 0.0, Some("u")).await;
    sqlx::query("VACUUM ANALYZE submissions").execute(&pool).await.unwrap();

    let before = reads(&pool).await;
    let store = Store::new(pool.clone());
    assert_eq!(store.ended_pods(7 * DAY, 100, &[], None).await.unwrap().len(), 50);
    assert_eq!(store.delete_ended(90 * DAY, 100, None).await.unwrap(), 0);
    // Up to Postgres 14, another process collects the statistics, and shows them a moment after they were sent.
    let after = loop {
        let after = reads(&pool).await;
        if after != before {
            break after;
        }
    };
    assert_eq!(after.0 - before.0, 0, "the whole table was read");
    let read = after.1 - before.1;
    assert!((100..400).contains(&read), "{read} entries of indexes for 50 pods and 50 rows");
}

/// Returns the number of scans of the whole table of submissions, and of entries read from its indexes.
async fn reads(pool: &PgPool) -> (i64, i64) {
    publish_statistics(pool).await;
    sqlx::query_as(
        "SELECT seq_scan, (SELECT sum(idx_tup_read)::bigint FROM pg_stat_user_indexes WHERE relname = 'submissions')
         FROM pg_stat_user_tables WHERE relname = 'submissions'",
    )
    .fetch_one(pool)
    .await
    .unwrap()
}
