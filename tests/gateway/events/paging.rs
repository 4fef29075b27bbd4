//! Events in pages, filters, and invalid cursors.

use std::{net::SocketAddr, time::Duration};

use serde_json::Value;
use sqlx::PgPool;
use tokio::time::timeout;

use crate::events::{
    client::{Stream, get},
    world::{Replica, all_numbered, write_events},
};

async fn numbers(address: SocketAddr, target: &str) -> (Vec<i64>, Value) {
    let answer = get(address, target).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let items = answer.body["items"].as_array().unwrap();
    (items.iter().map(|item| item["sequence"].as_i64().unwrap()).collect(), answer.body["next"].clone())
}

async fn code(address: SocketAddr, target: &str) -> (u16, String) {
    let answer = get(address, target).await;
    (answer.status, answer.body["code"].as_str().unwrap().to_owned())
}

#[sqlx::test]
async fn pages_reach_the_end_and_resume_there(pool: PgPool) {
    let replica = Replica::start(pool.clone()).await;
    let at = replica.address;
    let (_, now) = numbers(at, "/v1/events").await;
    assert_eq!(now, "0");
    let id = replica.submit().await;
    write_events(&pool, &id, 4, 1).await;
    assert_eq!(all_numbered(&pool).await, 5);
    let waited = timeout(Duration::from_secs(20), numbers(at, "/v1/events?after=4&waitSeconds=60")).await.unwrap();
    assert_eq!(waited, (vec![5], "5".into()));
    assert_eq!(numbers(at, "/v1/events?after=0&limit=3").await, (vec![1, 2, 3], "3".into()));
    assert_eq!(numbers(at, "/v1/events?after=3&limit=3").await, (vec![4, 5], "5".into()));
    assert_eq!(numbers(at, "/v1/events?after=5").await, (vec![], "5".into()));
    assert_eq!(numbers(at, "/v1/events").await, (vec![], "5".into()));

    let of_one = format!("/v1/submissions/{id}/events");
    assert_eq!(numbers(at, &format!("{of_one}?limit=2")).await, (vec![1, 2], "2".into()));
    assert_eq!(numbers(at, &format!("{of_one}?after=2")).await, (vec![3, 4, 5], Value::Null));
    let unknown = code(at, "/v1/submissions/driver-20260101000000-9999/events").await;
    assert_eq!(unknown, (404, "submission-not-found".to_owned()));
}

#[sqlx::test]
async fn filters_select_the_events(pool: PgPool) {
    let replica = Replica::start(pool.clone()).await;
    let (id, other) = (replica.submit().await, replica.submit().await);
    let named =
        r#"UPDATE submissions SET owner = 'alice', namespace = 'team', labels = '{"team": "data", "tier": "1"}'"#;
    sqlx::query(sqlx::AssertSqlSafe(format!("{named} WHERE id = '{id}'"))).execute(&pool).await.unwrap();
    write_events(&pool, &other, 2, 1).await;
    write_events(&pool, &id, 1, 1).await;
    // Events that were read before the names were set are cached without them.
    let replica = Replica::start(pool.clone()).await;
    assert_eq!(all_numbered(&pool).await, 5);
    let at = replica.address;
    timeout(Duration::from_secs(20), numbers(at, "/v1/events?after=4&waitSeconds=60")).await.unwrap();
    for filter in ["owner=alice", "namespace=team", "label=team=data&label=tier=1", &format!("submission={id}")] {
        assert_eq!(numbers(at, &format!("/v1/events?after=0&{filter}")).await, (vec![1, 5], "5".into()), "{filter}");
    }
    for filter in ["owner=alic", "namespace=teams", "label=team=data&label=tier=2", "owner=alice&namespace=default"] {
        assert_eq!(numbers(at, &format!("/v1/events?after=0&{filter}")).await, (vec![], "5".into()), "{filter}");
    }
    for wrong in ["label=team", "submission=x", "limit=0", "limit=501", "since=1", "owner=a&owner=b"] {
        assert_eq!(code(at, &format!("/v1/events?{wrong}")).await, (400, "invalid-parameter".to_owned()), "{wrong}");
    }
}

#[sqlx::test]
async fn a_cursor_that_is_invalid_or_expired_is_refused(pool: PgPool) {
    let replica = Replica::start(pool.clone()).await;
    let at = replica.address;
    let (gone, kept) = (replica.submit().await, replica.submit().await);
    assert_eq!(all_numbered(&pool).await, 2);
    for after in ["3", "-1", "x", ""] {
        let target = format!("/v1/events?after={after}");
        assert_eq!(code(at, &target).await, (400, "invalid-cursor".to_owned()), "{after}");
    }
    for last in [3, -1] {
        let refused = Stream::open(at, "/v1/events", Some(last)).await.err().unwrap();
        assert_eq!((refused.status, &refused.body["code"]), (400, &"invalid-cursor".into()));
    }
    sqlx::query("DELETE FROM submissions WHERE id = $1").bind(gone.as_str()).execute(&pool).await.unwrap();
    // The first replica still has the event in memory.
    let later = Replica::start(pool.clone()).await;
    timeout(Duration::from_secs(20), numbers(later.address, "/v1/events?after=1&waitSeconds=60")).await.unwrap();
    assert_eq!(code(later.address, "/v1/events?after=0").await, (410, "cursor-expired".to_owned()));
    assert_eq!(numbers(later.address, "/v1/events?after=1").await.0, [2]);
    sqlx::query("DELETE FROM submissions WHERE id = $1").bind(kept.as_str()).execute(&pool).await.unwrap();
    let later = Replica::start(pool.clone()).await;
    assert_eq!(numbers(later.address, "/v1/events?after=2").await, (vec![], "2".into()));
}

#[sqlx::test]
async fn a_subscriber_above_the_limit_is_answered_429(pool: PgPool) {
    let replica = Replica::with(pool.clone(), 2).await;
    let first = Stream::open(replica.address, "/v1/events", None).await.ok().unwrap();
    let _second = Stream::open(replica.address, "/v1/events", None).await.ok().unwrap();
    let refused = Stream::open(replica.address, "/v1/events", None).await.err().unwrap();
    assert_eq!((refused.status, &refused.body["code"]), (429, &"too-many-requests".into()));
    drop(first);
    let deadline = tokio::time::Instant::now() + Duration::from_secs(10);
    while Stream::open(replica.address, "/v1/events", None).await.is_err() {
        assert!(tokio::time::Instant::now() < deadline, "a slot is free after its subscriber left");
    }
}

/// A standby that became the primary may lack events that were sent: no stream continues as if nothing had happened.
#[sqlx::test]
async fn streams_end_when_the_database_goes_back_in_time(pool: PgPool) {
    let replica = Replica::start(pool.clone()).await;
    let id = replica.submit().await;
    write_events(&pool, &id, 2, 1).await;
    assert_eq!(all_numbered(&pool).await, 3);
    let mut stream = Stream::open(replica.address, "/v1/events?after=0", None).await.ok().unwrap();
    for _ in 0..3 {
        stream.next().await.unwrap();
    }
    sqlx::query("DELETE FROM submission_events WHERE sequence > 1").execute(&pool).await.unwrap();
    sqlx::query("UPDATE event_sequence SET last = 1").execute(&pool).await.unwrap();
    assert!(timeout(Duration::from_secs(20), stream.next()).await.unwrap().is_none());
    assert_eq!(code(replica.address, "/v1/events?after=3").await, (400, "invalid-cursor".to_owned()));
}
