//! Which messages arrive, in which order, whatever happens.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    hash::{DefaultHasher, Hash, Hasher},
    time::Instant,
};

use serde_json::{Value, json};
use sparkgate_testing::{
    receiver::{Answer, Received, Receiver},
    wait::until,
};
use sqlx::PgPool;

use crate::webhooks::world::Replica;

const LIFE: [&str; 4] = ["LAUNCHING", "PENDING", "RUNNING", "FINISHED"];

/// Refuses a tenth of all messages at their first try.
fn moody(received: &Received, before: usize) -> Answer {
    let mut hasher = DefaultHasher::new();
    received.headers["webhook-id"].hash(&mut hasher);
    match before == 0 && hasher.finish().is_multiple_of(10) {
        true => Answer::Status(500),
        false => Answer::Status(204),
    }
}

/// Runs submissions to their end while replicas die, and returns what arrived.
async fn play(pool: PgPool, submissions: usize) -> Vec<Received> {
    let receiver = Receiver::start(moody).await;
    let client = Replica::new(&pool).await;
    client.create(json!({"url": receiver.url("/all")})).await;
    let all = submissions * (LIFE.len() + 1);
    let mut replicas = vec![Replica::new(&pool).await.run(), Replica::new(&pool).await.run()];
    let mut ids = Vec::new();
    for _ in 0..submissions {
        ids.push(client.submit(json!({})).await);
    }
    for state in LIFE {
        for id in &ids {
            client.advance(id, state).await;
        }
        // Each time, the replica that sends dies in the middle of it.
        let so_far = receiver.count();
        until("messages arrive", async || receiver.count() > so_far + submissions / 4).await;
        replicas.remove(0).kill().await;
        replicas.push(Replica::new(&pool).await.run());
    }
    until("each change is taken", async || receiver.distinct("/all") == all).await;
    receiver.received()
}

/// Checks that no change came before the one before it was taken.
pub(crate) fn check_order(received: &[Received]) {
    let mut taken: HashMap<String, BTreeSet<i64>> = HashMap::new();
    let mut all: BTreeMap<String, BTreeSet<i64>> = BTreeMap::new();
    for message in received {
        let (submission, sequence) = message.change();
        all.entry(submission).or_default().insert(sequence);
    }
    for message in received {
        let (submission, sequence) = message.change();
        let taken = taken.entry(submission.clone()).or_default();
        let missing: Vec<_> = all[&submission].range(..sequence).filter(|earlier| !taken.contains(earlier)).collect();
        assert!(missing.is_empty(), "{submission}: {sequence} came before {missing:?}");
        if message.status == 204 {
            taken.insert(sequence);
        }
    }
}

#[sqlx::test]
async fn each_change_arrives_in_order_across_replicas_that_die(pool: PgPool) {
    check_order(&play(pool, 60).await);
}

/// The same with ten thousand messages: `cargo test --test gateway ten_thousand -- --ignored`.
#[sqlx::test]
#[ignore = "takes minutes"]
async fn ten_thousand_changes_arrive_in_order_across_replicas_that_die(pool: PgPool) {
    check_order(&play(pool, 2000).await);
}

#[sqlx::test]
async fn a_receiver_that_hangs_delays_no_other(pool: PgPool) {
    let receiver =
        Receiver::start(|received, _| if received.path == "/hangs" { Answer::Hang } else { Answer::Status(200) }).await;
    let replica = Replica::new(&pool).await.run();
    let begin = Instant::now();
    let hanging = || receiver.received().iter().filter(|received| received.path == "/hangs").count();
    replica.create(json!({"url": receiver.url("/hangs")})).await;
    replica.submit(json!({})).await;
    until("the receiver hangs", async || hanging() > 0).await;
    replica.create(json!({"url": receiver.url("/answers")})).await;
    for _ in 0..30 {
        replica.submit(json!({})).await;
    }
    until("the other gets all", async || receiver.taken("/answers").len() == 30).await;
    // It gets eight messages at the same time at most, and the next when these fail, after 15 s.
    let rounds = 1 + usize::try_from(begin.elapsed().as_secs() / 15).unwrap();
    assert!(hanging() <= 8 * rounds, "{} in {rounds} rounds", hanging());
}

