//! The store with wrong clocks: the database's clock jumps in both directions, and nodes have clocks of their own.

use std::time::Duration;

use chrono::{TimeDelta, Utc};
use sparkgate::{
    store::replica,
    submission::{Outcome, Placement, State, StateChange, SubmissionId},
};
use sqlx::PgPool;

use crate::support::{LEASE, accept, claim_one, connect, session, state};

const HOUR: Duration = Duration::from_secs(3600);

/// The clock of a database, as new connections see it. The functions of this schema take precedence over the built-in
/// ones, because the search path names `pg_catalog` after it.
struct Clock(PgPool);

impl Clock {
    async fn of(pool: &PgPool) -> Self {
        let functions = ["clock_timestamp", "now", "statement_timestamp"].map(|name| {
            let kind = if name == "clock_timestamp" { "VOLATILE" } else { "STABLE" };
            format!(
                "CREATE FUNCTION shifted.{name}() RETURNS timestamptz LANGUAGE sql {kind} AS
                 'SELECT pg_catalog.{name}() + (SELECT ahead FROM shifted.clock)';"
            )
        });
        let set = format!(
            "CREATE SCHEMA shifted; CREATE TABLE shifted.clock AS SELECT interval '0' AS ahead; {}
             DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = shifted, public, pg_catalog', current_database());
             END $$",
            functions.concat()
        );
        sqlx::raw_sql(sqlx::AssertSqlSafe(set)).execute(pool).await.unwrap();
        Self(pool.clone())
    }

    async fn jump(&self, ahead: &str) {
        let set = sqlx::query("UPDATE shifted.clock SET ahead = $1::text::interval").bind(ahead);
        set.execute(&self.0).await.unwrap();
    }
}

#[sqlx::test]
async fn a_lease_of_a_dead_replica_expires_when_the_clock_goes_back(pool: PgPool) {
    let clock = Clock::of(&pool).await;
    let store = connect(&pool).await;
    let dead = session(&store).await;
    let id = accept(&store, "a").await;
    assert!(store.acquire_lease("watch/*", dead, LEASE).await.unwrap());
    let claimed = claim_one(&store, dead).await;

    clock.jump("-1 hour").await;
    assert!(store.now().await.unwrap() < Utc::now() - TimeDelta::minutes(59), "the clock is shifted");
    let new = session(&store).await;
    assert!(store.acquire_lease("watch/*", new, LEASE).await.unwrap(), "the lease of the dead replica isn't renewed");
    assert_eq!(claim_one(&store, new).await.epoch, claimed.epoch + 1, "and its session has lost the claim");
    assert!(store.renew_leases(dead, LEASE).await.unwrap().is_empty(), "a lease that another replica may have is lost");
    assert!(!store.acquire_lease("watch/*", dead, LEASE).await.unwrap());
    assert_eq!(store.renew_leases(new, LEASE).await.unwrap().len(), 2);

    store.end_leases(new).await.unwrap();
    assert!(store.acquire_lease(&replica(dead), dead, LEASE).await.unwrap());
    assert_eq!(claim_one(&store, dead).await.id, id);
}

#[sqlx::test]
async fn a_submission_that_was_put_off_is_due_when_the_clock_goes_back(pool: PgPool) {
    let clock = Clock::of(&pool).await;
    let store = connect(&pool).await;
    let id = accept(&store, "a").await;
    let claimed = claim_one(&store, session(&store).await).await;
    store.retry_later(&claimed, HOUR, Some((None, "later"))).await.unwrap();
    assert!(store.claim(session(&store).await, 1, &[], &[]).await.unwrap().is_empty(), "it waits");
    clock.jump("-1 hour").await;
    assert_eq!(claim_one(&store, session(&store).await).await.id, id);

    let ended = "UPDATE submissions SET state = 'FINISHED', finished_at = now() - interval '2 days', pod_uid = 'u'";
    sqlx::query(ended).execute(&pool).await.unwrap();
    store.put_clean_up_off(&[id.as_str()], HOUR).await.unwrap();
    assert_eq!(store.ended_pods(HOUR, 10, None).await.unwrap(), []);
    clock.jump("-2 hours").await;
    assert_eq!(store.ended_pods(HOUR, 10, None).await.unwrap().len(), 1);
}

