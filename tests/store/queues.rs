//! Queues: what waits, what runs, and admissions.

mod places;

use std::collections::BTreeMap;

use sparkgate::{
    store::{
        Accepted, Cost, DatabaseSettings, Destination, Filter, InQueue, Largest, Matching, Move, NewSubmission,
        Options, Place, QueueState, ReachedBound, Scope, Store, WaitingHead, replica,
    },
    submission::{Outcome, Placement, State, StateChange, SubmissionId},
};
use sqlx::{
    ConnectOptions, PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
    types::Json,
};
use uuid::Uuid;

use crate::support::{
    LEASE, claim_one, draw, names, new, publish_statistics, rows_read, rows_read_until_the_end, session, state,
};

const QUEUES: &str = "queues";

fn cost(cores: i64) -> Cost {
    Cost {
        pods: 3,
        millicores: cores * 1000,
        memory_bytes: 3 << 30,
        driver_millicores: 1000,
        driver_memory_bytes: 1 << 30,
        ..Cost::default()
    }
}

fn in_queue(queue: &str) -> InQueue {
    InQueue { queue: queue.to_owned(), priority: 0, cost: cost(3), max_queued: None, timeout: None }
}

async fn accept(store: &Store, tenant: &str, queue: InQueue) -> SubmissionId {
    let options = Options { start_timeout: Some(60), max_retries_infrastructure: 1, ..Options::default() };
    let new = NewSubmission {
        tenant: tenant.to_owned(),
        namespace: tenant.to_owned(),
        queue: Some(queue),
        options,
        ..new(draw(store).await, "pod-1")
    };
    let id = new.drawn.id.clone();
    assert!(matches!(store.accept(new).await.unwrap(), Accepted::New(_)));
    id
}

/// Begins a session that holds the lease of admissions.
async fn admitter(store: &Store) -> Uuid {
    let session = session(store).await;
    while !store.acquire_lease(QUEUES, session, LEASE).await.is_ok_and(|taken| taken) {}
    session
}

async fn places(store: &Store) -> Vec<Place> {
    store.queue_round(10, &[], &[]).await.unwrap().places
}

/// Admits all that waits. Returns how many there were.
async fn admit_all(store: &Store, session: Uuid) -> usize {
    let round = store.queue_round(1000, &[], &[]).await.unwrap();
    let picks =
        round.places.iter().flat_map(|place| &place.waiting).map(|one| (one.number, one.attempt)).collect::<Vec<_>>();
    store.admit((session, QUEUES), round.version, &picks).await.unwrap().unwrap().len()
}

async fn text(pool: &PgPool, column: &str, id: &SubmissionId) -> Option<String> {
    let statement = sqlx::AssertSqlSafe(format!("SELECT ({column})::text FROM submissions WHERE id = $1"));
    sqlx::query_scalar(statement).bind(id.as_str()).fetch_one(pool).await.unwrap()
}

/// The row looks claimed to this release and to those before, which know no queues.
#[sqlx::test]
async fn a_submission_in_a_queue_is_claimed_once_it_is_admitted(pool: PgPool) {
    let store = Store::new(pool.clone());
    let session = admitter(&store).await;
    let extended = [("nvidia.com/gpu".to_owned(), 2)].into();
    let cost = Cost { extended, ..cost(3) };
    let id = accept(&store, "red", InQueue { priority: 7, cost, ..in_queue("night") }).await;
    assert!(store.claim(session, 10, &[], &[]).await.unwrap().is_empty());
    assert_eq!(text(&pool, "claimed_by", &id).await.unwrap(), "00000000-0000-0000-0000-000000000002");
    assert_eq!(text(&pool, "deadline", &id).await, None, "the start timeout hasn't begun");
    let waiting = places(&store).await.remove(0);
    assert_eq!((waiting.queue.as_str(), waiting.tenant.as_str(), waiting.submissions), ("night", "red", 0));
    assert_eq!((waiting.waiting[0].pods, waiting.waiting[0].millicores), (3, 3000));
    assert_eq!(waiting.waiting[0].extended.as_ref().unwrap()["nvidia.com/gpu"], 2);
    assert_eq!(admit_all(&store, session).await, 1);
    let running = places(&store).await.remove(0);
    assert_eq!((running.submissions, running.pods, running.millicores, running.memory_bytes), (1, 3, 3000, 3 << 30));
    assert_eq!((running.extended["nvidia.com/gpu"], running.waiting.len()), (2, 0));
    assert!(text(&pool, "deadline", &id).await.is_some());
    assert_eq!(claim_one(&store, session).await.id, id);
    let read = store.all().submission(&id).await.unwrap().unwrap();
    assert_eq!((read.queue.as_deref(), read.priority, read.admitted_at.is_some()), (Some("night"), Some(7), true));
}

