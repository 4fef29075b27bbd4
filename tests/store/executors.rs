//! Executors on a real Postgres: batches, guards, counts.

use sparkgate::{
    store::Store,
    submission::{ExecutorRecord, ExecutorState, SubmissionId},
};
use sqlx::{
    PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};

use crate::support::publish_statistics;

async fn submission(pool: &PgPool, number: i64, namespace: &str) -> SubmissionId {
    let id = format!("driver-20260101000000-{number:04}");
    sqlx::query(
        "INSERT INTO submissions (id, number, state, request, spark_version, spark_user, namespace, names, created_at,
                                  pod_uid)
         VALUES ($1, $2, 'RUNNING', '{}', '4.3.0', 'tester', $3, '{}', now(), 'driver')",
    )
    .bind(&id)
    .bind(number)
    .bind(namespace)
    .execute(pool)
    .await
    .unwrap();
    id.parse().unwrap()
}

fn executor(submission: &SubmissionId, executor_id: i64, state: ExecutorState) -> ExecutorRecord {
    let failed = state == ExecutorState::Failed;
    ExecutorRecord {
        submission: submission.clone(),
        attempt: 1,
        executor_id,
        driver_uid: Some("driver".to_owned()),
        pod_name: format!("pi-exec-{executor_id}"),
        pod_uid: format!("u{executor_id}"),
        state,
        exit_code: failed.then_some(137),
        reason: failed.then(|| "OOMKilled".to_owned()),
        message: None,
        node: None,
        created_at: Some("2026-01-01T00:00:00Z".parse().unwrap()),
        started_at: None,
        finished_at: None,
        reservation: None,
    }
}

/// Returns the counts: pending, running, succeeded, failed, deleted.
async fn counts(pool: &PgPool, id: &SubmissionId) -> (i32, i32, i32, i32, i32) {
    sqlx::query_as(
        "SELECT executors_pending, executors_running, executors_succeeded, executors_failed, executors_deleted
         FROM submissions WHERE id = $1",
    )
    .bind(id.as_str())
    .fetch_one(pool)
    .await
    .unwrap()
}

async fn counted(pool: &PgPool, id: &SubmissionId) -> (i32, i32, i32, i32, i32) {
    sqlx::query_as(
        "SELECT (count(*) FILTER (WHERE state = 'PENDING'))::int, (count(*) FILTER (WHERE state = 'RUNNING'))::int,
             (count(*) FILTER (WHERE state = 'SUCCEEDED'))::int, (count(*) FILTER (WHERE state = 'FAILED'))::int,
             (count(*) FILTER (WHERE state = 'DELETED'))::int
         FROM executors WHERE submission_id = $1",
    )
    .bind(id.as_str())
    .fetch_one(pool)
    .await
    .unwrap()
}

#[sqlx::test]
async fn an_executor_moves_and_is_counted_where_it_is(pool: PgPool) {
    use ExecutorState::*;
    let store = Store::new(pool.clone());
    let id = submission(&pool, 1, "spark").await;
    for (state, written, expected) in [
        (Unknown, 1, (0, 0, 0, 0, 0)),
        (Pending, 1, (1, 0, 0, 0, 0)),
        (Pending, 0, (1, 0, 0, 0, 0)),
        (Running, 1, (0, 1, 0, 0, 0)),
        (Pending, 0, (0, 1, 0, 0, 0)),
        (Unknown, 0, (0, 1, 0, 0, 0)),
        (Failed, 1, (0, 0, 0, 1, 0)),
        (Deleted, 0, (0, 0, 0, 1, 0)),
        (Running, 0, (0, 0, 0, 1, 0)),
        (Failed, 0, (0, 0, 0, 1, 0)),
    ] {
        assert_eq!(store.write_executors(&[executor(&id, 3, state)]).await.unwrap(), written, "{state}");
        assert_eq!(counts(&pool, &id).await, expected, "{state}");
    }
    let kept = store.all().executors(&id, None, 10).await.unwrap().remove(0);
    assert!(kept.finished_at.is_some(), "no report has the time of its end");
    assert_eq!(
        ExecutorRecord { finished_at: None, ..kept },
        ExecutorRecord { driver_uid: None, ..executor(&id, 3, Failed) }
    );
}

