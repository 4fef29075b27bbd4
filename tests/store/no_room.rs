//! Attempts that follow one for which there was no room, on a real Postgres.

use sparkgate::{
    store::{Scope, Store, Task},
    submission::{KillCause, Outcome, Placement, State, StateChange, SubmissionId},
};
use sqlx::PgPool;

use crate::{
    attempts::{at, column, events, seconds_until, with},
    support::{claim_one, session},
};

const WAITS_FOR_A_NODE: &str = "reason = 'Unschedulable', message = '0/3 nodes are available'";
const WAITS_FOR_A_QUOTA: &str = "reason = 'QuotaExceeded', message = 'exceeded quota: q'";

/// Returns the end of a driver that was killed because it didn't start.
fn not_started() -> StateChange {
    StateChange::Ended(Outcome::killed(&KillCause::StartTimeout("not running within 1m".to_owned())))
}

/// Puts the submission into a state in which its start timeout is over.
async fn late(pool: &PgPool, id: &SubmissionId, state: &str, waits: &str) {
    let set = format!("UPDATE submissions SET state = '{state}', deadline = now(), {waits} WHERE id = $1");
    sqlx::query(sqlx::AssertSqlSafe(set)).bind(id.as_str()).execute(pool).await.unwrap();
}

async fn kill_overdue(store: &Store) {
    assert_eq!(store.kill_overdue(10, None).await.unwrap().killed, 1);
}

#[sqlx::test]
async fn an_attempt_that_found_no_node_in_time_is_followed_by_another_while_its_budget_lasts(pool: PgPool) {
    let store = Store::new(pool.clone());
    let id = with(&pool, &store, "max_retries_capacity = 1, start_timeout = 60").await;
    let worker = session(&store).await;
    late(&pool, &id, "PENDING", WAITS_FOR_A_NODE).await;
    kill_overdue(&store).await;
    assert_eq!(at(&pool, &store, &id, "retried_capacity").await, (State::Killing, 1, 0));
    let claimed = claim_one(&store, worker).await;
    assert_eq!(claimed.task, Task::Kill);
    assert!(store.advance(&id, 1, Some(claimed.epoch), &not_started(), &Placement::default()).await.unwrap());
    assert_eq!(at(&pool, &store, &id, "retried_capacity").await, (State::Queued, 2, 1));
    assert!(!store.advance(&id, 1, None, &not_started(), &Placement::default()).await.unwrap(), "it has ended");
    let pause = seconds_until(&pool, &id, "not_before").await;
    assert!((9.0..=10.0).contains(&pause), "{pause}");
    assert!((pause + 59.0..pause + 61.0).contains(&seconds_until(&pool, &id, "deadline").await), "after the pause");
    assert_eq!(column::<Option<String>>(&pool, &id, "kill_cause").await, None);
    let last: Vec<_> = events(&pool, &id).await.split_off(2);
    let event = |attempt, state: &str, reason: &str| (attempt, state.to_owned(), Some(reason.to_owned()));
    assert_eq!(last, [event(1, "KILLED", "StartTimeout"), event(2, "QUEUED", "Retry")]);

    late(&pool, &id, "PENDING", WAITS_FOR_A_NODE).await;
    kill_overdue(&store).await;
    assert!(store.advance(&id, 2, None, &not_started(), &Placement::default()).await.unwrap());
    assert_eq!(at(&pool, &store, &id, "retried_capacity").await, (State::Killed, 2, 1), "the budget is used up");
}

#[sqlx::test]
async fn what_an_attempt_waited_for_decides_which_budget_it_uses(pool: PgPool) {
    let store = Store::new(pool.clone());
    let both = "max_retries_capacity = 3, max_retries_quota = 3";
    let image = "reason = 'ImagePullBackOff', message = 'no such image'";
    for (state, waits, wanted) in [
        ("PENDING", WAITS_FOR_A_NODE, (State::Queued, 2, 10)),
        ("LAUNCHING", WAITS_FOR_A_QUOTA, (State::Queued, 2, 1)),
        ("PENDING", image, (State::Killed, 1, 0)),
        ("PENDING", "reason = NULL", (State::Killed, 1, 0)),
    ] {
        let id = with(&pool, &store, &format!("{both}, max_retries_infrastructure = 3")).await;
        late(&pool, &id, state, waits).await;
        kill_overdue(&store).await;
        assert!(store.advance(&id, 1, None, &not_started(), &Placement::default()).await.unwrap());
        let used = at(&pool, &store, &id, "10 * retried_capacity + retried_quota + 100 * retried_infrastructure").await;
        assert_eq!(used, wanted, "{waits}");
    }
    let other = with(&pool, &store, "max_retries_quota = 3").await;
    late(&pool, &other, "PENDING", WAITS_FOR_A_NODE).await;
    kill_overdue(&store).await;
    assert!(store.advance(&other, 1, None, &not_started(), &Placement::default()).await.unwrap());
    assert_eq!(at(&pool, &store, &other, "retried_quota").await, (State::Killed, 1, 0), "another budget doesn't help");
}