/// The earlier decision is that of another replica, or of this one in a statement whose reply was lost.
#[sqlx::test]
async fn a_decision_for_an_older_round_admits_nothing(pool: PgPool) {
    let store = Store::new(pool.clone());
    let session = admitter(&store).await;
    for _ in 0..2 {
        accept(&store, "red", in_queue("night")).await;
    }
    let round = store.queue_round(10, &[], &[]).await.unwrap();
    let picks: Vec<_> = round.places[0].waiting.iter().map(|one| (one.number, one.attempt)).collect();
    let admit = |pick: (i64, i32)| {
        let store = store.clone();
        async move { store.admit((session, QUEUES), round.version, &[pick]).await.unwrap() }
    };
    let (one, other) = tokio::join!(admit(picks[0]), admit(picks[1]));
    assert_eq!([one.is_some(), other.is_some()].iter().filter(|is_made| **is_made).count(), 1, "{one:?} {other:?}");
    assert_eq!(places(&store).await[0].submissions, 1);
}

#[sqlx::test]
async fn a_replica_without_the_lease_admits_nothing(pool: PgPool) {
    let store = Store::new(pool.clone());
    let other = session(&store).await;
    accept(&store, "red", in_queue("night")).await;
    let round = store.queue_round(10, &[], &[]).await.unwrap();
    let pick = (round.places[0].waiting[0].number, 1);
    assert_eq!(store.admit((other, QUEUES), round.version, &[pick]).await.unwrap(), None);
    let session = admitter(&store).await;
    assert_eq!(store.admit((session, QUEUES), round.version, &[pick]).await.unwrap().unwrap().len(), 1);
}

#[sqlx::test]
async fn another_attempt_and_a_full_quota_need_another_admission(pool: PgPool) {
    let store = Store::new(pool.clone());
    let session = admitter(&store).await;
    let id = accept(&store, "red", in_queue("night")).await;
    admit_all(&store, session).await;
    let claimed = claim_one(&store, session).await;
    store.wait_for_room(&claimed, "QuotaExceeded", "full").await.unwrap();
    assert_eq!((places(&store).await[0].submissions, places(&store).await[0].waiting.len()), (0, 1));
    assert!(store.claim(session, 10, &[], &[]).await.unwrap().is_empty());
    assert!(text(&pool, "deadline", &id).await.is_some(), "the start timeout goes on");
    admit_all(&store, session).await;
    let claimed = claim_one(&store, session).await;
    store.record_pod(&id, 1, claimed.epoch, "u").await.unwrap();
    // Its pod exists: it keeps its place.
    store.wait_for_room(&claimed, "QuotaExceeded", "full").await.unwrap();
    assert_eq!(places(&store).await[0].submissions, 1);
    let lost = StateChange::Ended(Outcome::pod_gone());
    assert!(store.advance(&id, 1, None, &lost, &Placement::default()).await.unwrap());
    assert_eq!(text(&pool, "attempt || state || (admitted_at IS NULL)", &id).await.unwrap(), "2QUEUEDtrue");
    assert!(places(&store).await[0].waiting.is_empty(), "it pauses");
    sqlx::query("UPDATE submissions SET not_before = NULL").execute(&pool).await.unwrap();
    assert_eq!(places(&store).await[0].waiting[0].attempt, 2);
    assert!(store.claim(session, 10, &[], &[]).await.unwrap().is_empty());
    admit_all(&store, session).await;
    assert_eq!(claim_one(&store, session).await.attempt, 2);
}