#[sqlx::test]
async fn nothing_of_a_response_counts_but_its_status(pool: PgPool) {
    let receiver = Receiver::start(|received, _| match received.path.as_str() {
        "/endless" => Answer::Endless,
        "/redirects" => Answer::Redirect,
        _ => Answer::Status(200),
    })
    .await;
    let replica = Replica::new(&pool).await.run();
    let endless = replica.create(json!({"url": receiver.url("/endless")})).await;
    let redirects = replica.create(json!({"url": receiver.url("/redirects")})).await;
    replica.submit(json!({})).await;
    let status = async |webhook: &Value| {
        let deliveries = replica.deliveries(webhook).await;
        deliveries.first().map(|delivery| (delivery["status"].clone(), delivery["httpStatus"].clone()))
    };
    until("a body without end is a success", async || status(&endless).await == Some((json!("delivered"), json!(200))))
        .await;
    until("a redirect is a failure", async || status(&redirects).await == Some((json!("pending"), json!(307)))).await;
    assert!(receiver.received().iter().all(|received| received.path != "/elsewhere"), "no redirect is followed");
}

#[sqlx::test]
async fn a_message_is_repeated_until_it_is_taken(pool: PgPool) {
    let receiver = Receiver::start(|_, before| Answer::Status(if before < 2 { 503 } else { 202 })).await;
    let replica = Replica::new(&pool).await.run();
    let webhook = replica.create(json!({"url": receiver.url("/x")})).await;
    replica.submit(json!({})).await;
    until("it is taken", async || receiver.taken("/x").len() == 1).await;
    let delivered = async || replica.deliveries(&webhook).await[0].clone();
    until("it is recorded", async || delivered().await["status"] == "delivered").await;
    let delivered = delivered().await;
    assert_eq!((&delivered["tries"], &delivered["httpStatus"]), (&json!(3), &json!(202)));
    let received = receiver.received();
    let ids: BTreeSet<_> = received.iter().map(|received| &received.headers["webhook-id"]).collect();
    assert_eq!((received.len(), ids.len()), (3, 1), "each try has the same id");
}

#[sqlx::test]
async fn a_change_that_is_given_up_is_dead_and_can_be_replayed(pool: PgPool) {
    // Each message is refused until it is replayed.
    let receiver = Receiver::start(|received, before| {
        let is_first = received.json()["data"]["state"] == "QUEUED";
        Answer::Status(if is_first && before < 2 { 500 } else { 200 })
    })
    .await;
    let replica = Replica::new(&pool).await.run();
    let webhook = replica.create(json!({"url": receiver.url("/x")})).await;
    let id = replica.submit(json!({})).await;
    replica.advance(&id, "LAUNCHING").await;
    until("both are queued", async || replica.deliveries(&webhook).await.len() == 2).await;
    until("it was tried", async || replica.deliveries(&webhook).await[0]["tries"] != 0).await;
    assert!(receiver.taken("/x").is_empty(), "the next change waits");
    let a_day_ago = "UPDATE webhook_deliveries SET queued_at = now() - interval '25 hours', next_try_at = now()";
    sqlx::query(a_day_ago).execute(&pool).await.unwrap();
    until("the next change is sent", async || receiver.taken("/x").len() == 1).await;
    let deliveries = replica.deliveries(&webhook).await;
    assert_eq!(
        (&deliveries[0]["status"], &deliveries[0]["error"]),
        (&json!("dead"), &json!("the receiver answered 500 Internal Server Error"))
    );

    let path = format!("/v1/webhooks/{}", webhook["id"].as_str().unwrap());
    let (status, dead) = replica.ask("GET", &format!("{path}/deliveries?status=dead"), None).await;
    assert_eq!((status, dead["items"].as_array().unwrap().len()), (200, 1));
    assert_eq!(replica.ask("POST", &format!("{path}/replay"), None).await, (202, json!({"deliveries": 1})));
    until("it is taken", async || receiver.taken("/x").len() == 2).await;
    // One that arrived can be sent again, too.
    until("it is recorded", async || {
        replica.deliveries(&webhook).await.iter().all(|each| each["status"] == "delivered")
    })
    .await;
    let one = deliveries[1]["id"].as_str().unwrap();
    assert_eq!(replica.ask("POST", &format!("{path}/deliveries/{one}/replay"), None).await.0, 202);
    until("it is taken again", async || receiver.taken("/x").len() == 3).await;
}