#[sqlx::test]
async fn later_observations_of_an_executor_add_fields_and_remove_none(pool: PgPool) {
    let store = Store::new(pool.clone());
    let id = submission(&pool, 1, "spark").await;
    let pending = executor(&id, 1, ExecutorState::Pending);
    let placed = ExecutorRecord { node: Some("n".to_owned()), ..pending.clone() };
    let stuck = ExecutorRecord { reason: Some("ErrImagePull".to_owned()), ..pending.clone() };
    for (record, written) in [(&pending, 1), (&placed, 1), (&placed, 0), (&stuck, 1)] {
        assert_eq!(store.write_executors(std::slice::from_ref(record)).await.unwrap(), written, "{record:?}");
    }
    let kept = store.all().executors(&id, None, 10).await.unwrap().remove(0);
    assert_eq!((kept.node.as_deref(), kept.reason.as_deref()), (Some("n"), Some("ErrImagePull")));

    let gone = ExecutorRecord::vanished(pending.key(), pending.pod_name, pending.pod_uid);
    store.write_executors(&[gone]).await.unwrap();
    let kept = store.all().executors(&id, None, 10).await.unwrap().remove(0);
    assert_eq!((kept.state, kept.node.as_deref()), (ExecutorState::Deleted, Some("n")));
    assert!(kept.created_at.is_some());
}

#[sqlx::test]
async fn one_statement_writes_a_batch_of_many_submissions(pool: PgPool) {
    let store = Store::new(pool.clone());
    let mut batch = Vec::new();
    let mut ids = Vec::new();
    for number in 0..5 {
        let id = submission(&pool, number, "spark").await;
        batch.extend((0..100).map(|executor_id| executor(&id, executor_id, ExecutorState::Running)));
        ids.push(id);
    }
    let unknown = "driver-20200101000000-9999".parse().unwrap();
    batch.extend((0..100).map(|executor_id| executor(&unknown, executor_id, ExecutorState::Running)));
    assert_eq!(store.write_executors(&batch).await.unwrap(), 500, "without those of unknown submissions");
    for id in &ids {
        assert_eq!(counts(&pool, id).await, (0, 100, 0, 0, 0));
    }
    let page = store.all().executors(&ids[0], Some((1, 49)), 20).await.unwrap();
    assert_eq!(page.iter().map(|one| one.executor_id).collect::<Vec<_>>(), (50..70).collect::<Vec<_>>());
}

