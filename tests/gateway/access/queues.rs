//! Queues over the API: where submissions wait, who may hold and move them, and who may change queues.

use serde_json::{Value, json};
use sparkgate::access::Role;
use sqlx::PgPool;

use crate::access::world::{World, job};

/// A submission of `job` takes three cores.
const QUEUES: &str = "
authentication: {}
tenants:
  red: {namespaces: [red], defaultQueue: day}
  blue: {namespaces: [blue]}
queues:
  day: {tenants: [red], weight: 3, caps: {cores: 4}, priority: {max: 9}, maxQueued: 3}
  night: {tenants: [red], maxQueued: 1, priority: {default: 2, max: 5}}
  small: {tenants: [red], caps: {cores: 2}}
  other: {tenants: [blue]}
limits: {writes: 100000/s, reads: 100000/s, failedLogins: 100000/s}
";

struct Queued {
    world: World,
    admin: String,
    operator: String,
    alice: String,
    bob: String,
    blue: String,
}

impl Queued {
    async fn new(pool: PgPool) -> Self {
        let world = World::new(pool, QUEUES).await;
        while !world.service.leadership.acquire("queues").await.unwrap() {}
        let red = async |role: Role| world.key(role, Some("red")).await;
        Self {
            admin: world.key(Role::Admin, None).await,
            operator: red(Role::Operator).await,
            alice: red(Role::Submitter).await,
            bob: red(Role::Submitter).await,
            blue: world.key(Role::Operator, Some("blue")).await,
            world,
        }
    }

    async fn submit(&self, key: &str, change: Value) -> String {
        let (status, document) = self.try_submit(key, change).await;
        assert_eq!(status, 201, "{document}");
        document["id"].as_str().unwrap().to_owned()
    }

    async fn try_submit(&self, key: &str, change: Value) -> (u16, Value) {
        let mut body = job("red");
        body.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        self.ask(key, "POST", "/v1/submissions", Some(body)).await
    }

    async fn ask(&self, key: &str, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        let answer = self.world.send(Some(key), method, path, body.as_ref()).await;
        (answer.status, if answer.body.is_empty() { Value::Null } else { answer.json() })
    }

    async fn read(&self, id: &str) -> Value {
        self.ask(&self.operator, "GET", &format!("/v1/submissions/{id}"), None).await.1
    }

    /// Admits what has room.
    async fn round(&self) {
        self.world.service.queues.round().await.unwrap();
    }

    /// Returns the actions of the audit with their verdicts and submissions, without those that submit.
    async fn audit(&self) -> Vec<(String, String, String)> {
        let entries = self.ask(&self.admin, "GET", "/v1/audit?limit=1000", None).await.1;
        let text = |entry: &Value, name: &str| entry[name].as_str().unwrap_or_default().to_owned();
        let entries = entries["entries"].as_array().unwrap().iter();
        let entries = entries.map(|entry| (text(entry, "action"), text(entry, "verdict"), text(entry, "submission")));
        entries.filter(|(action, ..)| action != "submit").collect()
    }
}

fn entry(action: &str, verdict: &str, submission: &str) -> (String, String, String) {
    (action.to_owned(), verdict.to_owned(), submission.to_owned())
}

