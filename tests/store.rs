//! The store on a real Postgres: accepting, claims, guarded moves, kills.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::time::Duration;

use sparkgate::{
    spark::{CreateSubmissionRequest, DriverNames},
    store::{NewSubmission, Store, Task},
    submission::{Outcome, Placement, Progress, State, SubmissionId},
};
use sqlx::PgPool;
use uuid::Uuid;

const LEASE: Duration = Duration::from_secs(60);

fn new(pod: &str) -> NewSubmission {
    NewSubmission {
        request: CreateSubmissionRequest { app_resource: "local:///app.jar".to_owned(), ..Default::default() },
        spark_version: "4.3.0".parse().unwrap(),
        spark_user: "tester".to_owned(),
        namespace: "spark".to_owned(),
        names: DriverNames {
            app_id: "spark-1".to_owned(),
            resource_prefix: "p".to_owned(),
            driver_pod: pod.to_owned(),
            driver_service: "s".to_owned(),
            config_map: "c".to_owned(),
            local_dir: Uuid::nil(),
        },
        submitter: Default::default(),
    }
}

async fn events(pool: &PgPool, id: &SubmissionId) -> Vec<String> {
    sqlx::query_scalar("SELECT state FROM submission_events WHERE submission_id = $1 ORDER BY id")
        .bind(id.as_str())
        .fetch_all(pool)
        .await
        .unwrap()
}

async fn state(store: &Store, id: &SubmissionId) -> State {
    store.find(id).await.unwrap().unwrap().state
}

fn ended(state: State, code: i32) -> Progress {
    Progress::Ended(Outcome { exit_code: Some(code), ..Outcome::new(state, "Error", "over") })
}

#[sqlx::test]
async fn an_accepted_submission_has_a_spark_id_and_its_first_event(pool: PgPool) {
    let store = Store::new(pool.clone());
    let first = store.accept(&new("a")).await.unwrap();
    let second = store.accept(&new("b")).await.unwrap();
    assert!(first.as_str().ends_with("-0000") && second.as_str().ends_with("-0001"), "{first} {second}");
    assert_eq!(first.as_str().len(), "driver-20260101000000-0000".len());
    assert_eq!(events(&pool, &first).await, ["QUEUED"]);
    sqlx::query("SELECT setval('submission_number', 123455)").execute(&pool).await.unwrap();
    assert!(store.accept(&new("c")).await.unwrap().as_str().ends_with("-123456"));
}

#[sqlx::test]
async fn a_claim_is_exclusive_until_it_runs_out(pool: PgPool) {
    let store = Store::new(pool.clone());
    let (one, two) = (Uuid::new_v4(), Uuid::new_v4());
    let id = store.accept(&new("a")).await.unwrap();
    let claimed = store.claim(one, LEASE, 10).await.unwrap();
    assert_eq!(claimed.len(), 1);
    assert_eq!((&claimed[0].id, claimed[0].task), (&id, Task::Launch));
    assert_eq!(claimed[0].request.app_resource, "local:///app.jar");
    assert_eq!(state(&store, &id).await, State::Launching);
    assert!(store.claim(two, LEASE, 10).await.unwrap().is_empty());

    store.release(&id, two).await.unwrap();
    assert!(store.claim(two, LEASE, 10).await.unwrap().is_empty(), "only its holder can give a claim back");

    sqlx::query("UPDATE submissions SET claimed_until = now() - interval '1 s'").execute(&pool).await.unwrap();
    assert_eq!(store.claim(two, LEASE, 10).await.unwrap().len(), 1, "the holder died");
    assert_eq!(events(&pool, &id).await, ["QUEUED", "LAUNCHING"]);
}

#[sqlx::test]
async fn a_submission_put_off_waits_and_tells_why(pool: PgPool) {
    let store = Store::new(pool.clone());
    let worker = Uuid::new_v4();
    let id = store.accept(&new("a")).await.unwrap();
    let claimed = store.claim(worker, LEASE, 10).await.unwrap().remove(0);
    store.retry_later(&claimed, worker, LEASE, Some("no route to the cluster")).await.unwrap();
    assert!(store.claim(worker, LEASE, 10).await.unwrap().is_empty());
    assert_eq!(store.find(&id).await.unwrap().unwrap().message.as_deref(), Some("no route to the cluster"));

    store.request_kill(&id).await.unwrap();
    let claimed = store.claim(worker, LEASE, 10).await.unwrap();
    assert_eq!(claimed[0].task, Task::Kill, "a kill doesn't wait for the back-off");
    assert_eq!(claimed[0].failed_tries, 1);
}

#[sqlx::test]
async fn a_kill_that_comes_during_a_launch_does_not_wait_for_its_back_off(pool: PgPool) {
    let store = Store::new(pool.clone());
    let worker = Uuid::new_v4();
    let id = store.accept(&new("a")).await.unwrap();
    let claimed = store.claim(worker, LEASE, 10).await.unwrap().remove(0);
    store.request_kill(&id).await.unwrap();
    store.retry_later(&claimed, worker, LEASE, Some("no route to the cluster")).await.unwrap();
    let claimed = store.claim(worker, LEASE, 10).await.unwrap().remove(0);
    assert_eq!(claimed.task, Task::Kill);
    store.retry_later(&claimed, worker, LEASE, Some("still none")).await.unwrap();
    assert!(store.claim(worker, LEASE, 10).await.unwrap().is_empty(), "a kill that fails waits as well");
}

