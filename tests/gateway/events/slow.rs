//! A client that doesn't read.

use std::time::Duration;

use sqlx::PgPool;
use tokio::time::timeout;

use crate::events::{
    client::Stream,
    world::{Replica, all_numbered, write_events},
};

/// More events than the ring buffer has.
const EVENTS: i32 = 6000;
const LIMIT: Duration = Duration::from_secs(300);

/// Reads up to `end`; returns the number of events, each exactly once.
async fn read_to(stream: &mut Stream, end: i64) -> i64 {
    let mut last = 0;
    while last < end {
        let Some(event) = timeout(LIMIT, stream.next()).await.unwrap() else { break };
        assert_eq!(event.id, last + 1);
        last = event.id;
    }
    last
}

#[sqlx::test]
async fn a_slow_subscriber_delays_no_other_and_has_no_queue(pool: PgPool) {
    let replica = Replica::start(pool.clone()).await;
    let id = replica.submit().await;
    let all = "/v1/events?after=0";
    let mut still = Vec::new();
    for _ in 0..3 {
        still.push(Stream::with_buffer(replica.address, all, None, Some(4 << 10)).await.ok().unwrap());
    }
    let mut others = Vec::new();
    for _ in 0..3 {
        others.push(Stream::open(replica.address, all, None).await.ok().unwrap());
    }
    write_events(&pool, &id, EVENTS, 1000).await;
    let end = all_numbered(&pool).await;
    let read = futures::future::join_all(others.iter_mut().map(|other| read_to(other, end))).await;
    assert_eq!(read, [end; 3]);

    // The events that it reads now weren't queued for it: they come from the database.
    assert_eq!(read_to(&mut still[0], end).await, end);
    sqlx::query("DELETE FROM submissions").execute(&pool).await.unwrap();
    let read = read_to(&mut still[1], end).await;
    assert!(read > 0 && read < end / 2, "{read} of {end} had been buffered");
    let again = Stream::open(replica.address, all, still[1].last_id).await.err().unwrap();
    assert_eq!((again.status, &again.body["code"]), (410, &"cursor-expired".into()), "{}", again.body);
    // The third client still doesn't read.
    replica.end().await;
}