#[sqlx::test]
async fn a_document_says_what_a_submission_waits_for(pool: PgPool) {
    let queued = Queued::new(pool).await;
    let first = queued.submit(&queued.alice, json!({})).await;
    let next = queued.read(&first).await;
    assert_eq!((&next["queue"], &next["priority"], &next["state"]), (&json!("day"), &json!(0), &json!("QUEUED")));
    assert_eq!(next["queuePlace"], json!({"ahead": 0}));
    assert_eq!(next["waiting"]["message"], "it is the next of tenant red in queue day");
    let second = queued.submit(&queued.alice, json!({})).await;
    let third = queued.submit(&queued.bob, json!({"queue": "day", "priority": 9})).await;
    let waits = queued.read(&second).await;
    assert_eq!(waits["queuePlace"], json!({"ahead": 2}), "the third has a higher priority");
    let reason = "2 submissions of tenant red in queue day are before it";
    assert_eq!((&waits["waiting"]["code"], &waits["waiting"]["message"]), (&json!("QUEUED"), &json!(reason)));
    queued.round().await;
    assert!(queued.read(&third).await.get("queuePlace").is_none(), "it is admitted");
    let waits = queued.read(&first).await;
    let reason = "the cap of queue day on cores has no room for 3: 3 of 4 are used";
    assert_eq!((&waits["queuePlace"], &waits["waiting"]["message"]), (&json!({"ahead": 0}), &json!(reason)));
    let listed = queued.ask(&queued.alice, "GET", "/v1/submissions?queue=day", None).await.1;
    let ids: Vec<_> = listed["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap()).collect();
    assert_eq!(ids, [third.as_str(), &second, &first]);
    let elsewhere = queued.ask(&queued.alice, "GET", "/v1/submissions?queue=night", None).await.1;
    assert_eq!(elsewhere["items"], json!([]));
    let pause = "UPDATE submissions SET attempt = 2, not_before = '2126-01-01T00:00:00Z' WHERE id = $1";
    sqlx::query(pause).bind(&first).execute(&queued.world.pool).await.unwrap();
    let reason = "it pauses between two attempts until 2126-01-01T00:00:00Z, and then waits in queue day";
    assert_eq!(queued.read(&first).await["waiting"]["message"], reason);
    let leave = "UPDATE submissions SET queue = NULL, queue_rank = NULL, admitted_at = NULL, claimed_by = '00000000-0000-0000-0000-000000000000' WHERE id = $1";
    sqlx::query(leave).bind(&first).execute(&queued.world.pool).await.unwrap();
    let pauses = queued.read(&first).await;
    let reason = "it pauses between two attempts until 2126-01-01T00:00:00Z";
    assert_eq!((&pauses["waiting"]["message"], pauses.get("queuePlace")), (&json!(reason), None));
}

#[sqlx::test]
async fn a_queue_refuses_what_it_can_not_take(pool: PgPool) {
    let queued = Queued::new(pool).await;
    for (change, status, detail) in [
        (json!({"queue": "evening"}), 422, "\"evening\" is not a queue of tenant red: it may use day, night, small"),
        (json!({"queue": "other"}), 422, "\"other\" is not a queue of tenant red"),
        (json!({"priority": 10}), 422, "10 is more than queue day permits, 9"),
        (json!({"priority": -1}), 400, "from 0 to 1000"),
        (
            json!({"queue": "small"}),
            422,
            "driver and executors need 3 cores together, more than the cap of queue small, 2",
        ),
    ] {
        let (answered, problem) = queued.try_submit(&queued.alice, change).await;
        assert_eq!(answered, status, "{problem}");
        assert!(problem["detail"].as_str().unwrap().contains(detail), "{problem}");
    }
    queued.submit(&queued.alice, json!({"queue": "night"})).await;
    let mut body = job("red");
    body["queue"] = json!("night");
    let full = queued.world.send(Some(&queued.alice), "POST", "/v1/submissions", Some(&body)).await;
    assert_eq!(full.status, 429, "{full:?}");
    assert!(full.header("retry-after").is_some() && full.body.contains("night"), "{full:?}");
}

#[sqlx::test]
async fn a_submission_is_held_and_released_by_those_who_may_kill_it(pool: PgPool) {
    let queued = Queued::new(pool).await;
    let id = queued.submit(&queued.alice, json!({})).await;
    let path = format!("/v1/submissions/{id}/hold");
    let elsewhere = queued.submit(&queued.alice, json!({})).await;
    assert_eq!(queued.ask(&queued.bob, "PUT", &path, None).await.0, 403);
    assert_eq!(queued.ask(&queued.blue, "PUT", &path, None).await.0, 404);
    let (status, problem) = queued.ask(&queued.alice, "PUT", &path, Some(json!({"reason": "a\nb"}))).await;
    assert_eq!((status, &problem["errors"][0]["pointer"]), (400, &json!("#/reason")));
    let (status, held) = queued.ask(&queued.alice, "PUT", &path, Some(json!({"reason": "no data"}))).await;
    assert_eq!((status, &held["state"], &held["waiting"]["code"]), (200, &json!("QUEUED"), &json!("HELD")), "{held}");
    assert_eq!(queued.ask(&queued.operator, "PUT", &path, None).await.0, 200, "it is held already");
    let read = queued.read(&id).await;
    let by = read["queuePlace"]["held"]["by"].as_str().unwrap();
    assert_eq!((&read["queuePlace"]["held"]["reason"], read["queuePlace"].get("ahead")), (&json!("no data"), None));
    assert_eq!(read["waiting"]["message"], format!("held by {by}: no data"));
    queued.round().await;
    assert_eq!(queued.read(&id).await["waiting"]["code"], "HELD");
    let (status, released) = queued.ask(&queued.operator, "DELETE", &path, None).await;
    assert_eq!((status, &released["waiting"]["code"]), (200, &json!("QUEUED")));
    assert_eq!(queued.ask(&queued.operator, "DELETE", &path, None).await.0, 200, "it isn't held");
    queued.ask(&queued.alice, "DELETE", &format!("/v1/submissions/{id}"), None).await;
    let (status, problem) = queued.ask(&queued.alice, "PUT", &path, None).await;
    assert_eq!((status, &problem["code"]), (409, &json!("not-queued")), "{problem}");
    assert_eq!(
        queued.audit().await,
        [
            entry("hold", "denied", &id),
            entry("hold", "denied", &id),
            entry("hold", "denied", &id),
            entry("hold", "allowed", &id),
            entry("hold", "allowed", &id),
            entry("release", "allowed", &id),
            entry("release", "allowed", &id),
            entry("kill", "allowed", &id),
            entry("hold", "denied", &id),
        ]
    );
    assert_eq!(queued.read(&elsewhere).await["waiting"]["code"], "QUEUED");
}

#[sqlx::test]
async fn a_filter_holds_what_the_caller_may_kill(pool: PgPool) {
    let queued = Queued::new(pool).await;
    let own = queued.submit(&queued.alice, json!({"labels": {"team": "a"}})).await;
    let other = queued.submit(&queued.bob, json!({"labels": {"team": "a"}})).await;
    let night = queued.submit(&queued.bob, json!({"queue": "night"})).await;
    let change = async |key: &str, filter: Value, action: &str| {
        let body = json!({"filter": filter, "action": action});
        queued.ask(key, "PUT", "/v1/queue-places", Some(body)).await
    };
    for filter in [json!({}), json!({"labels": {}, "state": []})] {
        let (status, problem) = change(&queued.alice, filter, "hold").await;
        assert_eq!((status, &problem["errors"][0]["pointer"]), (400, &json!("#/filter")), "it selects everything");
    }
    let viewer = queued.world.key(Role::Viewer, Some("red")).await;
    assert_eq!(change(&viewer, json!({"queue": "day"}), "hold").await.0, 403);
    let changed = async |key: &str, filter: Value, action: &str| {
        let (status, places) = change(key, filter, action).await;
        assert_eq!((status, &places["refused"], places.get("next")), (200, &json!(0), None), "{places}");
        assert_eq!(places["ids"].as_array().unwrap().len() as u64, places["changed"], "{places}");
        places["ids"].clone()
    };
    assert_eq!(changed(&queued.alice, json!({"labels": {"team": "a"}}), "hold").await, json!([own]), "not bob's");
    assert_eq!(changed(&queued.blue, json!({"queue": "day"}), "hold").await, json!([]));
    assert_eq!(changed(&queued.operator, json!({"queue": "day", "state": ["queued"]}), "hold").await, json!([other]));
    for (id, code) in [(&own, "HELD"), (&other, "HELD"), (&night, "QUEUED")] {
        assert_eq!(queued.read(id).await["waiting"]["code"], code);
    }
    let overview = queued.ask(&queued.alice, "GET", "/v1/queues", None).await.1;
    assert_eq!((&overview["queues"][0]["held"], &overview["queues"][0]["waiting"]), (&json!(2), &json!(0)));
    let all = json!({"tenant": "red", "namespace": "red", "name": "jo", "createdAfter": "2026-01-02"});
    assert_eq!(changed(&queued.operator, all, "release").await, json!([own, other]));
    let of_two: Vec<_> = queued.audit().await.into_iter().filter(|(_, verdict, _)| verdict == "allowed").collect();
    assert!(of_two.contains(&entry("hold", "allowed", &own)) && of_two.contains(&entry("release", "allowed", &other)));
}

#[sqlx::test]
async fn a_filter_moves_what_can_move(pool: PgPool) {
    let queued = Queued::new(pool).await;
    let low = queued.submit(&queued.alice, json!({})).await;
    let high = queued.submit(&queued.bob, json!({"priority": 9})).await;
    let move_all = async |key: &str, change: Value| {
        let mut body = json!({"filter": {"queue": "day"}, "action": "move"});
        body.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        queued.ask(key, "PUT", "/v1/queue-places", Some(body)).await
    };
    for (change, status, detail) in [
        (json!({}), 400, "neither a queue nor a priority"),
        (json!({"queue": "other"}), 422, "\"other\" is not a queue of your tenants: they may use day, night, small"),
        (json!({"queue": "night", "reason": "x"}), 400, "reason: the action doesn't have it"),
        (json!({"queue": "night", "action": "drop"}), 400, "none of hold, release, move"),
        (json!({"queue": "night", "action": null}), 400, "none of hold, release, move"),
        (json!({"queue": "night", "filter": {"state": ["ASLEEP"]}}), 400, "#/filter/state"),
        (json!({"queue": "night", "filter": {"createdAfter": "then"}}), 400, "#/filter/createdAfter"),
        (json!({"queue": "night", "cursor": "AAAA"}), 400, "A cursor"),
    ] {
        let (answered, problem) = move_all(&queued.operator, change).await;
        assert_eq!(answered, status, "{problem}");
        let said = format!("{} {}", problem["detail"].as_str().unwrap(), problem["errors"]);
        assert!(said.contains(detail), "{problem}");
    }
    let refusals = |places: &Value| places["refusals"].to_string();
    let (_, places) = move_all(&queued.operator, json!({"queue": "small"})).await;
    assert_eq!((&places["changed"], &places["refused"]), (&json!(0), &json!(2)), "{places}");
    assert!(refusals(&places).contains("more than the cap of queue small, 2"), "{places}");
    // One has room, and the other one may not have its priority.
    let (_, places) = move_all(&queued.operator, json!({"priority": 9})).await;
    assert_eq!((&places["ids"], &places["refused"]), (&json!([low]), &json!(0)), "the other has it already: {places}");
    let (_, places) = move_all(&queued.operator, json!({"queue": "night", "priority": 6})).await;
    assert!(places["refused"] == 2 && refusals(&places).contains("6 is more than queue night permits"), "{places}");
    let (_, places) = move_all(&queued.operator, json!({"queue": "night"})).await;
    assert_eq!((&places["ids"], &places["refusals"][0]["id"]), (&json!([low]), &json!(high)), "{places}");
    assert!(refusals(&places).contains("1 submissions wait in queue night"), "{places}");
    assert_eq!(
        (&queued.read(&low).await["queue"], &queued.read(&high).await["queue"]),
        (&json!("night"), &json!("day"))
    );
    queued.ask(&queued.admin, "PUT", "/v1/queues/day/state", Some(json!({"state": "draining"}))).await;
    let body = json!({"filter": {"queue": "night"}, "action": "move", "queue": "day"});
    let (_, places) = queued.ask(&queued.alice, "PUT", "/v1/queue-places", Some(body)).await;
    assert!(places["refused"] == 1 && refusals(&places).contains("queue day drains"), "{places}");
    let moved: Vec<_> = queued.audit().await.into_iter().filter(|(action, ..)| action == "requeue").collect();
    assert_eq!(moved, [entry("requeue", "allowed", &low), entry("requeue", "allowed", &low)]);
}

/// More than a request changes, the first of which has the number 0.
#[sqlx::test]
async fn a_cursor_goes_on_with_the_next_submissions(pool: PgPool) {
    let queued = Queued::new(pool).await;
    let first = queued.submit(&queued.alice, json!({"queue": "night"})).await;
    let copies = "INSERT INTO submissions SELECT (s).* FROM (
        SELECT jsonb_populate_record(t, jsonb_build_object('id', 'driver-20260101000000-' || lpad(n::text, 6, '0'), 'number', n,
            'idempotency_key', NULL)) AS s
        FROM submissions t, generate_series(100, 5599) AS n OFFSET 0) AS copies";
    sqlx::query(copies).execute(&queued.world.pool).await.unwrap();
    let mut body = json!({"filter": {"queue": "night", "state": ["QUEUED"]}, "action": "move", "priority": 4});
    let mut moved = Vec::new();
    for (changed, has_next) in [(5000, true), (501, false)] {
        let (status, places) = queued.ask(&queued.operator, "PUT", "/v1/queue-places", Some(body.clone())).await;
        assert_eq!((status, &places["changed"], places.get("next").is_some()), (200, &json!(changed), has_next));
        moved.extend(places["ids"].as_array().unwrap().clone());
        body["cursor"] = places["next"].clone();
    }
    assert_eq!((&moved[0], moved.len()), (&json!(first), 5501));
    let entries = "SELECT count(DISTINCT submission_id) FROM audit WHERE action = 'requeue' AND verdict = 'allowed'";
    assert_eq!(sqlx::query_scalar::<_, i64>(entries).fetch_one(&queued.world.pool).await.unwrap(), 5501);
}