#[sqlx::test]
async fn a_kill_of_a_submission_that_waits_is_carried_out(pool: PgPool) {
    let store = Store::new(pool.clone());
    let session = admitter(&store).await;
    let queued = accept(&store, "red", in_queue("night")).await;
    store.all().request_kill(&queued, &Scope::installation(), None).await.unwrap();
    assert_eq!(state(&store, &queued).await, State::Killed);
    let returned = accept(&store, "red", in_queue("night")).await;
    admit_all(&store, session).await;
    let claimed = claim_one(&store, session).await;
    store.wait_for_room(&claimed, "QuotaExceeded", "full").await.unwrap();
    store.all().request_kill(&returned, &Scope::installation(), None).await.unwrap();
    assert_eq!(state(&store, &returned).await, State::Killing);
    assert!(places(&store).await.iter().all(|place| place.waiting.is_empty()));
    assert_eq!(claim_one(&store, session).await.id, returned, "a kill needs no admission");
}

#[sqlx::test]
async fn priority_decides_and_then_the_order_of_acceptance(pool: PgPool) {
    let store = Store::new(pool);
    let priorities = [0, 5, 0, 5];
    let mut ids = Vec::new();
    for priority in priorities {
        ids.push(accept(&store, "red", InQueue { priority, ..in_queue("night") }).await);
    }
    let numbers: Vec<_> = places(&store).await[0].waiting.iter().map(|one| one.number).collect();
    let mut of = Vec::new();
    for at in [1, 3, 0, 2] {
        of.push(store.all().submission(&ids[at]).await.unwrap().unwrap().number);
    }
    assert_eq!(numbers, of);
    let read = store.all().document(&ids[2], Default::default()).await.unwrap().unwrap().standing.unwrap();
    assert_eq!((read.ahead, read.state, read.history.estimate(3)), (Some(3), None, None));
}

#[sqlx::test]
async fn an_admission_after_a_wait_is_an_event(pool: PgPool) {
    let store = Store::new(pool.clone());
    let session = admitter(&store).await;
    let id = accept(&store, "red", in_queue("night")).await;
    sqlx::query("UPDATE submissions SET queued_at = now() - interval '1 min'").execute(&pool).await.unwrap();
    assert_eq!(admit_all(&store, session).await, 1);
    let event =
        "SELECT state, reason, message FROM submission_events WHERE submission_id = $1 ORDER BY id DESC LIMIT 1";
    let event: (String, String, String) = sqlx::query_as(event).bind(id.as_str()).fetch_one(&pool).await.unwrap();
    assert_eq!((event.0.as_str(), event.1.as_str()), ("QUEUED", "Admitted"));
    assert!(event.2.starts_with("admitted by queue night after 6"), "{event:?}");
}

#[sqlx::test]
async fn figures_have_the_backlogs_of_queues(pool: PgPool) {
    let store = Store::new(pool.clone());
    let session = admitter(&store).await;
    for tenant in ["red", "red", "red", "blue"] {
        accept(&store, tenant, in_queue("night")).await;
    }
    let held = accept(&store, "red", in_queue("day")).await;
    store.all().hold(&held, &Scope::installation(), ("corp:ann", None), None).await.unwrap();
    let round = store.queue_round(1, &[], &[]).await.unwrap();
    let first = &round.places.iter().find(|place| place.tenant == "red" && place.queue == "night").unwrap().waiting[0];
    store.admit((session, QUEUES), round.version, &[(first.number, 1)]).await.unwrap().unwrap();
    sqlx::query("UPDATE submissions SET queued_at = now() - interval '1 hour'").execute(&pool).await.unwrap();
    let (live, backlogs) = store.figures().await.unwrap();
    let live: Vec<_> = live.iter().map(|one| (one.tenant.as_str(), one.state.as_str(), one.count)).collect();
    assert_eq!(live, [("blue", "QUEUED", 1), ("red", "QUEUED", 4)], "each tenant and state once");
    let found: Vec<_> = backlogs.iter().map(|one| (&*one.queue, &*one.tenant, one.waiting, one.held)).collect();
    assert_eq!(found, [("day", "red", 0, 1), ("night", "blue", 1, 0), ("night", "red", 2, 0)]);
    let hours: Vec<_> = backlogs.iter().map(|one| one.oldest.map(|seconds| (seconds / 60.0).round() >= 60.0)).collect();
    assert_eq!(hours, [None, Some(true), Some(true)]);
    let read = store.queue_backlogs().await.unwrap();
    let read: Vec<_> = read.iter().map(|one| (&*one.queue, &*one.tenant, one.waiting, one.held)).collect();
    assert_eq!(read, found);
}

