//! The store on a real Postgres: accepting, claims, guarded transitions, kills.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use sparkgate::{
    store::{Error, Scope, Store, Task, replica},
    submission::{Outcome, Placement, State, StateChange, SubmissionId},
};
use sqlx::PgPool;
use uuid::Uuid;

use crate::support::{LEASE, accept, connect, session, state};

async fn events(pool: &PgPool, id: &SubmissionId) -> Vec<String> {
    sqlx::query_scalar("SELECT state FROM submission_events WHERE submission_id = $1 ORDER BY id")
        .bind(id.as_str())
        .fetch_all(pool)
        .await
        .unwrap()
}

fn ended(state: State, code: i32) -> StateChange {
    StateChange::Ended(Outcome { exit_code: Some(code), ..Outcome::new(state, "Error", "over") })
}

#[sqlx::test]
async fn an_accepted_submission_has_a_spark_id_and_its_first_event(pool: PgPool) {
    let store = Store::new(pool.clone());
    let first = accept(&store, "a").await;
    let second = accept(&store, "b").await;
    assert!(first.as_str().ends_with("-0000") && second.as_str().ends_with("-0001"), "{first} {second}");
    assert_eq!(first.as_str().len(), "driver-20260101000000-0000".len());
    assert_eq!(events(&pool, &first).await, ["QUEUED"]);
    sqlx::query("SELECT setval('submission_number', 123455)").execute(&pool).await.unwrap();
    // Another store, because this one may have a preallocated id.
    assert!(accept(&Store::new(pool), "c").await.as_str().ends_with("-123456"));
}