#[sqlx::test]
async fn a_receiver_that_is_gone_gets_no_second_try(pool: PgPool) {
    let receiver = Receiver::start(|_, _| Answer::Status(410)).await;
    let replica = Replica::new(&pool).await.run();
    let webhook = replica.create(json!({"url": receiver.url("/x")})).await;
    replica.submit(json!({})).await;
    until("it is dead", async || {
        replica.deliveries(&webhook).await.first().is_some_and(|delivery| delivery["status"] == "dead")
    })
    .await;
    assert_eq!(receiver.received().len(), 1);
}

#[sqlx::test]
async fn a_change_is_sent_to_the_webhooks_that_it_matches(pool: PgPool) {
    let receiver = Receiver::start(|_, _| Answer::Status(200)).await;
    let replica = Replica::new(&pool).await.run();
    // A change from before the webhooks is sent to none.
    replica.submit(json!({"labels": {"team": "data"}})).await;
    let numbered = "SELECT NOT EXISTS (SELECT FROM submission_events WHERE sequence IS NULL)";
    until("it has a number", async || sqlx::query_scalar(numbered).fetch_one(&pool).await.unwrap()).await;
    let filters = [
        ("/all", json!({})),
        ("/states", json!({"states": ["failed", "KILLED"]})),
        ("/label", json!({"labels": {"team": "data"}})),
        ("/name", json!({"name": "etl-"})),
        ("/owner", json!({"owner": "tester"})),
        ("/other-name", json!({"name": "job"})),
        ("/other-label", json!({"labels": {"team": "web"}})),
        ("/other-namespace", json!({"namespace": "elsewhere"})),
    ];
    for (path, filter) in filters {
        replica.create(json!({"url": receiver.url(path), "filter": filter})).await;
    }
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let own = json!({"labels": {"team": "data"}, "webhooks": [
        {"url": receiver.url("/own"), "secret": secret},
        {"url": receiver.url("/own-end"), "secret": secret, "states": ["FAILED"]},
    ]});
    let id = replica.submit(own).await;
    replica.submit(json!({"name": "other"})).await;
    replica.advance(&id, "FAILED").await;
    let counts = async || {
        let mut counts = BTreeMap::<String, usize>::new();
        for received in receiver.received() {
            *counts.entry(received.path).or_default() += 1;
        }
        counts
    };
    let expected =
        [("/all", 3), ("/label", 2), ("/name", 2), ("/own", 2), ("/own-end", 1), ("/owner", 3), ("/states", 1)];
    let expected = expected.map(|(path, count)| (path.to_owned(), count)).into();
    until("all have come", async || counts().await == expected).await;
    let end = receiver.taken("/own-end")[0].json();
    assert_eq!((&end["type"], &end["data"]["exitCode"]), (&json!("dev.sparkgate.submission.failed"), &json!(3)));
    assert_eq!(end["subject"], id.as_str());
}

#[sqlx::test]
async fn run_events_of_openlineage_have_the_parent_that_the_request_names(pool: PgPool) {
    let receiver = Receiver::start(|_, _| Answer::Status(201)).await;
    let replica = Replica::new(&pool).await.run();
    replica.create(json!({"url": receiver.url("/lineage"), "format": "openlineage"})).await;
    let run = "01941f29-7c00-7087-8940-40e512c257bd";
    let properties = json!({
        "spark.openlineage.parentJobNamespace": "airflow",
        "spark.openlineage.parentJobName": "etl.pi",
        "spark.openlineage.parentRunId": run,
    });
    let id = replica.submit(json!({"sparkProperties": properties})).await;
    for state in ["LAUNCHING", "PENDING", "RUNNING", "FAILED"] {
        replica.advance(&id, state).await;
    }
    until("all have come", async || receiver.distinct("/lineage") == 3).await;
    let events: Vec<Value> = receiver.taken("/lineage").iter().map(Received::json).collect();
    let kinds: Vec<_> = events.iter().map(|event| event["eventType"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["START", "RUNNING", "FAIL"]);
    for event in &events {
        let parent = &event["run"]["facets"]["parent"];
        assert_eq!((&parent["run"]["runId"], &parent["job"]["name"]), (&json!(run), &json!("etl.pi")), "{event}");
        assert_eq!(event["job"]["name"], "etl-job");
    }
    let failure = &events[2]["run"]["facets"]["sparkgate_submission"];
    assert_eq!((&failure["submissionId"], &failure["failureCode"]), (&json!(id.as_str()), &json!("APPLICATION_ERROR")));
}
