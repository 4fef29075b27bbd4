//! A failover to a standby that lacked the last commits.

use std::time::Duration;

use sqlx::PgPool;
use tokio::time::timeout;

use crate::events::{
    client::{Stream, get},
    world::{Replica, all_numbered, write_events},
};

/// The distance between the numbers of two histories.
const SKIPPED: i64 = 1_000_000_000;

/// Lets the database go back to the event `last`, and have another history from then on, with `count` other events.
async fn fail_over(pool: &PgPool, last: i64, count: i32) {
    let lost = format!(
        "BEGIN;
         DELETE FROM submission_events WHERE sequence > {last};
         UPDATE event_sequence SET last = {last};
         INSERT INTO submission_events (submission_id, attempt, state)
             SELECT id, 1, 'KILLED' FROM submissions, generate_series(1, {count});
         CREATE OR REPLACE FUNCTION database_history() RETURNS text LANGUAGE sql STABLE AS $$ SELECT '1/00000002/1' $$;
         COMMIT"
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(lost)).execute(pool).await.unwrap();
}

async fn page(replica: &Replica, after: i64) -> Result<Vec<i64>, u16> {
    let answer = get(replica.address, &format!("/v1/events?after={after}&limit=500&waitSeconds=60")).await;
    let items = answer.body["items"].as_array().ok_or(answer.status)?;
    Ok(items.iter().map(|item| item["sequence"].as_i64().unwrap()).collect())
}

/// Other events are numbered before this replica looks again.
#[sqlx::test]
async fn after_a_failover_no_number_is_given_twice_and_no_change_is_missed(pool: PgPool) {
    let (one, other) = (Replica::start(pool.clone()).await, Replica::start(pool.clone()).await);
    let id = one.submit().await;
    write_events(&pool, &id, 99, 1).await;
    assert_eq!(all_numbered(&pool).await, 100);
    let mut streams = Vec::new();
    for replica in [&one, &other] {
        let mut stream = Stream::open(replica.address, "/v1/events?after=90", None).await.ok().unwrap();
        for _ in 0..10 {
            stream.next().await.unwrap();
        }
        streams.push(stream);
    }

    fail_over(&pool, 95, 20).await;
    for stream in &mut streams {
        assert!(timeout(Duration::from_secs(20), stream.next()).await.unwrap().is_none(), "a lost event was sent here");
    }
    assert_eq!(all_numbered(&pool).await, 95 + SKIPPED + 20);
    let new: Vec<_> = (1..=20).map(|n| 95 + SKIPPED + n).collect();
    let later = Replica::start(pool.clone()).await;
    for replica in [&one, &other, &later] {
        for lost in [96, 98, 100] {
            assert_eq!(page(replica, lost).await, Err(410), "{lost}");
        }
        assert_eq!(page(replica, 95).await.unwrap(), new, "a cursor from before the loss continues");
        let earlier = page(replica, 90).await.unwrap();
        assert!(earlier.starts_with(&[91, 92, 93, 94, 95]), "{earlier:?}");
    }
}