#[sqlx::test]
async fn a_learned_capacity_stays_until_another_one_is_learned(pool: PgPool) {
    let store = Store::new(pool);
    assert!(store.queue_entrance("night").await.unwrap().capacity.is_empty());
    let capacity: BTreeMap<String, u64> = [("cores".to_owned(), 4000), ("nvidia.com/gpu".to_owned(), 2)].into();
    assert!(store.set_queue_capacity(&capacity).await.unwrap());
    assert!(!store.set_queue_capacity(&capacity).await.unwrap(), "it is the same");
    assert_eq!(store.queue_entrance("night").await.unwrap().capacity, capacity);
    assert_eq!(store.queue_round(1, &[], &[]).await.unwrap().capacity, capacity);
}

#[sqlx::test]
async fn a_held_submission_waits_until_it_is_released(pool: PgPool) {
    let store = Store::new(pool.clone());
    let session = admitter(&store).await;
    let plain = crate::support::accept(&store, "pod-1").await;
    let queued = accept(&store, "red", in_queue("night")).await;
    let all = store.all();
    for id in [&plain, &queued] {
        let answer = all.hold(id, &Scope::installation(), ("corp:ann", None), Some("wait for data")).await.unwrap();
        assert!(answer.changed && answer.allowed);
        let held = answer.submission.unwrap().document.unwrap();
        assert_eq!((held.state, held.held.unwrap().by.as_str()), (State::Queued, "corp:ann"));
        let again = all.hold(id, &Scope::installation(), ("corp:bob", None), None).await.unwrap();
        assert!(!again.changed && again.allowed);
    }
    assert!(store.claim(session, 10, &[], &[]).await.unwrap().is_empty());
    assert!(places(&store).await[0].waiting.is_empty());
    let no_tenant = Scope::of(vec![], vec![], "");
    assert!(!all.release_held(&plain, &no_tenant, None).await.unwrap().allowed);
    assert!(all.release_held(&plain, &Scope::installation(), None).await.unwrap().changed);
    assert_eq!(claim_one(&store, session).await.id, plain);
    let everything = Filter::default();
    let matching = Matching { filter: &everything, after: None, limit: 9 };
    assert_eq!(all.release_next(matching, None).await.unwrap().ids, std::slice::from_ref(&queued));
    assert_eq!(admit_all(&store, session).await, 1);
    let claimed = store.claim(session, 10, &[], &[plain]).await.unwrap();
    assert_eq!(claimed.iter().map(|one| &one.id).collect::<Vec<_>>(), [&queued]);
    let events: Vec<String> = sqlx::query_scalar(
        "SELECT state || coalesce(' ' || reason, '') FROM submission_events WHERE submission_id = $1 ORDER BY id",
    )
    .bind(queued.as_str())
    .fetch_all(&pool)
    .await
    .unwrap();
    assert_eq!(events, ["QUEUED", "QUEUED Held", "QUEUED Released", "LAUNCHING"]);
    assert!(
        !all.hold(&queued, &Scope::installation(), ("corp:ann", None), None).await.unwrap().changed,
        "it is launched"
    );
    assert!(all.hold_next(matching, ("corp:ann", None), None).await.unwrap().ids.is_empty());
}