#[sqlx::test]
async fn the_first_pod_of_an_attempt_is_its_only_one(pool: PgPool) {
    let store = Store::new(pool.clone());
    let id = store.accept(&new("a")).await.unwrap();
    assert!(store.record_pod(&id, 1, "one").await.unwrap());
    assert!(store.record_pod(&id, 1, "one").await.unwrap(), "again");
    assert!(!store.record_pod(&id, 1, "two").await.unwrap());
    assert_eq!(store.find(&id).await.unwrap().unwrap().pod_uid.as_deref(), Some("one"));
}

#[sqlx::test]
async fn late_and_repeated_writes_change_nothing(pool: PgPool) {
    let store = Store::new(pool.clone());
    let id = store.accept(&new("a")).await.unwrap();
    let here = Placement { pod_uid: Some("u".to_owned()), ..Placement::default() };
    assert!(store.advance(&id, 1, &Progress::Running, &here).await.unwrap());
    assert!(!store.advance(&id, 1, &Progress::Launched, &Placement::default()).await.unwrap(), "late");
    assert!(!store.advance(&id, 2, &ended(State::Failed, 1), &here).await.unwrap(), "another attempt");
    assert!(store.advance(&id, 1, &ended(State::Failed, 3), &here).await.unwrap());
    assert!(!store.advance(&id, 1, &ended(State::Finished, 0), &here).await.unwrap(), "ends absorb");

    let record = store.find(&id).await.unwrap().unwrap();
    assert_eq!((record.state, record.exit_code, record.pod_uid.as_deref()), (State::Failed, Some(3), Some("u")));
    assert!(record.started_at.is_some());
    assert_eq!(events(&pool, &id).await, ["QUEUED", "RUNNING", "FAILED"]);
}

#[sqlx::test]
async fn a_kill_is_at_once_before_a_launch_and_a_task_after_it(pool: PgPool) {
    let store = Store::new(pool.clone());
    let worker = Uuid::new_v4();
    let launched = store.accept(&new("a")).await.unwrap();
    store.claim(worker, LEASE, 10).await.unwrap();
    let queued = store.accept(&new("b")).await.unwrap();

    assert!(store.request_kill(&queued).await.unwrap());
    assert_eq!(state(&store, &queued).await, State::Killed);
    assert!(!store.request_kill(&queued).await.unwrap(), "it has ended");

    assert!(store.request_kill(&launched).await.unwrap());
    assert!(store.request_kill(&launched).await.unwrap(), "asking twice is no error");
    assert_eq!(state(&store, &launched).await, State::Killing);
    assert!(store.claim(worker, LEASE, 10).await.unwrap().is_empty(), "its launcher still holds it");
    assert!(!store.advance(&launched, 1, &Progress::Launched, &Placement::default()).await.unwrap());
    store.release(&launched, worker).await.unwrap();
    assert_eq!(store.claim(worker, LEASE, 10).await.unwrap()[0].task, Task::Kill);
    assert_eq!(events(&pool, &launched).await, ["QUEUED", "LAUNCHING", "KILLING"]);

    assert!(!store.request_kill(&"driver-20000101000000-9999".parse().unwrap()).await.unwrap());
}

#[sqlx::test]
async fn kill_all_and_clear_leave_records(pool: PgPool) {
    let store = Store::new(pool.clone());
    let ids = [store.accept(&new("a")).await.unwrap(), store.accept(&new("b")).await.unwrap()];
    assert_eq!(store.request_kill_of_all().await.unwrap(), 2);
    assert_eq!(store.request_kill_of_all().await.unwrap(), 0);
    assert_eq!(store.clear_ended().await.unwrap(), 2);
    for id in &ids {
        assert!(store.find(id).await.unwrap().unwrap().cleared);
        assert_eq!(events(&pool, id).await, ["QUEUED", "KILLED"]);
    }
}

#[sqlx::test]
async fn a_row_that_cannot_be_read_does_not_stop_the_others(pool: PgPool) {
    let store = Store::new(pool.clone());
    store.accept(&new("a")).await.unwrap();
    store.accept(&new("a")).await.unwrap();
    let good = store.accept(&new("b")).await.unwrap();
    sqlx::query("UPDATE submissions SET spark_version = '1.6' WHERE number = 0").execute(&pool).await.unwrap();
    sqlx::query("UPDATE submissions SET names = '{}' WHERE number = 1").execute(&pool).await.unwrap();
    let claimed = store.claim(Uuid::new_v4(), LEASE, 10).await.unwrap();
    assert_eq!(claimed.iter().map(|one| &one.id).collect::<Vec<_>>(), [&good]);
}
