//! Time limits and retries on a real Postgres.

use std::time::Duration;

use sparkgate::{
    store::{NewSubmission, Scope, Sealed, Store, Task},
    submission::{EVICTED_BY_KUEUE, KillCause, Outcome, Placement, State, StateChange, SubmissionId},
};
use sqlx::PgPool;

use crate::support::{claim_one, names, new, session};

async fn accept(store: &Store) -> SubmissionId {
    let drawn = store.draw().await.unwrap();
    let id = drawn.id.clone();
    let manifest = r#"{"before":[],"pod":1}"#.to_owned();
    store.accept(NewSubmission { manifest, ..new(drawn, "pod-1") }).await.unwrap();
    id
}

/// Accepts a submission with these columns.
pub(crate) async fn with(pool: &PgPool, store: &Store, columns: &str) -> SubmissionId {
    let id = accept(store).await;
    let set = sqlx::AssertSqlSafe(format!("UPDATE submissions SET {columns} WHERE id = $1"));
    sqlx::query(set).bind(id.as_str()).execute(pool).await.unwrap();
    id
}

/// Returns the column of a request with these properties of ours.
fn asking(properties: &[(&str, &str)]) -> String {
    let properties = properties.iter().map(|(key, value)| (format!("spark.sparkgate.{key}"), *value));
    let request = serde_json::json!({"sparkProperties": properties.collect::<std::collections::BTreeMap<_, _>>()});
    format!("request = '{request}'")
}

const RETRIES: &str = "max_retries_infrastructure = 2, max_retries_application = 1, start_timeout = 60";

fn evicted() -> StateChange {
    StateChange::Ended(Outcome::new(State::Failed, "Evicted", "low on memory"))
}

fn exited(code: i32) -> StateChange {
    StateChange::Ended(Outcome { exit_code: Some(code), ..Outcome::new(State::Failed, "Error", "exited") })
}

fn of(uid: &str) -> Placement {
    Placement { pod_uid: Some(uid.to_owned()), node: Some("n".to_owned()), ..Placement::default() }
}

pub(crate) async fn events(pool: &PgPool, id: &SubmissionId) -> Vec<(i32, String, Option<String>)> {
    sqlx::query_as("SELECT attempt, state, reason FROM submission_events WHERE submission_id = $1 ORDER BY id")
        .bind(id.as_str())
        .fetch_all(pool)
        .await
        .unwrap()
}

pub(crate) async fn column<T>(pool: &PgPool, id: &SubmissionId, what: &str) -> T
where
    T: for<'r> sqlx::Decode<'r, sqlx::Postgres> + sqlx::Type<sqlx::Postgres> + Send + Unpin,
{
    let select = sqlx::AssertSqlSafe(format!("SELECT {what} FROM submissions WHERE id = $1"));
    sqlx::query_scalar(select).bind(id.as_str()).fetch_one(pool).await.unwrap()
}

/// Returns the seconds until a time in the row.
pub(crate) async fn seconds_until(pool: &PgPool, id: &SubmissionId, what: &str) -> f64 {
    column(pool, id, &format!("extract(epoch FROM {what} - clock_timestamp())::double precision")).await
}

#[sqlx::test]
async fn an_attempt_that_the_cluster_ended_is_followed_by_another(pool: PgPool) {
    let store = Store::new(pool.clone());
    let id = with(&pool, &store, RETRIES).await;
    let worker = session(&store).await;
    let claimed = store.claim(worker, 1, &[], &[]).await.unwrap().remove(0);
    assert!(store.record_pod(&id, 1, claimed.epoch, "u").await.unwrap().is_some());
    assert!(store.advance(&id, 1, None, &evicted(), &of("u")).await.unwrap());

    let record = store.all().find(&id).await.unwrap().unwrap();
    let row = (record.state, record.attempt, record.pod_uid, record.node, record.reason, record.started_at);
    assert_eq!(row, (State::Queued, 2, None, None, None, None));
    let wanted =
        [(1, "QUEUED", None), (1, "LAUNCHING", None), (1, "FAILED", Some("Evicted")), (2, "QUEUED", Some("Retry"))];
    let wanted = wanted.map(|(attempt, state, reason)| (attempt, state.to_owned(), reason.map(str::to_owned)));
    assert_eq!(events(&pool, &id).await, wanted);
    let attempts = store.all().attempts(&id).await.unwrap();
    let listed: Vec<_> =
        attempts.iter().map(|it| (it.attempt, it.state, it.pod.as_str(), it.pod_uid.as_deref())).collect();
    assert_eq!(listed, [(1, State::Failed, "pod-1", Some("u")), (2, State::Queued, "", None)]);
    assert_eq!((attempts[0].reason.as_deref(), attempts[0].node.as_deref()), (Some("Evicted"), Some("n")));

    // The launcher of the first attempt can't change the second.
    store.release(&claimed).await.unwrap();
    assert!(store.claim(worker, 1, &[], &[]).await.unwrap().is_empty(), "there is a pause");
    let pause = seconds_until(&pool, &id, "not_before").await;
    assert!((5.0..=10.0).contains(&pause), "{pause}");
    assert!(!store.advance(&id, 1, None, &exited(3), &of("u")).await.unwrap(), "late");
}