#[sqlx::test]
async fn a_submission_that_waits_moves_to_another_queue(pool: PgPool) {
    let queued = Queued::new(pool).await;
    let id = queued.submit(&queued.alice, json!({"priority": 7})).await;
    let path = format!("/v1/submissions/{id}/queue");
    let requeue = async |key: &str, body: Value| queued.ask(key, "PUT", &path, Some(body)).await;
    assert_eq!(requeue(&queued.bob, json!({"queue": "night"})).await.0, 403);
    assert_eq!(requeue(&queued.blue, json!({"queue": "night"})).await.0, 404);
    for (body, status, detail) in [
        (json!({}), 400, "neither a queue nor a priority"),
        (json!({"priority": 1001}), 400, "from 0 to 1000"),
        (json!({"queue": "other"}), 422, "it may use day, night, small"),
        (json!({"queue": "small"}), 422, "more than the cap of queue small, 2"),
        (json!({"queue": "night", "priority": 6}), 422, "6 is more than queue night permits, 5"),
    ] {
        let (answered, problem) = requeue(&queued.alice, body).await;
        assert_eq!(answered, status, "{problem}");
        assert!(problem["detail"].as_str().unwrap().contains(detail), "{problem}");
    }
    let (status, changed) = requeue(&queued.alice, json!({"priority": 8})).await;
    assert_eq!((status, &changed["queue"], &changed["priority"]), (200, &json!("day"), &json!(8)), "{changed}");
    let (status, moved) = requeue(&queued.operator, json!({"queue": "night"})).await;
    assert_eq!((status, &moved["queue"], &moved["priority"]), (200, &json!("night"), &json!(2)), "{moved}");
    assert_eq!(queued.read(&id).await["queuePlace"], json!({"ahead": 0}));
    let events = queued.ask(&queued.alice, "GET", &format!("/v1/submissions/{id}/events"), None).await.1;
    let last = events["items"].as_array().unwrap().last().unwrap().clone();
    assert_eq!((&last["reason"], &last["state"]), (&json!("Requeued"), &json!("QUEUED")));
    assert!(last["message"].as_str().unwrap().contains("from queue day to queue night, with priority 2"), "{last}");
    // The backlog of the night is full now.
    let second = queued.submit(&queued.alice, json!({})).await;
    let full = queued
        .world
        .send(Some(&queued.alice), "PUT", &format!("/v1/submissions/{second}/queue"), Some(&json!({"queue": "night"})))
        .await;
    assert_eq!((full.status, full.header("retry-after").is_some()), (429, true), "{full:?}");
    // One that is held stays so.
    queued.ask(&queued.alice, "PUT", &format!("/v1/submissions/{id}/hold"), None).await;
    let (status, held) = requeue(&queued.alice, json!({"queue": "day"})).await;
    assert_eq!((status, &held["queue"], &held["waiting"]["code"]), (200, &json!("day"), &json!("HELD")), "{held}");
    queued.round().await;
    let (status, problem) = queued
        .ask(&queued.alice, "PUT", &format!("/v1/submissions/{second}/queue"), Some(json!({"queue": "night"})))
        .await;
    assert_eq!((status, &problem["code"]), (409, &json!("not-queued")), "it is admitted: {problem}");
    let allowed =
        queued.audit().await.into_iter().filter(|(action, verdict, _)| action == "requeue" && verdict == "allowed");
    assert_eq!(allowed.count(), 3);
}

