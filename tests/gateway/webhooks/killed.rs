//! Gateways that are killed with SIGKILL in the middle of deliveries.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use serde_json::json;
use sparkgate_testing::{
    receiver::{Answer, Received, Receiver},
    wait::until,
};
use sqlx::PgPool;

use crate::webhooks::{
    delivery::check_order,
    process::{Gateway, Place},
};

const KILLS: usize = 3;
/// Submissions for each gateway. Each has several changes, to its kill.
const SUBMISSIONS: usize = 25;

/// Submits applications, and returns their ids.
async fn submit(gateway: &Gateway) -> Vec<String> {
    let mut ids = Vec::new();
    for _ in 0..SUBMISSIONS {
        let request = json!({"appResource": "local:///app.jar", "mainClass": "org.example.Main"});
        let submission = gateway.ask("POST", "/v1/submissions", &request).await;
        ids.push(submission["id"].as_str().unwrap().to_owned());
    }
    ids
}

#[sqlx::test]
async fn a_gateway_that_is_killed_while_it_delivers_loses_no_change_and_no_order(pool: PgPool) {
    let holds = Arc::new(AtomicBool::new(false));
    let held = holds.clone();
    let receiver = Receiver::start(move |_, _| match held.load(Ordering::Relaxed) {
        true => Answer::Hang,
        false => Answer::Status(204),
    })
    .await;
    let place = Place::new(&pool).await;
    let mut sender = place.start().await;
    let webhook = json!({"url": receiver.url("/all")});
    sender.ask("POST", "/v1/webhooks", &webhook).await;
    let mut ids = submit(&sender).await;
    until("it sends", async || receiver.count() > 0).await;
    let id_of = |message: &Received| message.headers["webhook-id"].clone();
    let in_flight = || -> BTreeSet<String> {
        receiver.received().iter().filter(|message| message.status == 0).map(id_of).collect()
    };
    let mut unanswered = BTreeSet::new();
    for _ in 0..KILLS {
        // The other one can't send as long as the first one lives.
        let next = place.start().await;
        holds.store(true, Ordering::Relaxed);
        ids.extend(submit(&next).await);
        until("messages are held", async || in_flight().len() > unanswered.len()).await;
        sender.kill_dash_nine();
        unanswered = in_flight();
        holds.store(false, Ordering::Relaxed);
        until("the other one sends", async || {
            let taken: BTreeSet<_> = receiver.taken("/all").iter().map(id_of).collect();
            unanswered.is_subset(&taken)
        })
        .await;
        sender = next;
    }
    for id in &ids {
        sender.ask("DELETE", &format!("/v1/submissions/{id}"), &json!({})).await;
    }
    let ended = "SELECT count(*) FROM submissions WHERE state = 'KILLED'";
    let all = i64::try_from(ids.len()).unwrap();
    until("all have ended", async || sqlx::query_scalar::<_, i64>(ended).fetch_one(&pool).await.unwrap() == all).await;
    let changes: i64 = sqlx::query_scalar("SELECT count(*) FROM submission_events").fetch_one(&pool).await.unwrap();
    let changes = usize::try_from(changes).unwrap();
    assert!(changes >= 4 * ids.len(), "{changes}");
    until("each change is taken", async || receiver.distinct("/all") == changes).await;
    let received = receiver.received();
    assert!(unanswered.len() >= KILLS);
    check_order(&received);
}
