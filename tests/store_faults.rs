//! The store while others hold its rows, backends are killed, and the server takes no writes.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use sparkgate::{
    store::Error,
    submission::{Placement, Progress, State},
};
use sqlx::PgPool;

mod store_support;

use store_support::{accept, claim_one, connect, session, state};

#[sqlx::test]
async fn a_statement_that_waits_for_a_locked_row_is_given_up_by_the_server(pool: PgPool) {
    let store = connect(&pool).await;
    let (locked, free) = (accept(&store, "a").await, accept(&store, "b").await);
    let mut other = pool.acquire().await.unwrap();
    lock(&mut other, locked.as_str()).await;
    let error = store.request_kill(&locked).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }) && error.is_contention(), "{error:?}");
    let error = store.advance(&locked, 1, None, &Progress::Running, &Placement::default()).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }) && error.is_contention(), "{error:?}");
    assert!(store.request_kill(&free).await.unwrap(), "the database is there for the others");
    let waiting =
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    assert_eq!(sqlx::query_scalar::<_, i64>(waiting).fetch_one(&pool).await.unwrap(), 0, "no backend waits on");

    sqlx::raw_sql("ROLLBACK").execute(&mut *other).await.unwrap();
    assert_eq!(state(&store, &locked).await, State::Queued);
    assert!(store.request_kill(&locked).await.unwrap());
    store.close().await;
    let error = store.request_kill(&free).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }) && !error.is_contention(), "{error:?}");
}

/// Every pool has both limits, and they are below the ten seconds of the caller.
#[sqlx::test]
async fn every_connection_has_the_limits_of_its_pool(pool: PgPool) {
    // What a role or a database is set to doesn't count.
    let store = connect(&pool).await;
    let session = session(&store).await;
    accept(&store, "a").await;
    claim_one(&store, session).await;
    store.ping().await.unwrap();
    // What a backend has set isn't seen from outside; that a lock is given up is, for each pool.
    let mut other = pool.acquire().await.unwrap();
    let tables = "BEGIN; LOCK submissions, leases, manifests, submission_events, event_sequence";
    sqlx::raw_sql(tables).execute(&mut *other).await.unwrap();
    let drawn = store.draw().await.unwrap();
    let (request, accepted, worker, lease) = tokio::join!(
        store.last_number(),
        store.accept(store_support::new(drawn, "b")),
        store.live(),
        store.renew_leases(session, store_support::LEASE)
    );
    for error in [request.unwrap_err(), accepted.unwrap_err(), worker.unwrap_err(), lease.unwrap_err()] {
        assert!(error.is_contention(), "{error:?}");
    }
    sqlx::raw_sql("ROLLBACK").execute(&mut *other).await.unwrap();
    assert_eq!(store.live().await.unwrap(), []);
}

async fn lock(connection: &mut sqlx::PgConnection, id: &str) {
    sqlx::raw_sql("BEGIN").execute(&mut *connection).await.unwrap();
    let row = sqlx::query("SELECT FROM submissions WHERE id = $1 FOR UPDATE").bind(id);
    assert_eq!(row.fetch_all(connection).await.unwrap().len(), 1);
}