#[sqlx::test]
async fn nothing_is_overdue_or_old_while_the_clock_is_not_trusted(pool: PgPool) {
    let clock = Clock::of(&pool).await;
    let store = connect(&pool).await;
    let (waits, over) = (accept(&store, "a").await, accept(&store, "b").await);
    set(&pool, &waits, "start_timeout = 3600, deadline = now() + interval '1 hour'").await;
    set(&pool, &over, "state = 'FINISHED', finished_at = now(), pod_uid = 'u'").await;
    clock.jump("2 days").await;
    let believed_until = Some(Utc::now() + TimeDelta::minutes(1));
    assert_eq!(store.kill_overdue(10, believed_until).await.unwrap().killed, 0);
    assert_eq!(store.ended_pods(HOUR, 10, believed_until).await.unwrap(), []);
    set(&pool, &over, "pod_uid = NULL").await;
    assert_eq!(store.delete_ended(HOUR, 10, believed_until).await.unwrap(), 0);

    // The difference was confirmed.
    let believed_until = Some(Utc::now() + TimeDelta::days(2) + TimeDelta::minutes(1));
    assert_eq!(store.kill_overdue(10, believed_until).await.unwrap().killed, 1);
    assert_eq!(store.delete_ended(HOUR, 10, believed_until).await.unwrap(), 1);
}

#[sqlx::test]
async fn a_time_to_run_does_not_count_by_the_clock_of_a_node(pool: PgPool) {
    let store = connect(&pool).await;
    for (pod, minutes) in [("a", -11), ("b", 600)] {
        let id = accept(&store, pod).await;
        set(&pool, &id, "run_timeout = 600").await;
        let claimed = claim_one(&store, session(&store).await).await;
        let mut placement = Placement { pod_uid: Some(pod.to_owned()), ..Placement::default() };
        assert!(store.record_pod(&id, 1, claimed.epoch, pod).await.unwrap().is_some());
        assert!(store.advance(&id, 1, Some(claimed.epoch), &StateChange::Launched, &placement).await.unwrap());
        placement.started_at = Some(Utc::now() + TimeDelta::minutes(minutes));
        assert!(store.advance(&id, 1, None, &StateChange::Running, &placement).await.unwrap());
        let row: (bool, bool) = sqlx::query_as(
            "SELECT started_at BETWEEN queued_at AND now(), deadline BETWEEN started_at AND now() + interval '600 s'
             FROM submissions WHERE id = $1",
        )
        .bind(id.as_str())
        .fetch_one(&pool)
        .await
        .unwrap();
        assert_eq!(row, (true, true), "{minutes}");
        assert_eq!(store.kill_overdue(10, None).await.unwrap().killed, 0, "{minutes}");

        // An earlier release stored the node's time.
        let said = format!("started_at = now() + interval '{minutes} min', deadline = now()");
        set(&pool, &id, &said).await;
        assert_eq!(store.kill_overdue(10, None).await.unwrap().killed, 0, "{minutes}");
        assert_eq!(state(&store, &id).await, State::Running);
    }
}

#[sqlx::test]
async fn an_attempt_is_kept_with_a_start_that_can_be_true(pool: PgPool) {
    let store = connect(&pool).await;
    let id = accept(&store, "a").await;
    set(&pool, &id, "max_retries_infrastructure = 1").await;
    let placement = Placement { started_at: Some(Utc::now() - TimeDelta::days(1)), ..Placement::default() };
    let end = StateChange::Ended(Outcome::new(State::Lost, "Vanished", "gone"));
    claim_one(&store, session(&store).await).await;
    assert!(store.advance(&id, 1, None, &end, &placement).await.unwrap());
    let attempts = store.all().attempts(&id).await.unwrap();
    assert_eq!(attempts.len(), 2, "another attempt follows");
    assert_eq!(attempts[0].started_at, Some(attempts[0].queued_at));
    assert!(Some(attempts[1].queued_at) >= attempts[0].finished_at, "the next one is queued at its end");
}

#[sqlx::test]
async fn a_start_in_the_second_in_which_it_was_queued_is_after_that(pool: PgPool) {
    let store = connect(&pool).await;
    let id = accept(&store, "a").await;
    set(&pool, &id, "queued_at = date_trunc('second', now()) - interval '9.7 s'").await;
    let second = "SELECT date_trunc('second', queued_at) FROM submissions";
    let started_at = Some(sqlx::query_scalar(second).fetch_one(&pool).await.unwrap());
    claim_one(&store, session(&store).await).await;
    let placement = Placement { started_at, ..Placement::default() };
    assert!(store.advance(&id, 1, None, &StateChange::Running, &placement).await.unwrap());
    let waited = "SELECT started_at > queued_at AND started_at <= queued_at + interval '1 s' FROM submissions";
    assert!(sqlx::query_scalar::<_, bool>(waited).fetch_one(&pool).await.unwrap());
}

async fn set(pool: &PgPool, id: &SubmissionId, values: &str) {
    let statement = format!("UPDATE submissions SET {values} WHERE id = $1");
    sqlx::query(sqlx::AssertSqlSafe(statement)).bind(id.as_str()).execute(pool).await.unwrap();
}
