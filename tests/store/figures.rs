//! What metrics say of the rows: how many live, and how submissions ended. Each test has tenants of its own, because the counters
//! are those of the process.

use sparkgate::{
    metrics::{metrics, text},
    store::{LiveCount, NewSubmission, Scope, Store},
    submission::{Outcome, Placement, State, StateChange, SubmissionId},
};
use sqlx::PgPool;

use crate::support::{draw, new};

async fn accept(store: &Store, pool: &PgPool, tenant: &str, columns: &str) -> SubmissionId {
    let drawn = draw(store).await;
    let id = drawn.id.clone();
    store.accept(NewSubmission { tenant: tenant.to_owned(), ..new(drawn, "pod-1") }).await.unwrap();
    let set = sqlx::AssertSqlSafe(format!("UPDATE submissions SET {columns} WHERE id = $1"));
    sqlx::query(set).bind(id.as_str()).execute(pool).await.unwrap();
    id
}

fn of(uid: &str) -> Placement {
    Placement { pod_uid: Some(uid.to_owned()), ..Placement::default() }
}

/// Returns how many submissions of a tenant ended so.
fn ended(tenant: &str, state: State, class: &'static str, code: &'static str) -> u64 {
    metrics().ended.with([text(tenant), state.as_str().into(), class.into(), code.into()]).get()
}

#[sqlx::test]
async fn live_submissions_are_counted_by_tenant_and_state_with_the_oldest_that_waits(pool: PgPool) {
    let store = Store::new(pool.clone());
    let an_hour_ago = "queued_at = now() - interval '1 hour'";
    accept(&store, &pool, "red", an_hour_ago).await;
    accept(&store, &pool, "red", "queued_at = now()").await;
    let running = accept(&store, &pool, "red", an_hour_ago).await;
    assert!(store.advance(&running, 1, None, &StateChange::Running, &of("u")).await.unwrap());
    let finished = accept(&store, &pool, "blue", an_hour_ago).await;
    let outcome = Outcome { exit_code: Some(0), ..Outcome::new(State::Finished, "Completed", "") };
    assert!(store.advance(&finished, 1, None, &StateChange::Ended(outcome), &of("v")).await.unwrap());
    accept(&store, &pool, "blue", "state = 'KILLING', queued_at = now() - interval '1 hour'").await;

    let mut counts = store.live_counts().await.unwrap();
    counts.sort_by(|one, other| (&one.tenant, &one.state).cmp(&(&other.tenant, &other.state)));
    let oldest: Vec<_> = counts.iter().map(|count| count.oldest.map(|seconds| (seconds / 60.0).round())).collect();
    let counts: Vec<_> =
        counts.iter().map(|LiveCount { tenant, state, count, .. }| (&**tenant, &**state, *count)).collect();
    assert_eq!(counts, [("blue", "KILLING", 1), ("red", "QUEUED", 2), ("red", "RUNNING", 1)]);
    assert_eq!(oldest, [None, Some(60.0), None], "only those without a pod wait");
}

#[sqlx::test]
async fn every_end_is_counted_once(pool: PgPool) {
    let (store, tenant) = (Store::new(pool.clone()), "of the ends");
    let failed = Outcome { exit_code: Some(137), ..Outcome::new(State::Failed, "OOMKilled", "") };
    let id = accept(&store, &pool, tenant, "max_retries_application = 1").await;
    let end = StateChange::Ended(failed);
    assert!(store.advance(&id, 1, None, &end, &of("u")).await.unwrap());
    assert_eq!(metrics().retried.with([text(tenant), "OUT_OF_MEMORY".into()]).get(), 1);
    assert_eq!(ended(tenant, State::Failed, "application", "OUT_OF_MEMORY"), 0, "another attempt follows");
    for _ in 0..2 {
        store.advance(&id, 2, None, &end, &of("v")).await.unwrap();
    }
    assert_eq!(ended(tenant, State::Failed, "application", "OUT_OF_MEMORY"), 1, "a repeated write changes nothing");

    let id = accept(&store, &pool, tenant, "name = 'a'").await;
    for _ in 0..2 {
        store.all().request_kill(&id, &Scope::installation(), None).await.unwrap();
    }
    let cancelled = || ended(tenant, State::Killed, "cancelled", "KILLED_ON_REQUEST");
    assert_eq!(cancelled(), 1);
    let killing = accept(&store, &pool, tenant, "state = 'PENDING', pod_uid = 'w'").await;
    store.all().request_kill(&killing, &Scope::installation(), None).await.unwrap();
    assert_eq!(cancelled(), 1, "it is still being killed");
    for _ in 0..2 {
        accept(&store, &pool, tenant, "name = 'b'").await;
    }
    assert_eq!(store.all().request_kill_of_all(None).await.unwrap(), 2);
    assert_eq!(cancelled(), 3);
    accept(&store, &pool, tenant, "start_timeout = 60, deadline = now() - interval '1 s'").await;
    assert_eq!(store.kill_overdue(10, None).await.unwrap().killed, 1);
    assert_eq!((cancelled(), ended(tenant, State::Killed, "timeout", "START_TIMEOUT")), (3, 1));
}