#[sqlx::test]
async fn pauses_grow_and_the_time_to_start_begins_after_them(pool: PgPool) {
    let store = Store::new(pool.clone());
    let id = with(&pool, &store, "max_retries_infrastructure = 9, start_timeout = 60").await;
    let mut pauses = Vec::new();
    for attempt in 1..=9 {
        assert!(store.advance(&id, attempt, None, &evicted(), &Placement::default()).await.unwrap());
        pauses.push((seconds_until(&pool, &id, "not_before").await / 10.0).ceil() * 10.0);
        let start = seconds_until(&pool, &id, "deadline").await - seconds_until(&pool, &id, "not_before").await;
        assert!((59.0..61.0).contains(&start), "{start}");
    }
    assert_eq!(pauses, [10.0, 20.0, 40.0, 80.0, 160.0, 300.0, 300.0, 300.0, 300.0]);
    assert!(store.advance(&id, 10, None, &evicted(), &Placement::default()).await.unwrap());
    let record = store.all().find(&id).await.unwrap().unwrap();
    assert_eq!((record.state, record.attempt), (State::Failed, 10), "no more retries than requested");
}

#[sqlx::test]
async fn each_kind_of_failure_has_its_budget(pool: PgPool) {
    let store = Store::new(pool.clone());
    let state = async |id: &SubmissionId| {
        let record = store.all().find(id).await.unwrap().unwrap();
        (record.state, record.attempt)
    };
    let here = Placement::default();
    let none = accept(&store).await;
    assert!(store.advance(&none, 1, None, &evicted(), &here).await.unwrap());
    assert_eq!(state(&none).await, (State::Failed, 1), "no retry was requested");

    let application = with(&pool, &store, "max_retries_application = 1").await;
    assert!(store.advance(&application, 1, None, &exited(3), &here).await.unwrap());
    assert!(store.advance(&application, 2, None, &evicted(), &here).await.unwrap());
    assert_eq!(state(&application).await, (State::Failed, 2), "that is another kind");

    let both = with(&pool, &store, RETRIES).await;
    for (attempt, end) in [exited(3), evicted(), StateChange::Ended(Outcome::pod_gone())].iter().enumerate() {
        assert!(store.advance(&both, attempt as i32 + 1, None, end, &here).await.unwrap());
    }
    assert_eq!(state(&both).await, (State::Queued, 4));
    assert!(store.advance(&both, 4, None, &StateChange::Ended(Outcome::pod_gone()), &here).await.unwrap());
    assert_eq!(state(&both).await, (State::Lost, 4));
    assert_eq!(store.all().attempts(&both).await.unwrap()[2].state, State::Lost);

    for (end, ended) in [
        (Outcome::new(State::Error, "Forbidden", "no"), State::Error),
        (Outcome::new(State::Killed, "PodDeleted", "by a user"), State::Killed),
        (Outcome { exit_code: Some(0), ..Outcome::new(State::Finished, "Completed", "") }, State::Finished),
    ] {
        let id = with(&pool, &store, RETRIES).await;
        assert!(store.advance(&id, 1, None, &StateChange::Ended(end), &here).await.unwrap());
        assert_eq!(state(&id).await, (ended, 1), "never");
    }
}

