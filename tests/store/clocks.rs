//! The store with wrong clocks: the database's clock jumps in both directions, and nodes have clocks of their own.

use std::{collections::BTreeMap, time::Duration};

use chrono::{Days, TimeDelta, Utc};
use sparkgate::{
    store::{Prices, Settled, TriedDelivery, UsageFilter, replica},
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
    let names = [replica(dead), replica(new), "watch/*".to_owned()];
    let renewed = store.renew_leases(dead, &names, LEASE).await.unwrap();
    assert!(renewed.names.is_empty(), "a lease that another replica may have is lost");
    assert!(!store.acquire_lease("watch/*", dead, LEASE).await.unwrap());
    assert_eq!(store.renew_leases(new, &names, LEASE).await.unwrap().names.len(), 2);

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
    assert_eq!(store.ended_pods(HOUR, 10, &[], None).await.unwrap(), []);
    clock.jump("-2 hours").await;
    assert_eq!(store.ended_pods(HOUR, 10, &[], None).await.unwrap().len(), 1);
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
    assert_eq!(store.ended_pods(HOUR, 10, &[], believed_until).await.unwrap(), []);
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

#[sqlx::test]
async fn usage_is_kept_of_what_ends_after_a_clock_that_was_ahead(pool: PgPool) {
    let clock = Clock::of(&pool).await;
    let store = connect(&pool).await;
    clock.jump("3 hours").await;
    store.settle_usage(10, None).await.unwrap();
    clock.jump("0").await;
    let id = accept(&store, "a").await;
    let ended = |ago: &str| {
        format!(
            "state = 'FINISHED', pod_millicores = 1000, pod_memory_bytes = 0, created_at = now() - interval '1 day',
             pod_since = now() - interval '{ago}' - interval '30 s', pod_ended_at = now() - interval '{ago}',
             finished_at = now() - interval '{ago}'"
        )
    };
    set(&pool, &id, &ended("1 s")).await;
    let today = Utc::now().date_naive();
    let filter = UsageFilter {
        since: today - Days::new(3),
        until: today + Days::new(3),
        tenant: None,
        owner: None,
        namespace: None,
        labels: BTreeMap::new(),
    };
    let used = async || {
        let report = store.all().usage(&filter, &[], &Prices::default(), 10).await.unwrap();
        report.total.total.core_seconds
    };
    assert_eq!(used().await, "30");
    assert_eq!(store.settle_usage(10, None).await.unwrap(), 0, "it ended just now");
    set(&pool, &id, &ended("2 hours")).await;
    assert_eq!(store.settle_usage(10, None).await.unwrap(), 1);
    assert_eq!((store.settle_usage(10, None).await.unwrap(), used().await), (0, "30".to_owned()), "once");
    assert_eq!(store.delete_ended(HOUR, 10, None).await.unwrap(), 1);
    assert_eq!(used().await, "30");
}

/// The release before settles by time: beside this one, it would settle the same submissions again.
#[sqlx::test]
async fn usage_is_settled_by_marks_alone(pool: PgPool) {
    let store = connect(&pool).await;
    accept(&store, "a").await;
    let until = "SELECT until FROM usage_settled";
    let before: chrono::DateTime<Utc> = sqlx::query_scalar(until).fetch_one(&pool).await.unwrap();
    let by_time = "UPDATE usage_settled SET until = now(), version = version + 1 RETURNING true";
    assert_eq!(sqlx::query_scalar::<_, bool>(by_time).fetch_optional(&pool).await.unwrap(), None);
    let after: chrono::DateTime<Utc> = sqlx::query_scalar(until).fetch_one(&pool).await.unwrap();
    assert_eq!(before, after);
    store.settle_usage(10, None).await.unwrap();
    let after: chrono::DateTime<Utc> = sqlx::query_scalar(until).fetch_one(&pool).await.unwrap();
    assert!(after > before, "reports of the release before add what isn't settled");
}

#[sqlx::test]
async fn timeouts_begin_when_a_clock_that_was_ahead_goes_back(pool: PgPool) {
    let clock = Clock::of(&pool).await;
    let store = connect(&pool).await;
    clock.jump("3 hours").await;
    let id = accept(&store, "a").await;
    set(&pool, &id, "run_timeout = 120").await;
    let claimed = claim_one(&store, session(&store).await).await;
    let mut placement = Placement { pod_uid: Some("a".to_owned()), ..Placement::default() };
    assert!(store.record_pod(&id, 1, claimed.epoch, "a").await.unwrap().is_some());
    assert!(store.advance(&id, 1, Some(claimed.epoch), &StateChange::Launched, &placement).await.unwrap());
    placement.started_at = Some(Utc::now());
    assert!(store.advance(&id, 1, None, &StateChange::Running, &placement).await.unwrap());

    clock.jump("0").await;
    assert_eq!(store.bring_deadlines_back(10, Utc::now(), None).await.unwrap(), 1);
    assert_eq!(store.bring_deadlines_back(10, Utc::now(), None).await.unwrap(), 0);
    let row = "SELECT deadline BETWEEN now() AND now() + interval '120 s' AND started_at <= now() FROM submissions";
    assert!(sqlx::query_scalar::<_, bool>(row).fetch_one(&pool).await.unwrap());
    let passed = "started_at = started_at - interval '3 min', deadline = deadline - interval '3 min'";
    set(&pool, &id, passed).await;
    assert_eq!(store.kill_overdue(10, None).await.unwrap().killed, 1);

    let other = accept(&store, "b").await;
    set(&pool, &other, "start_timeout = 7200, deadline = now() + interval '1 hour'").await;
    clock.jump("-3 hours").await;
    assert_eq!(store.bring_deadlines_back(10, Utc::now(), None).await.unwrap(), 0, "this clock is behind");
}

#[sqlx::test]
async fn a_clock_that_jumps_ends_no_delivery_and_delays_none(pool: PgPool) {
    let clock = Clock::of(&pool).await;
    let store = connect(&pool).await;
    let rows =
        "INSERT INTO webhooks (id, tenant, principal, url, format, own, submission_id, states, labels, secrets, since)
            VALUES ('w', 'default', 'p', 'https://w.example', 'cloudevents', false, 'driver-1', '{}', '{}', '', 0);
        INSERT INTO webhook_deliveries (webhook_id, submission_id, sequence, event) VALUES ('w', 'driver-1', 1, '{}');
        INSERT INTO files (tenant, sha256, size, object, created_by) VALUES ('default', 'a', 1, 'o', 'p');
        INSERT INTO file_uses (submission_id, tenant, sha256) VALUES ('driver-2', 'default', 'a')";
    sqlx::raw_sql(rows).execute(&pool).await.unwrap();
    let id: i64 = sqlx::query_scalar("SELECT id FROM webhook_deliveries").fetch_one(&pool).await.unwrap();
    clock.jump("3 days").await;
    let pause = Duration::from_secs(1);
    let tried = TriedDelivery { http_status: None, error: "refused".to_owned(), pause, is_final: false };
    assert_eq!(store.not_delivered(id, &tried, HOUR * 24).await.unwrap(), Settled::Pending);
    assert_eq!(store.release_files(10).await.unwrap(), 0, "the submission is being accepted");

    clock.jump("0").await;
    store.clean_up_webhooks(10).await.unwrap();
    let due = "SELECT next_try_at <= now() FROM webhook_deliveries";
    assert!(sqlx::query_scalar::<_, bool>(due).fetch_one(&pool).await.unwrap());
}

async fn set(pool: &PgPool, id: &SubmissionId, values: &str) {
    let statement = format!("UPDATE submissions SET {values} WHERE id = $1");
    sqlx::query(sqlx::AssertSqlSafe(statement)).bind(id.as_str()).execute(pool).await.unwrap();
}