/// The decision was about the other queue, whose caps have room.
#[sqlx::test]
async fn a_move_to_another_queue_makes_earlier_decisions_void(pool: PgPool) {
    let store = Store::new(pool.clone());
    let session = admitter(&store).await;
    let id = accept(&store, "red", in_queue("day")).await;
    let round = store.queue_round(10, &[], &[]).await.unwrap();
    let pick = (round.places[0].waiting[0].number, 1);
    let (all, everyone, by) = (store.all(), Scope::installation(), ("corp:ann", None));
    let from = all.to_requeue(&id, &everyone).await.unwrap().unwrap().in_backlog.unwrap();
    assert_eq!((from.queue.as_str(), from.priority, &from.cost), ("day", 0, &cost(3)));
    let to = Destination { queue: "night".to_owned(), max_queued: Some(1), timeout: Some(60) };
    let moved = all.requeue(by, &[Move { id: &id, from: &from, priority: 4 }], &to).await.unwrap();
    assert_eq!((moved.ids, moved.is_full), (vec![id.clone()], false));
    assert_eq!(store.admit((session, QUEUES), round.version, &[pick]).await.unwrap(), None);
    let place = places(&store).await.remove(0);
    assert_eq!((place.queue.as_str(), place.waiting.len()), ("night", 1));
    assert!(text(&pool, "queue_deadline", &id).await.is_some());
    // It is in the other queue by now, whose backlog is full.
    let other = Destination { queue: "other".to_owned(), max_queued: None, timeout: None };
    let again = all.requeue(by, &[Move { id: &id, from: &from, priority: 4 }], &other).await.unwrap();
    assert!(again.ids.is_empty() && !again.is_full);
    let second = accept(&store, "red", in_queue("day")).await;
    let from = all.to_requeue(&second, &everyone).await.unwrap().unwrap().in_backlog.unwrap();
    let full = all.requeue(by, &[Move { id: &second, from: &from, priority: 4 }], &to).await.unwrap();
    assert!(full.ids.is_empty() && full.is_full, "{full:?}");
    assert_eq!(admit_all(&store, session).await, 2);
    assert!(all.to_requeue(&id, &everyone).await.unwrap().unwrap().in_backlog.is_none(), "it is admitted");
}

#[sqlx::test]
async fn no_more_wait_than_the_backlog_allows(pool: PgPool) {
    let store = Store::new(pool.clone());
    let queue = InQueue { max_queued: Some(3), ..in_queue("night") };
    let each = (0..8).map(|_| {
        let (store, queue) = (store.clone(), queue.clone());
        async move {
            let new = NewSubmission { queue: Some(queue), ..new(draw(&store).await, "pod-1") };
            store.accept(new).await.unwrap()
        }
    });
    let answers = futures::future::join_all(each).await;
    let full = |answer: &&Accepted| matches!(answer, Accepted::Full(ReachedBound::Backlog { most: 3, .. }));
    assert_eq!(answers.iter().filter(full).count(), 5, "{answers:?}");
    assert!(store.is_backlog_full("night", 3).await.unwrap());
    let session = admitter(&store).await;
    admit_all(&store, session).await;
    assert!(!store.is_backlog_full("night", 3).await.unwrap());
}

#[sqlx::test]
async fn a_wait_that_is_too_long_ends_the_submission(pool: PgPool) {
    let store = Store::new(pool.clone());
    let id = accept(&store, "red", InQueue { timeout: Some(3600), ..in_queue("night") }).await;
    assert_eq!(store.end_overdue_waits(10, None).await.unwrap(), 0);
    let number = places(&store).await[0].waiting[0].number;
    store.explain_waiting(&[(number, 1, "QueueCap", "no room".to_owned())]).await.unwrap();
    sqlx::query("UPDATE submissions SET queue_deadline = now() - interval '1 s'").execute(&pool).await.unwrap();
    assert_eq!(store.end_overdue_waits(10, None).await.unwrap(), 1);
    let ended = store.all().submission(&id).await.unwrap().unwrap();
    assert_eq!((ended.state, ended.reason.as_deref()), (State::Killed, Some("StartTimeout")));
    assert_eq!(ended.message.as_deref(), Some("not admitted by queue night within 1h: no room"));
}