#[sqlx::test]
async fn the_changes_of_a_launch_are_in_the_documents(pool: PgPool) {
    let queued = Queued::new(pool).await;
    let id = queued.submit(&queued.alice, json!({})).await;
    assert!(queued.read(&id).await.get("launchChanges").is_none());
    let selector = json!({"nodeSelector": {"pool": "spot"}, "tolerations": [{"key": "spot", "operator": "Exists"}]});
    let changes = json!([{"by": "kueue", "driver": selector, "executor": selector, "properties": {"spark.dynamicAllocation.maxExecutors": "3"}}]);
    sqlx::query("INSERT INTO attempt_overlays (submission_id, attempt, changes) VALUES ($1, 1, $2)")
        .bind(&id)
        .bind(&changes)
        .execute(&queued.world.pool)
        .await
        .unwrap();
    assert_eq!(queued.read(&id).await["launchChanges"], changes);
    let attempts = queued.ask(&queued.alice, "GET", &format!("/v1/submissions/{id}/attempts"), None).await.1;
    assert_eq!(attempts["items"][0]["launchChanges"], changes);
}

#[sqlx::test]
async fn operators_of_all_tenants_change_queues(pool: PgPool) {
    let queued = Queued::new(pool).await;
    let id = queued.submit(&queued.alice, json!({})).await;
    let set = async |key: &str, queue: &str, body: Value| {
        queued.ask(key, "PUT", &format!("/v1/queues/{queue}/state"), Some(body)).await
    };
    assert_eq!(set(&queued.operator, "day", json!({"state": "paused"})).await.0, 403);
    let (status, problem) = set(&queued.admin, "evening", json!({"state": "paused"})).await;
    assert!(status == 422 && problem["detail"].as_str().unwrap().contains("day, night"), "{problem}");
    let (status, problem) = set(&queued.admin, "day", json!({"state": "shut"})).await;
    assert_eq!((status, &problem["errors"][0]["pointer"]), (400, &json!("#/state")), "{problem}");
    assert_eq!(set(&queued.admin, "day", json!({"state": "paused", "reason": "upgrade"})).await.0, 204);
    queued.round().await;
    let waits = queued.read(&id).await;
    assert_eq!(waits["waiting"]["message"], "queue day is paused");
    let overview = queued.ask(&queued.alice, "GET", "/v1/queues", None).await.1;
    let day = &overview["queues"][0];
    assert_eq!((&day["name"], &day["state"], &day["waiting"]), (&json!("day"), &json!("paused"), &json!(1)));
    assert_eq!((&day["changed"]["reason"], &day["weight"]), (&json!("upgrade"), &json!(3)));
    assert_eq!((&day["caps"], &day["tenants"]["red"]["waiting"]), (&json!({"cores": 4.0}), &json!(1)));
    let names = async |key: &str| {
        let queues = queued.ask(key, "GET", "/v1/queues", None).await.1;
        queues["queues"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&queued.alice).await, ["day", "night", "small"]);
    assert_eq!(names(&queued.blue).await, ["other"]);
    assert_eq!(set(&queued.admin, "day", json!({"state": "draining"})).await.0, 204);
    let (status, problem) = queued.try_submit(&queued.alice, json!({})).await;
    assert!(status == 422 && problem["detail"].as_str().unwrap().contains("queue day drains"), "{problem}");
    assert_eq!(set(&queued.admin, "day", json!({"state": "open"})).await.0, 204);
    queued.round().await;
    assert!(queued.read(&id).await.get("queuePlace").is_none(), "it is admitted");
    assert_eq!(
        queued.audit().await,
        [
            entry("change-queue", "denied", ""),
            entry("change-queue", "denied", ""),
            entry("change-queue", "denied", ""),
            entry("pause-queue", "allowed", ""),
            entry("drain-queue", "allowed", ""),
            entry("resume-queue", "allowed", ""),
        ]
    );
}