#[sqlx::test]
async fn an_end_for_lack_of_room_uses_its_budget_and_pauses_grow(pool: PgPool) {
    let store = Store::new(pool.clone());
    let refused = "pods \"pi\" is forbidden: exceeded quota: q, requested: pods=9, used: pods=0, limited: pods=5";
    let ends = [
        ("max_retries_quota", "retried_quota", Outcome::new(State::Error, "Forbidden", refused)),
        ("max_retries_capacity", "retried_capacity", Outcome::new(State::Failed, "ResourceReservationTimeout", "")),
    ];
    for (budget, used, outcome) in ends {
        let id = with(&pool, &store, &format!("{budget} = 2")).await;
        let (end, here) = (StateChange::Ended(outcome.clone()), Placement::default());
        for (attempt, pause) in [(1, 10.0), (2, 20.0)] {
            assert!(store.advance(&id, attempt, None, &end, &here).await.unwrap());
            assert_eq!(at(&pool, &store, &id, used).await, (State::Queued, attempt + 1, attempt));
            let left = seconds_until(&pool, &id, "not_before").await;
            assert!((pause - 1.0..=pause).contains(&left), "{left}");
        }
        assert!(store.advance(&id, 3, None, &end, &here).await.unwrap());
        assert_eq!(at(&pool, &store, &id, used).await, (outcome.state, 3, 2), "the budget is used up");
        let plain = with(&pool, &store, "max_retries_infrastructure = 2").await;
        assert!(store.advance(&plain, 1, None, &end, &here).await.unwrap());
        assert_eq!(at(&pool, &store, &plain, used).await, (outcome.state, 1, 0), "without a budget");
    }
}

#[sqlx::test]
async fn a_kill_ends_a_submission_of_which_only_an_attempt_was_being_killed(pool: PgPool) {
    let store = Store::new(pool.clone());
    for all in [false, true] {
        let id = with(&pool, &store, "max_retries_capacity = 3").await;
        late(&pool, &id, "PENDING", WAITS_FOR_A_NODE).await;
        kill_overdue(&store).await;
        let kill = async || match all {
            true => store.all().request_kill_of_all(None).await.unwrap(),
            false => u64::from(store.all().request_kill(&id, &Scope::installation(), None).await.unwrap().live),
        };
        assert_eq!(kill().await, 1);
        assert_eq!(column::<Option<String>>(&pool, &id, "no_room").await, None);
        assert_eq!(kill().await, u64::from(!all), "it is being killed");
        assert!(store.advance(&id, 1, None, &not_started(), &Placement::default()).await.unwrap());
        assert_eq!(at(&pool, &store, &id, "retried_capacity").await, (State::Killed, 1, 0));
    }
}

/// The start timeout was over when the driver started after all: it may have worked.
#[sqlx::test]
async fn a_driver_that_started_at_the_last_moment_is_not_run_again(pool: PgPool) {
    let store = Store::new(pool.clone());
    let killed = Outcome::killed(&KillCause::StartTimeout("late".to_owned()));
    let started = Placement { started_at: Some(chrono::Utc::now()), ..Placement::default() };
    for (outcome, placement) in [
        (Outcome { exit_code: Some(143), ..killed.clone() }, Placement::default()),
        (killed, started),
        (Outcome { exit_code: Some(0), ..Outcome::new(State::Finished, "Completed", "") }, Placement::default()),
    ] {
        let id = with(&pool, &store, "max_retries_capacity = 3").await;
        late(&pool, &id, "PENDING", WAITS_FOR_A_NODE).await;
        kill_overdue(&store).await;
        let state = outcome.state;
        assert!(store.advance(&id, 1, None, &StateChange::Ended(outcome), &placement).await.unwrap());
        assert_eq!(at(&pool, &store, &id, "retried_capacity").await, (state, 1, 0));
    }
}

#[sqlx::test]
async fn encrypted_objects_are_kept_for_an_attempt_that_follows_a_kill(pool: PgPool) {
    let store = Store::new(pool.clone());
    for (budget, kept) in [(1, true), (0, false)] {
        let id = with(&pool, &store, &format!("max_retries_capacity = {budget}, sealed = true")).await;
        sqlx::query("UPDATE manifests SET sealed = 'x', sealed_key = 'k' WHERE submission_id = $1")
            .bind(id.as_str())
            .execute(&pool)
            .await
            .unwrap();
        late(&pool, &id, "PENDING", WAITS_FOR_A_NODE).await;
        kill_overdue(&store).await;
        let found: bool = sqlx::query_scalar("SELECT sealed IS NOT NULL FROM manifests WHERE submission_id = $1")
            .bind(id.as_str())
            .fetch_one(&pool)
            .await
            .unwrap();
        assert_eq!(found, kept, "{budget}");
    }
}