#[sqlx::test]
async fn the_state_of_a_queue_is_kept_with_its_author(pool: PgPool) {
    let store = Store::new(pool);
    store.set_queue_state("night", Some(QueueState::Paused), ("corp:ann", None), Some("upgrade")).await.unwrap();
    store.set_queue_state("night", Some(QueueState::Draining), ("corp:bob", None), None).await.unwrap();
    let states = store.queue_states().await.unwrap();
    assert_eq!((states[0].state, states[0].changed_by.as_str(), states.len()), (QueueState::Draining, "corp:bob", 1));
    store.set_queue_state("night", None, ("corp:ann", None), None).await.unwrap();
    assert!(store.queue_states().await.unwrap().is_empty());
}

#[sqlx::test]
async fn what_is_larger_than_a_cap_is_passed_over(pool: PgPool) {
    let store = Store::new(pool);
    let gpu = |count| [("nvidia.com/gpu".to_owned(), count)].into();
    for cost in [cost(9), Cost { extended: gpu(4), ..cost(1) }, Cost { extended: gpu(1), ..cost(2) }] {
        accept(&store, "red", InQueue { cost, ..in_queue("night") }).await;
    }
    let largest = Largest { queue: "night".to_owned(), millicores: Some(8000), extended: gpu(2), ..Largest::default() };
    let cores = |all: &[WaitingHead]| all.iter().map(|one| one.millicores).collect::<Vec<_>>();
    let places = store.queue_round(10, &[largest], &[]).await.unwrap().places;
    assert_eq!((cores(&places[0].waiting), cores(&places[0].passed_over)), (vec![2000], vec![9000, 1000]));
    let places = store.queue_round(10, &[], &[]).await.unwrap().places;
    assert_eq!((cores(&places[0].waiting), cores(&places[0].passed_over)), (vec![9000, 1000, 2000], vec![]));
}

async fn backlog(store: &Store) -> (i64, i64) {
    let backlogs = store.queue_backlogs().await.unwrap();
    assert!(backlogs.iter().all(|backlog| (backlog.queue.as_str(), backlog.tenant.as_str()) == ("night", "red")));
    backlogs.first().map_or((0, 0), |backlog| (backlog.waiting, backlog.held))
}

/// Each way into a queue and out of it counts, and adding up changes nothing.
#[sqlx::test]
async fn the_backlog_of_a_queue_counts_what_waits(pool: PgPool) {
    let store = Store::new(pool.clone());
    let (session, all, everything) = (admitter(&store).await, store.all(), Scope::installation());
    crate::support::accept(&store, "pod-1").await;
    let mut ids = Vec::new();
    for _ in 0..6 {
        ids.push(accept(&store, "red", InQueue { timeout: Some(3600), ..in_queue("night") }).await);
    }
    assert_eq!(backlog(&store).await, (6, 0));
    all.hold(&ids[5], &everything, ("corp:ann", None), None).await.unwrap();
    all.hold(&ids[4], &everything, ("corp:ann", None), None).await.unwrap();
    assert_eq!(backlog(&store).await, (4, 2));
    assert!(store.is_backlog_full("night", 6).await.unwrap(), "held ones count");
    all.release_held(&ids[5], &everything, None).await.unwrap();
    all.request_kill(&ids[4], &everything, None).await.unwrap();
    all.request_kill(&ids[3], &everything, None).await.unwrap();
    assert_eq!(backlog(&store).await, (4, 0));
    sqlx::query("UPDATE submissions SET queue_deadline = now() - interval '1 s' WHERE id = $1")
        .bind(ids[2].as_str())
        .execute(&pool)
        .await
        .unwrap();
    store.end_overdue_waits(10, None).await.unwrap();
    assert_eq!(backlog(&store).await, (3, 0));
    let round = store.queue_round(1, &[], &[]).await.unwrap();
    let pick = (round.places[0].waiting[0].number, 1);
    assert_eq!(store.admit((session, QUEUES), round.version, &[pick]).await.unwrap().unwrap().len(), 1);
    assert_eq!(backlog(&store).await, (2, 0));
    let claimed = store.claim(session, 10, &[], &[]).await.unwrap();
    let claimed = claimed.into_iter().find(|claimed| claimed.id == ids[0]).unwrap();
    store.wait_for_room(&claimed, "QuotaExceeded", "full").await.unwrap();
    assert_eq!(backlog(&store).await, (3, 0), "it waits again");
    assert!(store.add_up_backlogs(100).await.unwrap() > 10);
    assert_eq!((backlog(&store).await, store.add_up_backlogs(100).await.unwrap()), ((3, 0), 0));
    admit_all(&store, session).await;
    assert_eq!(backlog(&store).await, (0, 0));
    let lost = StateChange::Ended(Outcome::pod_gone());
    let claimed = store.claim(session, 10, &[], &[]).await.unwrap();
    let claimed = claimed.into_iter().find(|claimed| claimed.id == ids[1]).unwrap();
    store.record_pod(&ids[1], 1, claimed.epoch, "u").await.unwrap();
    assert!(store.advance(&ids[1], 1, None, &lost, &Placement::default()).await.unwrap());
    assert_eq!(backlog(&store).await, (1, 0), "another attempt waits");
    let kept: i64 =
        sqlx::query_scalar("SELECT count(*) FROM submissions WHERE queue_rank IS NOT NULL AND state = 'QUEUED'")
            .fetch_one(&pool)
            .await
            .unwrap();
    assert_eq!(kept, 1);
}