/// Two replicas that both assume that they watch write the same executors, in different orders and with older and newer
/// states.
#[sqlx::test]
async fn concurrent_writers_leave_correct_counts(pool: PgPool) {
    use ExecutorState::*;
    let store = Store::new(pool.clone());
    let ids = [submission(&pool, 1, "spark").await, submission(&pool, 2, "spark").await];
    let writers = (0..8).map(|writer: i64| {
        let (store, ids) = (store.clone(), ids.clone());
        tokio::spawn(async move {
            for round in 0..20 {
                let states = [Unknown, Pending, Running, [Succeeded, Failed, Deleted][(writer % 3) as usize]];
                let batch = ids.iter().flat_map(|id| {
                    (0..20).map(move |n| executor(id, n, states[((n + writer + round) % 20 / 5) as usize]))
                });
                let mut batch: Vec<_> = batch.collect();
                if writer % 2 == 0 {
                    batch.reverse();
                }
                store.write_executors(&batch).await.unwrap();
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    for id in &ids {
        assert_eq!(counts(&pool, id).await, counted(&pool, id).await);
        let (pending, running, ..) = counts(&pool, id).await;
        assert_eq!((pending, running), (0, 0), "one of the two saw each of them end");
    }
}

#[sqlx::test]
async fn live_executors_are_those_of_the_namespace_that_have_not_ended(pool: PgPool) {
    let store = Store::new(pool.clone());
    let here = submission(&pool, 1, "here").await;
    let there = submission(&pool, 2, "there").await;
    let batch = [
        executor(&here, 1, ExecutorState::Running),
        executor(&here, 2, ExecutorState::Deleted),
        executor(&there, 1, ExecutorState::Pending),
    ];
    store.write_executors(&batch).await.unwrap();
    let live = store.live_executors(Some("here")).await.unwrap();
    assert_eq!(live.iter().map(|one| &one.key).collect::<Vec<_>>(), [&(here.clone(), 1, 1)]);
    assert_eq!((live[0].pod_name.as_str(), live[0].pod_uid.as_str()), ("pi-exec-1", "u1"));
    assert_eq!(store.live_executors(None).await.unwrap().len(), 2);

    for odd in [
        "INSERT INTO submissions (id, number, state, request, spark_version, spark_user, namespace, names, created_at)
         SELECT 'spark:0', 9, state, request, spark_version, spark_user, namespace, names, created_at
         FROM submissions WHERE number = 2",
        "UPDATE executors SET submission_id = 'spark:0' WHERE state = 'PENDING'",
    ] {
        sqlx::query(odd).execute(&pool).await.unwrap();
    }
    assert_eq!(store.live_executors(None).await.unwrap(), live, "an unreadable row hides no other");

    sqlx::query("DELETE FROM submissions").execute(&pool).await.unwrap();
    assert_eq!(store.live_executors(None).await.unwrap(), [], "executors are deleted with their submission");
}

/// Postgres' own statistics count the reads.
#[sqlx::test]
async fn a_batch_reads_what_it_changes_and_not_the_tables(options: PgPoolOptions, connect: PgConnectOptions) {
    // One connection, whose statistics are published before they are read.
    let pool = options.max_connections(1).connect_with(connect).await.unwrap();
    let id = submission(&pool, 200_000, "spark").await;
    sqlx::query(
        "INSERT INTO submissions (id, number, state, request, spark_version, spark_user, namespace, names, created_at)
         SELECT 'driver-1-' || n, n, 'RUNNING', '{}', '4.3.0', 'tester', 'spark', '{}', now()
         FROM generate_series(1, 50000) AS n",
    )
    .execute(&pool)
    .await
    .unwrap();
    sqlx::query(
        "INSERT INTO executors (submission_id, attempt, executor_id, pod_name, pod_uid, state)
         SELECT id, 1, 1, 'pod', 'uid', 'RUNNING' FROM submissions",
    )
    .execute(&pool)
    .await
    .unwrap();
    sqlx::query("VACUUM ANALYZE submissions, executors").execute(&pool).await.unwrap();
    let store = Store::new(pool.clone());
    let batch: Vec<_> = (2..=501).map(|n| executor(&id, n, ExecutorState::Running)).collect();
    let before = whole_scans(&pool).await;
    assert_eq!(store.write_executors(&batch).await.unwrap(), 500);
    assert_eq!(store.write_executors(&batch).await.unwrap(), 0);
    assert_eq!(store.all().executors(&id, None, 100).await.unwrap().len(), 100);
    assert_eq!(whole_scans(&pool).await, before);
}

async fn whole_scans(pool: &PgPool) -> i64 {
    publish_statistics(pool).await;
    let scans = "SELECT sum(seq_scan)::bigint FROM pg_stat_user_tables WHERE relname IN ('submissions', 'executors')";
    sqlx::query_scalar(scans).fetch_one(pool).await.unwrap()
}

/// A user with the right to create pods may also create one with the labels of an executor.
#[sqlx::test]
async fn an_executor_counts_only_if_the_recorded_driver_owns_it(pool: PgPool) {
    use ExecutorState::*;
    let (store, id) = (Store::new(pool.clone()), submission(&pool, 1, "spark").await);
    let of = |driver: &str, id| ExecutorRecord { driver_uid: Some(driver.to_owned()), ..id };
    let forged = of("another", executor(&id, 1, Failed));
    assert_eq!(store.write_executors(&[forged.clone(), executor(&id, 1, Running)]).await.unwrap(), 1);
    assert_eq!(counts(&pool, &id).await, (0, 1, 0, 0, 0), "the genuine one, in the same batch");
    assert_eq!(store.write_executors(&[forged]).await.unwrap(), 0);

    let vanished = |number| ExecutorRecord { driver_uid: None, ..executor(&id, number, Deleted) };
    assert_eq!(store.write_executors(&[vanished(1), vanished(2)]).await.unwrap(), 1, "one was never recorded");

    let again = "UPDATE submissions SET attempt = 2, pod_uid = NULL";
    sqlx::query(again).execute(&pool).await.unwrap();
    let past = "INSERT INTO attempts (submission_id, attempt, state, names, pod_uid, finished_at)
        SELECT id, 1, 'FAILED', names, 'driver', now() FROM submissions";
    sqlx::query(past).execute(&pool).await.unwrap();
    assert_eq!(store.write_executors(&[executor(&id, 3, Running)]).await.unwrap(), 1, "of the attempt before");
    let next = ExecutorRecord { attempt: 2, ..executor(&id, 1, Running) };
    assert_eq!(store.write_executors(&[next]).await.unwrap(), 0, "no driver of this attempt is recorded yet");
}
