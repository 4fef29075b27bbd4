//! Many clients, each of which gets every event exactly once.

use std::{net::SocketAddr, time::Duration};

use futures::{StreamExt, future::join_all, stream};
use sqlx::PgPool;
use tokio::{sync::watch, time::timeout};

use crate::events::{
    client::Stream,
    world::{Replica, write_events},
};

const FOLLOWERS: usize = 500;
/// Submissions before and after the restart; each of them is queued and killed.
const HALF: usize = 100;
const EVENTS: usize = 4 * HALF;

/// Follows until it has received all events. Disconnects once by itself after `patience` events. Returns the number of
/// connections.
async fn follow(mut address: watch::Receiver<SocketAddr>, patience: usize) -> usize {
    let (mut last, mut seen, mut connections) = (0, 0, 0);
    while seen < EVENTS {
        let here = *address.borrow_and_update();
        let Ok(mut stream) = Stream::open(here, "/v1/events?after=0", Some(last).filter(|last| *last > 0)).await else {
            // The replica is just shutting down.
            address.changed().await.unwrap();
            continue;
        };
        connections += 1;
        let mut first = true;
        while let Some(event) = stream.next().await {
            assert_eq!(event.id, last + 1, "after {seen} events, {connections} connections, first: {first}");
            (last, seen, first) = (event.id, seen + 1, false);
            if seen == EVENTS || (connections == 1 && seen >= patience) {
                break;
            }
        }
        let ended_by_itself = seen < EVENTS && !(connections == 1 && seen >= patience);
        if ended_by_itself && *address.borrow() == here {
            address.changed().await.unwrap();
        }
    }
    connections
}

async fn submit_and_kill(replica: &Replica) {
    let one = async |_| {
        let id = replica.submit().await;
        assert!(replica.service.submissions.kill(&replica.service.anonymous(), &id).await.unwrap());
    };
    stream::iter(0..HALF).for_each_concurrent(4, one).await;
}

#[sqlx::test]
async fn five_hundred_clients_get_each_event_once_across_reconnects_and_a_restart(pool: PgPool) {
    let first = Replica::start(pool.clone()).await;
    let (tell, address) = watch::channel(first.address);
    let followers: Vec<_> =
        (0..FOLLOWERS).map(|n| tokio::spawn(follow(address.clone(), 1 + n * (2 * HALF) / FOLLOWERS))).collect();
    submit_and_kill(&first).await;
    first.end().await;
    let second = Replica::start(pool.clone()).await;
    tell.send(second.address).unwrap();
    submit_and_kill(&second).await;
    let connections = timeout(Duration::from_secs(60), join_all(followers)).await.unwrap();
    for connections in connections {
        let connections = connections.unwrap();
        assert!(connections >= 2, "each has reconnected");
    }
    second.end().await;
}

#[sqlx::test]
async fn a_change_made_by_another_replica_is_streamed(pool: PgPool) {
    let (here, there) = (Replica::start(pool.clone()).await, Replica::start(pool.clone()).await);
    let mut stream = Stream::open(here.address, "/v1/events", None).await.ok().unwrap();
    let id = there.submit().await;
    let event = timeout(Duration::from_secs(20), stream.next()).await.unwrap().unwrap().json();
    assert_eq!((&event["submissionId"], &event["state"]), (&id.as_str().into(), &"QUEUED".into()));
    assert!(event.get("previous").is_none() && event.get("message").is_none(), "{event}");
    there.service.submissions.kill(&there.service.anonymous(), &id).await.unwrap();
    let event = timeout(Duration::from_secs(20), stream.next()).await.unwrap().unwrap().json();
    assert_eq!((&event["state"], &event["previous"]), (&"KILLED".into(), &"QUEUED".into()));
    assert_eq!((&event["reason"], &event["sequence"]), (&"Killed".into(), &2.into()));
    let at = event["at"].as_str().unwrap();
    assert!(at.len() == "2026-11-21T13:40:05.123Z".len() && at.ends_with('Z'), "{at}");
}

/// A client that reconnects without having received an event resumes where its first stream began.
#[sqlx::test]
async fn a_stream_begins_with_its_cursor(pool: PgPool) {
    let replica = Replica::start(pool.clone()).await;
    let id = replica.submit().await;
    let other = replica.submit().await;
    let target = format!("/v1/events?submission={other}");
    let mut stream = Stream::open(replica.address, &target, None).await.ok().unwrap();
    let begin = timeout(Duration::from_secs(20), stream.begins_at()).await.unwrap();
    write_events(&pool, &id, 3, 1).await;
    write_events(&pool, &other, 1, 1).await;
    let event = timeout(Duration::from_secs(20), stream.next()).await.unwrap().unwrap();
    assert_eq!(event.json()["submissionId"], other.as_str());
    drop(stream);
    let mut again = Stream::open(replica.address, &target, Some(begin)).await.ok().unwrap();
    assert_eq!(again.next().await.unwrap().id, event.id);
    replica.end().await;
}