/// Queues submissions of each of these tenants, in queues of the same names.
async fn fill(pool: &PgPool, queues: i64, each: i64) {
    sqlx::query(
        "INSERT INTO submissions (id, number, state, request, spark_version, spark_user, namespace, names, created_at, tenant,
             queue, priority, queue_rank, claimed_by, cost_pods, cost_millicores, cost_memory_bytes, cost_driver_millicores,
             cost_driver_memory_bytes)
         SELECT 'driver-20260101000000-' || lpad(n::text, 6, '0'), n, 'QUEUED', '{}', '4.3.0', 'tester', 'ns-' || q, $3, now(),
             'tenant-' || q, 'queue-' || q, 0, n, '00000000-0000-0000-0000-000000000002', 2, 2000, 1000, 1000, 500
         FROM (SELECT q, (i - 1) * $1 + q AS n FROM generate_series(1, $1) AS q, generate_series(1, $2) AS i) AS new",
    )
    .bind(queues)
    .bind(each)
    .bind(Json(names("pod-1")))
    .execute(pool)
    .await
    .unwrap();
}

/// Without statistics, and with plans that were made for an empty table. A round reads about as many rows as it returns, and a claim
/// none of those that wait.
#[sqlx::test]
async fn rounds_and_claims_read_few_of_a_hundred_thousand_in_two_hundred_queues(
    options: PgPoolOptions,
    its: PgConnectOptions,
) {
    let pool = options.max_connections(1).connect_with(its).await.unwrap();
    sqlx::query("ALTER TABLE submissions SET (autovacuum_enabled = off)").execute(&pool).await.unwrap();
    let url = pool.connect_options().to_url_lossy().to_string();
    let store = Store::connect(&DatabaseSettings { url, max_connections: 3 }).await.unwrap();
    let session = Uuid::new_v4();
    // The leases may expire between the statements below on a machine that is busy.
    let renew = async || {
        assert!(store.acquire_lease(&replica(session), session, LEASE).await.unwrap());
        assert!(store.acquire_lease(QUEUES, session, LEASE).await.unwrap());
    };
    renew().await;
    // Plans of an empty table.
    assert!(store.queue_round(4, &[], &[]).await.unwrap().places.is_empty());
    assert!(store.claim(session, 16, &[], &[]).await.unwrap().is_empty());
    fill(&pool, 200, 500).await;
    publish_statistics(&pool).await;
    let before = rows_read(&pool).await;
    renew().await;
    let round = store.queue_round(4, &[], &[]).await.unwrap();
    assert_eq!(round.places.len(), 200);
    assert!(round.places.iter().all(|place| place.waiting.len() == 4 && place.has_more));
    assert!(store.claim(session, 16, &[], &[]).await.unwrap().is_empty());
    let picks: Vec<_> = round.places.iter().map(|place| (place.waiting[0].number, 1)).collect();
    renew().await;
    assert_eq!(store.admit((session, QUEUES), round.version, &picks).await.unwrap().unwrap().len(), 200);
    renew().await;
    assert_eq!(store.claim(session, 16, &[], &[]).await.unwrap().len(), 16);
    let id: SubmissionId = "driver-20260101000000-099999".parse().unwrap();
    let standing = store.all().document(&id, Default::default()).await.unwrap().unwrap().standing.unwrap();
    assert_eq!(standing.ahead, Some(498));
    let backlogs = store.queue_backlogs().await.unwrap();
    assert!(backlogs.len() == 200 && backlogs.iter().all(|backlog| (backlog.waiting, backlog.held) == (499, 0)));
    assert!(store.is_backlog_full("queue-1", 499).await.unwrap());
    let read = rows_read_until_the_end(store, &pool, before).await;
    assert!(read < 6000, "{read} rows were read");
}

