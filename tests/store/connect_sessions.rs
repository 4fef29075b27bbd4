//! When sessions of Spark Connect are idle, on a real Postgres.

use std::time::Duration;

use sparkgate::{
    store::{NewConnectSession, OpenedSession, Store},
    submission::SubmissionId,
};
use sqlx::PgPool;

use crate::attempts::with;

/// Opens a session that may be idle for a minute, whose driver has run for `running`.
async fn session(pool: &PgPool, store: &Store, name: &str, running: &str) -> SubmissionId {
    let started = format!("state = 'RUNNING', started_at = clock_timestamp() - interval '{running}'");
    let id = with(pool, store, &started).await;
    let new = NewConnectSession {
        id: &id,
        tenant: "default",
        principal: "anonymous:anonymous",
        name,
        is_shared: false,
        idle_timeout: Duration::from_secs(60),
        most: (10, 10),
    };
    assert_eq!(store.open_connect_session(&new).await.unwrap(), OpenedSession::New);
    id
}

#[sqlx::test]
async fn the_time_without_a_request_begins_when_the_server_is_reached(pool: PgPool) {
    let store = Store::new(pool.clone());
    let starting = session(&pool, &store, "starting", "9 minutes").await;
    let unreached = session(&pool, &store, "unreached", "11 minutes").await;
    let ready = session(&pool, &store, "ready", "9 minutes").await;
    store.note_connect_ready(&ready).await.unwrap();
    assert_eq!(store.idle_connect_sessions(None).await.unwrap(), std::slice::from_ref(&unreached));
    let past = "UPDATE connect_sessions SET ready_at = ready_at - interval '61 seconds'";
    sqlx::query(past).execute(&pool).await.unwrap();
    let mut idle = store.idle_connect_sessions(None).await.unwrap();
    idle.sort_unstable_by_key(|id| id.as_str().to_owned());
    assert_eq!(idle, [unreached, ready.clone()]);
    store.note_connect_use(&ready).await.unwrap();
    let idle = store.idle_connect_sessions(None).await.unwrap();
    assert!(!idle.contains(&ready) && !idle.contains(&starting), "{idle:?}");
}