#[sqlx::test]
async fn a_submission_that_is_being_killed_is_never_retried(pool: PgPool) {
    let store = Store::new(pool.clone());
    let id = with(&pool, &store, RETRIES).await;
    assert!(store.advance(&id, 1, None, &StateChange::Running, &of("u")).await.unwrap());
    assert!(store.all().request_kill(&id, &Scope::installation(), None).await.unwrap().live);
    assert!(store.advance(&id, 1, None, &evicted(), &of("u")).await.unwrap());
    assert_eq!(store.all().find(&id).await.unwrap().unwrap().state, State::Failed);

    let paused = with(&pool, &store, RETRIES).await;
    assert!(store.advance(&paused, 1, None, &evicted(), &of("u")).await.unwrap());
    assert!(store.all().request_kill(&paused, &Scope::installation(), None).await.unwrap().live);
    let record = store.all().find(&paused).await.unwrap().unwrap();
    assert_eq!((record.state, record.attempt, record.reason.as_deref()), (State::Killed, 2, Some("Killed")));
    assert_eq!(column::<Option<bool>>(&pool, &paused, "deadline IS NOT NULL").await, Some(false));
}

#[sqlx::test]
async fn the_objects_of_an_attempt_are_kept_once_and_under_its_claim(pool: PgPool) {
    let store = Store::new(pool.clone());
    let id = with(&pool, &store, RETRIES).await;
    assert!(store.advance(&id, 1, None, &evicted(), &of("u")).await.unwrap());
    sqlx::query("UPDATE submissions SET not_before = NULL").execute(&pool).await.unwrap();
    let (one, two) = (session(&store).await, session(&store).await);
    let first = store.claim(one, 1, &[], &[]).await.unwrap().remove(0);
    assert_eq!((first.attempt, first.task, first.manifest.as_deref()), (2, Task::Launch, None));
    let before = store.attempt_before(&first).await.unwrap().unwrap();
    assert_eq!((before.names.driver_pod.as_str(), before.manifest.as_str()), ("pod-1", r#"{"before":[],"pod":1}"#));

    store.end_leases(one).await.unwrap();
    let second = store.claim(two, 1, &[], &[]).await.unwrap().remove(0);
    assert!(!store.keep_attempt(&first, &names("late"), "late", None).await.unwrap());
    assert!(store.keep_attempt(&second, &names("pod-2"), "two", None).await.unwrap());
    assert!(!store.keep_attempt(&second, &names("pod-3"), "three", None).await.unwrap());
    store.release(&second).await.unwrap();
    let third = store.claim(two, 1, &[], &[]).await.unwrap().remove(0);
    assert_eq!((third.pod.as_str(), third.manifest.as_deref()), ("pod-2", Some("two")));
    assert_eq!(store.all().attempts(&id).await.unwrap()[1].pod, "pod-2");
}

/// During a rollout a replica of the previous release, which joins all manifests of a submission, must not launch the
/// first attempt again.
#[sqlx::test]
async fn a_release_that_knows_one_attempt_leaves_later_ones_alone(pool: PgPool) {
    let store = Store::new(pool.clone());
    let its_due = "SELECT count(*) FROM submissions WHERE state IN ('QUEUED', 'LAUNCHING', 'KILLING')
        AND (claimed_by IS NULL OR claimed_by IN
            (SELECT holder FROM leases WHERE name LIKE 'replica/%' AND expires_at <= clock_timestamp()))";
    let its_due = async || sqlx::query_scalar::<_, i64>(its_due).fetch_one(&pool).await.unwrap();
    let id = with(&pool, &store, RETRIES).await;
    assert_eq!(its_due().await, 1);
    assert!(store.advance(&id, 1, None, &evicted(), &of("u")).await.unwrap());
    assert_eq!(its_due().await, 0);
    sqlx::query("UPDATE submissions SET not_before = NULL").execute(&pool).await.unwrap();
    let worker = session(&store).await;
    let claimed = store.claim(worker, 1, &[], &[]).await.unwrap().remove(0);
    store.retry_later(&claimed, Duration::ZERO, Some((None, "away"))).await.unwrap();
    assert_eq!(its_due().await, 0);
    assert!(store.advance(&id, 2, None, &StateChange::Running, &of("v")).await.unwrap());
    assert!(store.all().request_kill(&id, &Scope::installation(), None).await.unwrap().live);
    assert_eq!(its_due().await, 0);
    let claimed = store.claim(worker, 1, &[], &[]).await.unwrap().remove(0);
    assert_eq!(claimed.task, Task::Kill);
    store.release(&claimed).await.unwrap();
    assert_eq!(its_due().await, 0);
    assert_eq!(store.claim(worker, 1, &[], &[]).await.unwrap().len(), 1);
}

/// During a rollout a replica of the previous release, which doesn't decrypt, must not launch a driver without its secrets.
#[sqlx::test]
async fn a_release_that_does_not_decrypt_leaves_encrypted_objects_alone(pool: PgPool) {
    let store = Store::new(pool.clone());
    let its_due = "SELECT count(*) FROM submissions WHERE state IN ('QUEUED', 'LAUNCHING', 'KILLING')
        AND (claimed_by IS NULL OR claimed_by = '00000000-0000-0000-0000-000000000000' OR claimed_by IN
            (SELECT holder FROM leases WHERE name LIKE 'replica/%' AND expires_at <= clock_timestamp()))";
    let its_due = async || sqlx::query_scalar::<_, i64>(its_due).fetch_one(&pool).await.unwrap();
    let drawn = store.draw().await.unwrap();
    let id = drawn.id.clone();
    let sealed = Some(Sealed { key: "a".to_owned(), text: b"encrypted".to_vec() });
    store.accept(NewSubmission { sealed: sealed.clone(), ..new(drawn, "pod-1") }).await.unwrap();
    sqlx::query("UPDATE submissions SET max_retries_infrastructure = 1").execute(&pool).await.unwrap();
    assert_eq!(its_due().await, 0);
    let worker = session(&store).await;
    let claimed = store.claim(worker, 1, &[], &[]).await.unwrap().remove(0);
    assert_eq!(claimed.sealed, sealed);
    sqlx::query("UPDATE leases SET expires_at = expires_at - interval '1 h'").execute(&pool).await.unwrap();
    assert_eq!(its_due().await, 1, "a known limit: a claim of a session that ended can be taken over");
    sqlx::query("UPDATE leases SET expires_at = expires_at + interval '1 h'").execute(&pool).await.unwrap();
    store.retry_later(&claimed, Duration::ZERO, Some((None, "away"))).await.unwrap();
    assert_eq!(its_due().await, 0);
    assert!(store.advance(&id, 1, None, &evicted(), &of("u")).await.unwrap());
    assert_eq!(its_due().await, 0, "nor a retry");
    sqlx::query("UPDATE submissions SET not_before = NULL").execute(&pool).await.unwrap();
    let claimed = store.claim(worker, 1, &[], &[]).await.unwrap().remove(0);
    assert_eq!((claimed.attempt, &claimed.sealed), (2, &None));
    let before = store.attempt_before(&claimed).await.unwrap().unwrap();
    assert_eq!((before.attempt, &before.sealed), (1, &sealed));
    let again = Sealed { key: "b".to_owned(), text: b"again".to_vec() };
    assert!(store.keep_attempt(&claimed, &names("pod-2"), "two", Some(&again)).await.unwrap());
    let kept = "SELECT attempt, sealed_key FROM manifests WHERE sealed IS NOT NULL";
    let kept: Vec<(i32, String)> = sqlx::query_as(kept).fetch_all(&pool).await.unwrap();
    assert_eq!(kept, [(2, "b".to_owned())], "later attempts are derived from the last");
}

const OVERDUE: &str = "start_timeout = 600, run_timeout = 7200, deadline = now() - interval '1 s'";

#[sqlx::test]
async fn a_start_timeout_kills_and_shows_the_reason_for_the_wait(pool: PgPool) {
    let store = Store::new(pool.clone());
    let (queued, pending) = (with(&pool, &store, OVERDUE).await, with(&pool, &store, OVERDUE).await);
    let in_time = with(&pool, &store, "start_timeout = 600, deadline = now() + interval '600 s'").await;
    assert!(store.advance(&pending, 1, None, &StateChange::Launched, &of("u")).await.unwrap());
    store.note_waiting(&pending, 1, "Unschedulable", "0/3 nodes are available").await.unwrap();
    assert_eq!(store.kill_overdue(1, None).await.unwrap().killed, 1);
    let overdue = store.kill_overdue(10, None).await.unwrap();
    assert_eq!((overdue.killed, overdue.more), (1, false));

    let record = store.all().find(&queued).await.unwrap().unwrap();
    let ended = (record.state, record.reason.as_deref(), record.message.as_deref());
    assert_eq!(ended, (State::Killed, Some("StartTimeout"), Some("not running within 10m")));
    let words = "not running within 10m: Unschedulable: 0/3 nodes are available";
    let row = store.row(&pending).await.unwrap().unwrap();
    assert_eq!((row.state, row.kill), (State::Killing, KillCause::StartTimeout(words.to_owned())));
    assert_eq!(store.all().find(&in_time).await.unwrap().unwrap().state, State::Queued);

    // The first cause is kept, whatever follows.
    assert!(store.all().request_kill(&pending, &Scope::installation(), None).await.unwrap().live);
    let claimed = store.claim(session(&store).await, 5, &[], &[]).await.unwrap();
    let claimed = claimed.iter().find(|claimed| claimed.id == pending).unwrap();
    assert_eq!((claimed.task, claimed.kill.reason()), (Task::Kill, "StartTimeout"));
    store.retry_later(claimed, Duration::ZERO, Some((None, "the API server is away"))).await.unwrap();
    let row = store.row(&pending).await.unwrap().unwrap();
    assert_eq!(row.kill.message(), words);
    assert_eq!(store.kill_overdue(10, None).await.unwrap().killed, 0);
}

#[sqlx::test]
async fn a_run_timeout_kills(pool: PgPool) {
    let store = Store::new(pool.clone());
    let id = with(&pool, &store, "start_timeout = 600, run_timeout = 7200, deadline = now() + interval '600 s'").await;
    assert!(store.advance(&id, 1, None, &StateChange::Running, &of("u")).await.unwrap());
    let left = seconds_until(&pool, &id, "deadline").await;
    assert!((7100.0..=7200.0).contains(&left), "{left}");
    let long_ago =
        "UPDATE submissions SET started_at = started_at - interval '2 h', queued_at = queued_at - interval '2 h',
                               deadline = deadline - interval '2 h'";
    sqlx::query(long_ago).execute(&pool).await.unwrap();
    assert_eq!(store.kill_overdue(10, None).await.unwrap().killed, 1);
    let row = store.row(&id).await.unwrap().unwrap();
    assert_eq!(row.kill, KillCause::RunTimeout("still running after 2h: killed".to_owned()));
    assert_eq!(column::<Option<bool>>(&pool, &id, "deadline IS NULL").await, Some(true));
}

/// A release without deadlines moved the row to RUNNING and left the deadline of its start.
#[sqlx::test]
async fn a_running_submission_is_not_killed_for_the_time_that_it_had_to_start(pool: PgPool) {
    let store = Store::new(pool.clone());
    let old = "state = 'RUNNING', queued_at = now() - interval '60 s', started_at = now() - interval '60 s', deadline = now() - interval '1 s', start_timeout = 59";
    let endless = with(&pool, &store, old).await;
    let limited = with(&pool, &store, &format!("{old}, run_timeout = 3600")).await;
    let late = with(&pool, &store, &format!("{old}, run_timeout = 45")).await;
    assert_eq!(store.kill_overdue(10, None).await.unwrap().killed, 1);
    let state = async |id| store.all().find(id).await.unwrap().unwrap().state;
    let states = [state(&endless).await, state(&limited).await, state(&late).await];
    assert_eq!(states, [State::Running, State::Running, State::Killing]);
    assert_eq!(store.row(&late).await.unwrap().unwrap().kill.message(), "still running after 45s: killed");
    assert_eq!(column::<Option<bool>>(&pool, &endless, "deadline IS NULL").await, Some(true));
    assert!((3500.0..3600.0).contains(&seconds_until(&pool, &limited, "deadline").await));
}

#[sqlx::test]
async fn the_reason_for_a_wait_follows_the_cluster(pool: PgPool) {
    let store = Store::new(pool.clone());
    let id = accept(&store).await;
    assert!(store.advance(&id, 1, None, &StateChange::Launched, &of("u")).await.unwrap());
    let version = async || column::<String>(&pool, &id, "xmin::text").await;
    store.note_waiting(&id, 1, "Unschedulable", "0/3 nodes").await.unwrap();
    let before = version().await;
    store.note_waiting(&id, 1, "Unschedulable", "0/3 nodes").await.unwrap();
    assert_eq!(version().await, before, "an equal reason isn't written again");
    store.note_waiting(&id, 1, "Unschedulable", "0/4 nodes").await.unwrap();
    assert_eq!(store.all().find(&id).await.unwrap().unwrap().message.as_deref(), Some("0/4 nodes"));
}

/// Others may put our labels and our finalizer on a pod of their own. Its log isn't the driver's.
#[sqlx::test]
async fn only_the_log_of_the_recorded_pod_is_archived(pool: PgPool) {
    let store = Store::new(pool.clone());
    let killed = with(&pool, &store, "state = 'KILLED', finished_at = now()").await;
    assert_eq!(store.log_to_keep(&killed, 1, "forged").await.unwrap(), None, "it never had a pod");

    let id = with(&pool, &store, &format!("{RETRIES}, state = 'RUNNING', pod_uid = 'first'")).await;
    assert_eq!(store.log_to_keep(&id, 1, "first").await.unwrap(), None, "it hasn't ended");
    assert!(store.advance(&id, 1, None, &evicted(), &of("first")).await.unwrap());
    for (attempt, uid, expected) in
        [(1, "first", Some(false)), (1, "forged", None), (2, "first", None), (2, "forged", None), (3, "forged", None)]
    {
        assert_eq!(store.log_to_keep(&id, attempt, uid).await.unwrap(), expected, "attempt {attempt}, {uid}");
    }
    store.keep_log(&id, 1, None, &[]).await.unwrap();
    assert_eq!(store.log_to_keep(&id, 1, "first").await.unwrap(), None, "it is archived already");

    sqlx::query("UPDATE submissions SET state = 'RUNNING', pod_uid = 'second' WHERE id = $1")
        .bind(id.as_str())
        .execute(&pool)
        .await
        .unwrap();
    let finished = Outcome { exit_code: Some(0), ..Outcome::new(State::Finished, "Completed", "exited") };
    assert!(store.advance(&id, 2, None, &StateChange::Ended(finished), &of("second")).await.unwrap());
    assert_eq!(store.log_to_keep(&id, 2, "second").await.unwrap(), Some(true));
    assert_eq!(store.log_to_keep(&id, 2, "forged").await.unwrap(), None);
}

#[sqlx::test]
async fn an_attempt_that_a_queue_takes_back_is_followed_by_another_and_uses_no_budget(pool: PgPool) {
    let store = Store::new(pool.clone());
    let id =
        with(&pool, &store, "max_retries_infrastructure = 0, max_retries_application = 0, start_timeout = 60").await;
    for attempt in 1..4 {
        let set = "UPDATE submissions SET state = 'RUNNING', claimed_by = NULL, pod_uid = 'uid'";
        sqlx::query(set).execute(&pool).await.unwrap();
        let end = StateChange::Ended(Outcome::new(State::Failed, EVICTED_BY_KUEUE, "preempted"));
        assert!(store.advance(&id, attempt, None, &end, &of("uid")).await.unwrap());
        assert_eq!(column::<i32>(&pool, &id, "attempt").await, attempt + 1);
    }
    assert_eq!(column::<i32>(&pool, &id, "retried_infrastructure + retried_application").await, 0);
    assert_eq!(column::<String>(&pool, &id, "state").await, "QUEUED");

    let fixed = "state = 'RUNNING', claimed_by = NULL, pod_uid = 'uid',
        request = '{\"sparkProperties\": {\"spark.kubernetes.driver.pod.name\": \"etl\"}}'";
    let id = with(&pool, &store, fixed).await;
    let end = StateChange::Ended(Outcome::new(State::Failed, EVICTED_BY_KUEUE, "preempted"));
    assert!(store.advance(&id, 1, None, &end, &of("uid")).await.unwrap());
    assert_eq!(column::<String>(&pool, &id, "state").await, "FAILED", "its pod has a name that another one could have");
}

#[sqlx::test]
async fn a_launch_that_a_queue_holds_is_due_when_the_queue_is_to_be_asked_again(pool: PgPool) {
    let store = Store::new(pool.clone());
    let id = with(&pool, &store, "start_timeout = 60, deadline = clock_timestamp()").await;
    let session = session(&store).await;
    let claimed = claim_one(&store, session).await;
    store.hold(&claimed, Duration::from_secs(30), "WaitingForQuota", "2 cores more needed").await.unwrap();
    assert_eq!(column::<String>(&pool, &id, "reason || ': ' || message").await, "WaitingForQuota: 2 cores more needed");
    let pause = seconds_until(&pool, &id, "not_before").await;
    assert!((1.0..=30.0).contains(&pause), "{pause}");
    assert!((seconds_until(&pool, &id, "deadline").await - pause - 60.0).abs() < 1.0, "the start timeout begins then");
    assert!(store.claim(session, 1, &[], &[]).await.unwrap().is_empty());

    assert!(!store.ask_again(&id, 2).await.unwrap(), "another attempt");
    assert!(store.ask_again(&id, 1).await.unwrap());
    assert!(!store.ask_again(&id, 1).await.unwrap(), "it is due already");
    let claimed = claim_one(&store, session).await;
    assert_eq!((claimed.id, claimed.failed_tries), (id, 0));
}

#[sqlx::test]
async fn the_changes_of_a_launch_are_read_with_its_attempt(pool: PgPool) {
    let store = Store::new(pool.clone());
    let id = with(&pool, &store, RETRIES).await;
    let session = session(&store).await;
    let first = claim_one(&store, session).await;
    let changes = serde_json::json!([{"by": "kueue", "driver": {"nodeSelector": {"pool": "spot"}}}]);
    let read = async || store.all().document(&id, Default::default()).await.unwrap().unwrap().launch_changes;
    assert_eq!(read().await, None);
    assert!(store.record_launch_changes(&first, &serde_json::json!([])).await.unwrap());
    assert!(store.record_launch_changes(&first, &changes).await.unwrap(), "a later try replaces them");
    assert_eq!(read().await.as_ref(), Some(&changes));
    store.record_pod(&id, 1, first.epoch, "u").await.unwrap();
    assert!(store.advance(&id, 1, None, &evicted(), &of("u")).await.unwrap());
    let all: Vec<_> = store.all().attempts(&id).await.unwrap().into_iter().map(|one| one.launch_changes).collect();
    assert_eq!(all, [Some(changes), None]);
    assert_eq!(read().await, None, "of the current attempt");
    assert!(!store.record_launch_changes(&first, &serde_json::json!([])).await.unwrap(), "the claim is over");
}

fn out_of_memory() -> StateChange {
    StateChange::Ended(Outcome { exit_code: Some(137), ..Outcome::new(State::Failed, "OOMKilled", "killed") })
}

/// Returns the state, the attempt, and a column.
pub(crate) async fn at(pool: &PgPool, store: &Store, id: &SubmissionId, what: &str) -> (State, i32, i32) {
    let record = store.all().find(id).await.unwrap().unwrap();
    (record.state, record.attempt, column(pool, id, what).await)
}

#[sqlx::test]
async fn memory_that_runs_out_has_a_budget_of_its_own(pool: PgPool) {
    let store = Store::new(pool.clone());
    let request = asking(&[("memoryGrowth.retries", "1")]);
    let id = with(&pool, &store, &format!("{request}, max_retries_application = 1")).await;
    let here = Placement::default();
    assert!(store.advance(&id, 1, None, &out_of_memory(), &here).await.unwrap());
    assert_eq!(at(&pool, &store, &id, "retried_memory").await, (State::Queued, 2, 1));
    assert!(store.advance(&id, 2, None, &exited(3), &here).await.unwrap());
    assert_eq!(at(&pool, &store, &id, "retried_application").await, (State::Queued, 3, 1));
    assert!(store.advance(&id, 3, None, &out_of_memory(), &here).await.unwrap());
    assert_eq!(at(&pool, &store, &id, "retried_memory").await, (State::Failed, 3, 1), "the budget is used up");
    let plain = with(&pool, &store, "max_retries_application = 1").await;
    assert!(store.advance(&plain, 1, None, &out_of_memory(), &here).await.unwrap());
    assert_eq!(at(&pool, &store, &plain, "retried_application").await, (State::Queued, 2, 1));
}

#[sqlx::test]
async fn an_application_that_lost_executors_for_want_of_memory_ran_out_of_it(pool: PgPool) {
    let store = Store::new(pool.clone());
    let here = Placement::default();
    for (ends, wanted) in [
        (&[("Error", 1)][..], (State::Failed, 1, 0)),
        // A worker of Python was killed in it.
        (&[("OOMKilled", 0)], (State::Queued, 2, 1)),
        (&[("Error", 1), ("Error", 52)], (State::Queued, 2, 1)),
    ] {
        let id = with(&pool, &store, &asking(&[("memoryGrowth.retries", "2")])).await;
        for (at, (reason, exit_code)) in (1_i64..).zip(ends) {
            sqlx::query(
                "INSERT INTO executors (submission_id, attempt, executor_id, pod_name, pod_uid, state, reason, exit_code)
                 VALUES ($1, 1, $2, 'p', 'u', 'FAILED', $3, $4)",
            )
            .bind(id.as_str())
            .bind(at)
            .bind(reason)
            .bind(exit_code)
            .execute(&pool)
            .await
            .unwrap();
        }
        assert!(store.advance(&id, 1, None, &exited(1), &here).await.unwrap());
        assert_eq!(at(&pool, &store, &id, "retried_memory").await, wanted, "{ends:?}");
        let (earlier, recorded) = store.earlier_attempts(&id, 2).await.unwrap();
        assert_eq!(
            (earlier.iter().filter(|attempt| attempt.memory.is_some()).count(), recorded),
            (usize::from(wanted.2 > 0), None)
        );
    }
}

#[sqlx::test]
async fn a_submission_is_restarted_after_the_ends_that_it_names(pool: PgPool) {
    let store = Store::new(pool.clone());
    let here = Placement::default();
    let finished = StateChange::Ended(Outcome { exit_code: Some(0), ..Outcome::new(State::Finished, "Completed", "") });
    let id = with(&pool, &store, &asking(&[("restart", "onFailure")])).await;
    for attempt in 1..=12 {
        assert!(store.advance(&id, attempt, None, &exited(1), &here).await.unwrap());
        assert_eq!(at(&pool, &store, &id, "restarts").await, (State::Queued, attempt + 1, attempt));
        assert!(!store.advance(&id, attempt, None, &exited(1), &here).await.unwrap(), "the attempt has ended");
    }
    assert!(seconds_until(&pool, &id, "not_before").await > 290.0);
    let last = events(&pool, &id).await.pop().unwrap();
    assert_eq!((last.0, last.1.as_str(), last.2.as_deref()), (13, "QUEUED", Some("Restart")));
    // A long run starts the pauses anew.
    sqlx::query("UPDATE submissions SET state = 'RUNNING', started_at = now() - interval '11 minutes'")
        .execute(&pool)
        .await
        .unwrap();
    assert!(store.advance(&id, 13, None, &evicted(), &here).await.unwrap());
    assert_eq!(at(&pool, &store, &id, "restarts").await, (State::Queued, 14, 1));
    assert!(seconds_until(&pool, &id, "not_before").await <= 10.0);
    assert!(store.advance(&id, 14, None, &finished, &here).await.unwrap());
    assert_eq!(at(&pool, &store, &id, "restarts").await, (State::Finished, 14, 1), "success ends it");

    let always = with(&pool, &store, &asking(&[("restart", "always")])).await;
    assert!(store.advance(&always, 1, None, &finished, &here).await.unwrap());
    assert_eq!(at(&pool, &store, &always, "restarts").await, (State::Queued, 2, 1));
    sqlx::query("UPDATE submissions SET state = 'KILLING' WHERE id = $1")
        .bind(always.as_str())
        .execute(&pool)
        .await
        .unwrap();
    assert!(store.advance(&always, 2, None, &finished, &here).await.unwrap());
    assert_eq!(at(&pool, &store, &always, "restarts").await.0, State::Finished, "a kill was accepted");
}

#[sqlx::test]
async fn secrets_of_a_submission_that_is_restarted_are_kept(pool: PgPool) {
    const KUEUE: &str = "admitted by Kueue";
    let store = Store::new(pool.clone());
    for (request, wanted) in [
        (asking(&[("restart", "always")]), true),
        (asking(&[("memoryGrowth.retries", "1")]), true),
        (asking(&[]), false),
        // Kueue may take the quota of what it has admitted back, however often.
        (KUEUE.to_owned(), true),
    ] {
        let drawn = store.draw().await.unwrap();
        let id = drawn.id.clone();
        let sealed = Some(Sealed { key: "k".to_owned(), text: b"secret".to_vec() });
        store.accept(NewSubmission { sealed, ..new(drawn, "pod-1") }).await.unwrap();
        let set = match request.as_str() {
            KUEUE => {
                "INSERT INTO attempt_overlays (submission_id, attempt, changes) VALUES ($1, 1, '[{\"by\": \"kueue\"}]')"
                    .to_owned()
            }
            columns => format!("UPDATE submissions SET {columns} WHERE id = $1"),
        };
        sqlx::query(sqlx::AssertSqlSafe(set)).bind(id.as_str()).execute(&pool).await.unwrap();
        let running = StateChange::Running;
        assert!(store.advance(&id, 1, None, &running, &of("u")).await.unwrap());
        let kept: bool = sqlx::query_scalar("SELECT sealed IS NOT NULL FROM manifests WHERE submission_id = $1")
            .bind(id.as_str())
            .fetch_one(&pool)
            .await
            .unwrap();
        assert_eq!(kept, wanted, "{request}");
    }
}