/// A backlog that an operator holds costs the others nothing.
#[sqlx::test]
async fn rounds_read_no_held_submissions(options: PgPoolOptions, its: PgConnectOptions) {
    let pool = options.max_connections(1).connect_with(its).await.unwrap();
    sqlx::query("ALTER TABLE submissions SET (autovacuum_enabled = off)").execute(&pool).await.unwrap();
    let url = pool.connect_options().to_url_lossy().to_string();
    let store = Store::connect(&DatabaseSettings { url, max_connections: 3 }).await.unwrap();
    fill(&pool, 2, 2000).await;
    let in_queue = Filter { tenant: Some("tenant-1".to_owned()), ..Filter::default() };
    let matching = Matching { filter: &in_queue, after: None, limit: 2000 };
    assert_eq!(store.all().hold_next(matching, ("corp:ann", None), None).await.unwrap().ids.len(), 2000);
    store.close().await;
    publish_statistics(&pool).await;
    let before = rows_read(&pool).await;
    let url = pool.connect_options().to_url_lossy().to_string();
    let store = Store::connect(&DatabaseSettings { url, max_connections: 3 }).await.unwrap();
    let places = store.queue_round(4, &[], &[]).await.unwrap().places;
    let waiting: Vec<_> = places.iter().map(|place| (place.queue.as_str(), place.waiting.len())).collect();
    assert_eq!(waiting, [("queue-1", 0), ("queue-2", 4)]);
    let read = rows_read_until_the_end(store, &pool, before).await;
    assert!(read < 100, "{read} rows were read");
}

/// A transaction that is open for hours keeps only the rows waiting that it has locked.
#[sqlx::test]
async fn a_locked_row_is_left_out_and_others_are_read_in_its_place(pool: PgPool) {
    let store = Store::new(pool.clone());
    let session = admitter(&store).await;
    let ids = [accept(&store, "red", in_queue("night")).await, accept(&store, "red", in_queue("night")).await];
    let mut locks = pool.acquire().await.unwrap();
    sqlx::raw_sql("BEGIN; SELECT FROM submissions ORDER BY number LIMIT 1 FOR UPDATE")
        .execute(&mut *locks)
        .await
        .unwrap();
    let round = store.queue_round(1, &[], &[]).await.unwrap();
    let locked = round.places[0].waiting[0].number;
    let admitted = store.admit((session, QUEUES), round.version, &[(locked, 1)]).await.unwrap().unwrap();
    assert!(admitted.is_empty(), "another transaction has locked it");
    let round = store.queue_round(1, &[], &[locked]).await.unwrap();
    let next = round.places[0].waiting[0].number;
    let admitted = store.admit((session, QUEUES), round.version, &[(next, 1)]).await.unwrap().unwrap();
    assert_eq!(admitted[0].id, ids[1].as_str());
    sqlx::raw_sql("ROLLBACK").execute(&mut *locks).await.unwrap();
}