#[sqlx::test]
async fn a_claim_is_exclusive_until_it_runs_out(pool: PgPool) {
    let store = Store::new(pool.clone());
    let (one, two) = (session(&store).await, session(&store).await);
    let id = accept(&store, "a").await;
    assert!(store.claim(Uuid::new_v4(), 10, &[], &[]).await.unwrap().is_empty(), "without a lease nothing is claimed");
    let claimed = store.claim(one, 10, &[], &[]).await.unwrap().remove(0);
    assert_eq!((&claimed.id, claimed.task, claimed.manifest.as_deref()), (&id, Task::Launch, Some(r#"{"pod":1}"#)));
    assert_eq!(state(&store, &id).await, State::Launching);
    assert!(store.claim(two, 10, &[], &[]).await.unwrap().is_empty());
    sqlx::query("DELETE FROM leases WHERE holder = $1").bind(one).execute(&pool).await.unwrap();
    let unseen = store.claim(two, 10, &[], &[]).await.unwrap();
    assert!(unseen.is_empty(), "the lease of its holder may be younger than the statement");
    assert!(store.acquire_lease(&replica(one), one, LEASE).await.unwrap());

    let again = store.claim(one, 10, &[], &[]).await.unwrap().remove(0);
    assert_eq!(again.epoch, claimed.epoch + 1, "the answer to the first claim may have been lost");
    assert!(store.claim(one, 10, &[], std::slice::from_ref(&id)).await.unwrap().is_empty());

    store.end_leases(one).await.unwrap();
    let taken_over = store.claim(two, 10, &[], &[]).await.unwrap().remove(0);
    assert_eq!(taken_over.epoch, claimed.epoch + 2);
    assert_eq!(events(&pool, &id).await, ["QUEUED", "LAUNCHING"]);

    // All later writes of the first claim are too late.
    store.release(&claimed).await.unwrap();
    store.retry_later(&claimed, LEASE, Some((None, "late"))).await.unwrap();
    assert!(store.record_pod(&id, 1, claimed.epoch, "u").await.unwrap().is_none());
    let end = ended(State::Error, 1);
    assert!(!store.advance(&id, 1, Some(claimed.epoch), &end, &Placement::default()).await.unwrap());
    assert!(store.claim(one, 10, &[], &[]).await.unwrap().is_empty());
    assert_eq!(store.all().find(&id).await.unwrap().unwrap().message, None);
    assert!(store.record_pod(&id, 1, taken_over.epoch, "u").await.unwrap().is_some());
}

#[sqlx::test]
async fn claims_that_a_session_does_not_know_of_are_given_back(pool: PgPool) {
    let store = Store::new(pool.clone());
    let (one, two) = (session(&store).await, session(&store).await);
    let (unknown, known) = (accept(&store, "a").await, accept(&store, "b").await);
    assert_eq!(store.claim(one, 10, &[], &[]).await.unwrap().len(), 2);
    store.give_back_unknown(two, &[]).await.unwrap();
    assert!(store.claim(two, 10, &[], &[]).await.unwrap().is_empty(), "they are another session's");
    store.give_back_unknown(one, std::slice::from_ref(&known)).await.unwrap();
    let claimed = store.claim(two, 10, &[], &[]).await.unwrap();
    assert_eq!(claimed.iter().map(|claimed| &claimed.id).collect::<Vec<_>>(), [&unknown]);
}

#[sqlx::test]
async fn a_lease_has_one_holder_until_it_runs_out(pool: PgPool) {
    let store = Store::new(pool.clone());
    let (one, two) = (Uuid::new_v4(), Uuid::new_v4());
    assert!(store.acquire_lease("watch/*", one, LEASE).await.unwrap());
    assert!(store.acquire_lease("watch/*", one, LEASE).await.unwrap(), "again");
    assert!(!store.acquire_lease("watch/*", two, LEASE).await.unwrap());
    let names = ["watch/*".to_owned()];
    let renewed = async |holder| store.renew_leases(holder, &names, LEASE).await.unwrap();
    assert!(renewed(one).await.names.contains("watch/*"));
    assert!(renewed(one).await.elsewhere.is_empty());
    assert!(renewed(two).await.names.is_empty());
    assert!(renewed(two).await.elsewhere.contains("watch/*"));

    sqlx::query("UPDATE leases SET expires_at = now()").execute(&pool).await.unwrap();
    assert!(renewed(one).await.names.is_empty(), "an expired lease is lost");
    assert!(renewed(two).await.elsewhere.is_empty(), "and free");
    assert!(store.acquire_lease("watch/*", two, LEASE).await.unwrap());
    assert!(renewed(one).await.names.is_empty());
    let epoch: i64 = sqlx::query_scalar("SELECT epoch FROM leases").fetch_one(&pool).await.unwrap();
    assert_eq!(epoch, 2);
}

/// Its holder may have resigned it without an answer, or never have got the answer to its call.
#[sqlx::test]
async fn a_lease_that_its_holder_does_not_name_expires(pool: PgPool) {
    let store = Store::new(pool.clone());
    let (one, two) = (session(&store).await, session(&store).await);
    assert!(store.acquire_lease("watch/x", one, LEASE).await.unwrap());
    let expiry = async || -> DateTime<Utc> {
        let expiry = sqlx::query_scalar("SELECT expires_at FROM leases WHERE name = 'watch/x'");
        expiry.fetch_one(&pool).await.unwrap()
    };
    let before = expiry().await;
    let renewed = store.renew_leases(one, &[replica(one)], LEASE).await.unwrap();
    assert_eq!(renewed.names, HashSet::from([replica(one)]));
    assert_eq!(expiry().await, before);
    sqlx::query("UPDATE leases SET expires_at = now() WHERE name = 'watch/x'").execute(&pool).await.unwrap();
    store.renew_leases(one, &[replica(one)], LEASE).await.unwrap();
    assert!(store.acquire_lease("watch/x", two, LEASE).await.unwrap());
}

/// One of two replicas gets each, and the statements don't grow with the number of namespaces.
#[sqlx::test]
async fn leases_of_many_namespaces_are_acquired_together(pool: PgPool) {
    let counted = "CREATE TABLE statements (at timestamptz DEFAULT clock_timestamp());
        CREATE FUNCTION count_statement() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN INSERT INTO statements DEFAULT VALUES; RETURN NULL; END $$;
        CREATE TRIGGER counted AFTER INSERT ON leases FOR EACH STATEMENT EXECUTE FUNCTION count_statement()";
    sqlx::raw_sql(counted).execute(&pool).await.unwrap();
    let stores = [connect(&pool).await, connect(&pool).await];
    let holders = [Uuid::new_v4(), Uuid::new_v4()];
    let names: Vec<_> = (0..600).map(|n| format!("watch/n{n}")).collect();
    let acquire = async |replica: usize| {
        let each = names.iter().map(|name| stores[replica].acquire_lease(name, holders[replica], LEASE));
        let each = futures::future::join_all(each).await;
        each.into_iter().map(|acquired| usize::from(acquired.unwrap())).sum::<usize>()
    };
    let (one, other) = tokio::join!(acquire(0), acquire(1));
    assert_eq!(one + other, 600);
    let statements: i64 = sqlx::query_scalar("SELECT count(*) FROM statements").fetch_one(&pool).await.unwrap();
    assert!(statements <= 8, "{statements}");
    let renewed = stores[0].renew_leases(holders[0], &names, LEASE).await.unwrap();
    assert_eq!((renewed.names.len(), renewed.elsewhere.len()), (one, other), "one statement reads all");
}

#[sqlx::test]
async fn a_submission_that_is_put_off_waits_and_shows_the_reason(pool: PgPool) {
    let store = Store::new(pool.clone());
    let worker = session(&store).await;
    let id = accept(&store, "a").await;
    let claimed = store.claim(worker, 10, &[], &[]).await.unwrap().remove(0);
    store.retry_later(&claimed, LEASE, Some((None, "no route to the cluster"))).await.unwrap();
    assert!(store.claim(worker, 10, &[], &[]).await.unwrap().is_empty());
    assert_eq!(store.all().find(&id).await.unwrap().unwrap().message.as_deref(), Some("no route to the cluster"));

    store.all().request_kill(&id, &Scope::installation(), None).await.unwrap();
    let claimed = store.claim(worker, 10, &[], &[]).await.unwrap();
    assert_eq!(claimed[0].task, Task::Kill, "a kill doesn't wait for the back-off");
    assert_eq!(claimed[0].failed_tries, 1);
}

#[sqlx::test]
async fn a_kill_that_comes_during_a_launch_does_not_wait_for_its_back_off(pool: PgPool) {
    let store = Store::new(pool.clone());
    let worker = session(&store).await;
    let id = accept(&store, "a").await;
    let claimed = store.claim(worker, 10, &[], &[]).await.unwrap().remove(0);
    store.all().request_kill(&id, &Scope::installation(), None).await.unwrap();
    store.retry_later(&claimed, LEASE, Some((None, "no route to the cluster"))).await.unwrap();
    let claimed = store.claim(worker, 10, &[], &[]).await.unwrap().remove(0);
    assert_eq!(claimed.task, Task::Kill);
    store.retry_later(&claimed, LEASE, Some((None, "still none"))).await.unwrap();
    assert!(store.claim(worker, 10, &[], &[]).await.unwrap().is_empty(), "a kill that fails waits as well");
}

#[sqlx::test]
async fn the_first_pod_of_an_attempt_is_its_only_one(pool: PgPool) {
    let store = Store::new(pool.clone());
    let id = accept(&store, "a").await;
    let claim = store.claim(session(&store).await, 10, &[], &[]).await.unwrap()[0].epoch;
    assert!(store.record_pod(&id, 1, claim, "one").await.unwrap().is_some());
    assert!(store.record_pod(&id, 1, claim, "one").await.unwrap().is_some(), "again");
    assert!(store.record_pod(&id, 1, claim, "two").await.unwrap().is_none());
    assert_eq!(store.all().find(&id).await.unwrap().unwrap().pod_uid.as_deref(), Some("one"));
}

/// Without the guard of the claim's number and without the state, a launch would go on after a kill.
#[sqlx::test]
async fn the_record_of_a_pod_says_whether_a_kill_was_accepted(pool: PgPool) {
    let store = Store::new(pool.clone());
    let id = accept(&store, "a").await;
    let claim = store.claim(session(&store).await, 10, &[], &[]).await.unwrap()[0].epoch;
    assert_eq!(store.record_pod(&id, 1, claim, "u").await.unwrap(), Some(State::Launching));
    assert!(store.all().request_kill(&id, &Scope::installation(), None).await.unwrap().live);
    let again = store.record_pod(&id, 1, claim, "u").await.unwrap();
    assert_eq!(again, Some(State::Killing), "the kill finds the pod by its uid");
}

#[sqlx::test]
async fn a_submission_is_live_once_its_pod_is_recorded(pool: PgPool) {
    let store = Store::new(pool.clone());
    let id = accept(&store, "a").await;
    let claim = store.claim(session(&store).await, 10, &[], &[]).await.unwrap()[0].epoch;
    assert_eq!(store.live().await.unwrap(), [], "the claim decides about its pod");
    assert!(store.record_pod(&id, 1, claim, "one").await.unwrap().is_some());
    let live = store.live().await.unwrap();
    assert_eq!((&live[0].id, live[0].state, live[0].pod_uid.as_deref()), (&id, State::Launching, Some("one")));
}

#[sqlx::test]
async fn late_and_repeated_writes_change_nothing(pool: PgPool) {
    let store = Store::new(pool.clone());
    let id = accept(&store, "a").await;
    let here = Placement { pod_uid: Some("u".to_owned()), ..Placement::default() };
    assert!(store.advance(&id, 1, None, &StateChange::Running, &here).await.unwrap());
    assert!(!store.advance(&id, 1, None, &StateChange::Launched, &Placement::default()).await.unwrap(), "late");
    assert!(!store.advance(&id, 2, None, &ended(State::Failed, 1), &here).await.unwrap(), "another attempt");
    assert!(store.advance(&id, 1, None, &ended(State::Failed, 3), &here).await.unwrap());
    assert!(!store.advance(&id, 1, None, &ended(State::Finished, 0), &here).await.unwrap(), "ends absorb");

    let record = store.all().find(&id).await.unwrap().unwrap();
    assert_eq!((record.state, record.exit_code, record.pod_uid.as_deref()), (State::Failed, Some(3), Some("u")));
    assert!(record.started_at.is_some());
    assert_eq!(events(&pool, &id).await, ["QUEUED", "RUNNING", "FAILED"]);
}

/// The first pod was deleted before it was recorded, and is reported after another one was.
#[sqlx::test]
async fn an_observation_of_another_pod_changes_no_row(pool: PgPool) {
    let store = Store::new(pool.clone());
    let id = accept(&store, "a").await;
    let claim = store.claim(session(&store).await, 10, &[], &[]).await.unwrap()[0].epoch;
    assert!(store.record_pod(&id, 1, claim, "second").await.unwrap().is_some());
    let of = |uid: &str| Placement { pod_uid: Some(uid.to_owned()), ..Placement::default() };
    assert!(!store.advance(&id, 1, None, &ended(State::Killed, 143), &of("first")).await.unwrap());
    assert!(store.advance(&id, 1, None, &StateChange::Running, &of("second")).await.unwrap());
    assert_eq!(events(&pool, &id).await, ["QUEUED", "LAUNCHING", "RUNNING"]);
}

#[sqlx::test]
async fn a_kill_is_at_once_before_a_launch_and_a_task_after_it(pool: PgPool) {
    let store = Store::new(pool.clone());
    let worker = session(&store).await;
    let launched = accept(&store, "a").await;
    let claimed = store.claim(worker, 10, &[], &[]).await.unwrap().remove(0);
    let queued = accept(&store, "b").await;

    assert!(store.all().request_kill(&queued, &Scope::installation(), None).await.unwrap().live);
    assert_eq!(state(&store, &queued).await, State::Killed);
    assert!(!store.all().request_kill(&queued, &Scope::installation(), None).await.unwrap().live, "it has ended");

    assert!(store.all().request_kill(&launched, &Scope::installation(), None).await.unwrap().live);
    assert!(
        store.all().request_kill(&launched, &Scope::installation(), None).await.unwrap().live,
        "a repeated request is no error"
    );
    assert_eq!(state(&store, &launched).await, State::Killing);
    let busy = std::slice::from_ref(&launched);
    assert!(store.claim(worker, 10, &[], busy).await.unwrap().is_empty(), "its launcher still has the claim");
    assert!(!store.advance(&launched, 1, None, &StateChange::Launched, &Placement::default()).await.unwrap());
    store.release(&claimed).await.unwrap();
    assert_eq!(store.claim(worker, 10, &[], &[]).await.unwrap()[0].task, Task::Kill);
    assert_eq!(events(&pool, &launched).await, ["QUEUED", "LAUNCHING", "KILLING"]);

    assert!(
        !store
            .all()
            .request_kill(&"driver-20000101000000-9999".parse().unwrap(), &Scope::installation(), None)
            .await
            .unwrap()
            .live
    );
}

#[sqlx::test]
async fn kill_all_and_clear_leave_records(pool: PgPool) {
    let store = Store::new(pool.clone());
    let ids = [accept(&store, "a").await, accept(&store, "b").await];
    assert_eq!(store.all().request_kill_of_all(None).await.unwrap(), 2);
    assert_eq!(store.all().request_kill_of_all(None).await.unwrap(), 0);
    assert_eq!(store.all().clear_ended(None).await.unwrap(), 2);
    for id in &ids {
        assert!(store.all().find(id).await.unwrap().unwrap().cleared);
        assert_eq!(events(&pool, id).await, ["QUEUED", "KILLED"]);
    }
}

#[sqlx::test]
async fn a_row_that_cannot_be_read_does_not_stop_the_others(pool: PgPool) {
    let store = Store::new(pool.clone());
    let good = accept(&store, "b").await;
    let odd =
        "INSERT INTO submissions (id, number, state, request, spark_version, namespace, names, spark_user, created_at)
        SELECT 'spark:0', -1, state, request, spark_version, namespace, names, spark_user, created_at FROM submissions";
    sqlx::query(odd).execute(&pool).await.unwrap();
    let worker = session(&store).await;
    assert!(store.claim(worker, 1, &[], &[]).await.unwrap().is_empty(), "it comes first");
    let claimed = store.claim(worker, 1, &[], &[]).await.unwrap();
    assert_eq!(claimed.iter().map(|one| &one.id).collect::<Vec<_>>(), [&good]);

    sqlx::query("UPDATE submissions SET state = 'RUNNING'").execute(&pool).await.unwrap();
    assert_eq!(store.live().await.unwrap().iter().map(|one| &one.id).collect::<Vec<_>>(), [&good]);
}

#[sqlx::test]
async fn foreign_texts_are_cleaned_and_cut(pool: PgPool) {
    let store = Store::new(pool.clone());
    let id = accept(&store, "a").await;
    assert!(store.advance(&id, 1, None, &StateChange::Launched, &Placement::default()).await.unwrap());
    let said = format!("a\0{}", "ü".repeat(50_000));
    store.note_waiting(&id, 1, "Odd\0", &said).await.unwrap();
    let waiting = store.all().find(&id).await.unwrap().unwrap();
    assert_eq!(waiting.reason.as_deref(), Some("Odd\u{fffd}"));
    assert!(waiting.message.is_some_and(|text| text.starts_with("a\u{fffd}üü") && text.len() < 5000));

    let end = StateChange::Ended(Outcome::new(State::Failed, "Odd\0", said));
    assert!(store.advance(&id, 1, None, &end, &Placement::default()).await.unwrap());
    let record = store.all().find(&id).await.unwrap().unwrap();
    assert_eq!((record.state, record.reason.as_deref()), (State::Failed, Some("Odd\u{fffd}")));
    assert!(record.message.is_some_and(|text| text.starts_with("a\u{fffd}üü") && text.len() < 5000));
}

#[sqlx::test]
async fn a_new_session_forgets_old_ones_that_no_row_waits_for(pool: PgPool) {
    let store = Store::new(pool.clone());
    let old = [session(&store).await, session(&store).await, session(&store).await];
    accept(&store, "a").await;
    assert_eq!(store.claim(old[0], 1, &[], &[]).await.unwrap().len(), 1);
    assert!(store.acquire_lease("clean-up", old[1], LEASE).await.unwrap());
    let age = "UPDATE leases SET expires_at = expires_at - interval '2 days' WHERE holder <> $1";
    sqlx::query(age).bind(old[2]).execute(&pool).await.unwrap();
    let names = async || -> Vec<String> {
        sqlx::query_scalar("SELECT name FROM leases ORDER BY name").fetch_all(&pool).await.unwrap()
    };
    assert!(store.acquire_lease("watch/*", old[2], LEASE).await.unwrap());
    store.forget_sessions().await.unwrap();

    let new = session(&store).await;
    let mut left = [replica(old[0]), replica(old[2]), replica(new), "clean-up".to_owned(), "watch/*".to_owned()];
    left.sort();
    assert_eq!(names().await, left, "a claim still names the first");
}

#[sqlx::test]
async fn clear_hides_any_number_of_ended_submissions(pool: PgPool) {
    let store = Store::new(pool.clone());
    accept(&store, "a").await;
    let many = "INSERT INTO submissions (id, number, state, request, spark_version, namespace, names, spark_user,
                                         created_at, finished_at)
        SELECT 'driver-20260101000000-' || n, n, CASE WHEN n % 10 = 0 THEN 'RUNNING' ELSE 'FAILED' END, request,
               spark_version, namespace, names, spark_user, created_at, now()
        FROM submissions, generate_series(100001, 113000) AS n";
    sqlx::query(many).execute(&pool).await.unwrap();
    assert_eq!(store.all().clear_ended(None).await.unwrap(), 11_700);
    assert_eq!(store.all().clear_ended(None).await.unwrap(), 0);
    let wrong = "SELECT count(*) FROM submissions WHERE (cleared_at IS NOT NULL) <> (state = 'FAILED')";
    assert_eq!(sqlx::query_scalar::<_, i64>(wrong).fetch_one(&pool).await.unwrap(), 0);
}

/// Rows cleared in earlier rounds stay cleared.
#[sqlx::test]
async fn a_clear_that_fails_in_a_later_round_is_in_doubt(pool: PgPool) {
    let store = Store::new(pool.clone());
    accept(&store, "a").await;
    let many = "INSERT INTO submissions (id, number, state, request, spark_version, namespace, names, spark_user,
                                         created_at, finished_at)
        SELECT 'driver-20260101000000-' || n, n, 'FAILED', request, spark_version, namespace, names, spark_user,
               created_at, now()
        FROM submissions, generate_series(100001, 105001) AS n;
        CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN RAISE EXCEPTION 'no space left on device' USING ERRCODE = '53100'; END $$;
        CREATE TRIGGER full_disk BEFORE UPDATE ON submissions FOR EACH ROW WHEN (NEW.number > 105000)
            EXECUTE FUNCTION full_disk()";
    sqlx::raw_sql(many).execute(&pool).await.unwrap();
    assert!(matches!(store.all().clear_ended(None).await, Err(Error::InDoubt { .. })));
    assert!(matches!(store.all().clear_ended(None).await, Err(Error::Unavailable { .. })), "the only round failed");
    let cleared = "SELECT count(*) FROM submissions WHERE cleared_at IS NOT NULL";
    assert_eq!(sqlx::query_scalar::<_, i64>(cleared).fetch_one(&pool).await.unwrap(), 5000);
}

/// A replica that only tries to acquire a lease does so twice a second, forever.
#[sqlx::test]
async fn a_failed_try_for_a_lease_writes_nothing(pool: PgPool) {
    let store = Store::new(pool.clone());
    let (holder, other) = (Uuid::new_v4(), Uuid::new_v4());
    assert!(store.acquire_lease("watch/*", holder, LEASE).await.unwrap());
    assert!(!store.acquire_lease("watch/*", other, LEASE).await.unwrap());
    // A transaction that locks a row leaves its number there.
    let locked = "SELECT xmax::text FROM leases";
    assert_eq!(sqlx::query_scalar::<_, String>(locked).fetch_one(&pool).await.unwrap(), "0");

    assert!(store.acquire_lease("watch/*", holder, LEASE).await.unwrap(), "its own");
    sqlx::query("UPDATE leases SET expires_at = now()").execute(&pool).await.unwrap();
    assert!(store.acquire_lease("watch/*", other, LEASE).await.unwrap(), "it has run out");
}
