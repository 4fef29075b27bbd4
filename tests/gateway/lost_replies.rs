//! What if exactly this reply gets lost? One submission is played again for each call that its life makes: each time, one call to
//! the API server or one statement is carried out, and its reply is lost. Whichever it is, the outcome is the true one, each attempt
//! has one driver, and nothing stays behind.
//!
//! `calls.rs` counts and loses, `client.rs` and `postgres.rs` stand between the gateway and its servers, `life.rs` plays a life.

use std::{collections::BTreeSet, time::Duration};

use futures::StreamExt;

mod calls;
mod client;
mod kubelet;
mod life;
mod postgres;
mod site;

use calls::Call;
use life::{Kind, Lived};
use site::Site;

/// How many lives are played at the same time. They mostly wait; with more, none of them ends on a busy machine.
const AT_ONCE: usize = 6;
/// A call that is made more often than this in one life is a poll: losing a few of its replies stands for all.
const POLLED: usize = 6;
const OF_A_POLL: usize = 2;
/// How long a life may take on a busy machine, whatever gets lost. Some losses wait for the end of a lease.
const LIFE: Duration = Duration::from_secs(600);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whichever_reply_is_lost_in_a_life_with_a_retry_its_outcome_is_true() {
    each_reply_lost(Kind::Retried).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whichever_reply_is_lost_in_the_life_of_a_killed_driver_its_outcome_is_true() {
    each_reply_lost(Kind::Killed).await;
}

async fn each_reply_lost(kind: Kind) {
    let site = Site::open().await;
    let undisturbed = play(&site, kind, None).await.unwrap_or_else(|wrong| panic!("nothing is lost, and {wrong}"));
    let calls: BTreeSet<Call> = undisturbed.made.iter().flat_map(|(what, times)| of(what, *times)).collect();
    let lives = calls.iter().map(async |call| (call, play(&site, kind, Some(call)).await));
    let played: Vec<_> = futures::stream::iter(lives).buffer_unordered(AT_ONCE).collect().await;
    let reached = played.iter().filter(|(_, lived)| lived.as_ref().is_ok_and(|lived| lived.lost)).count();
    println!("{kind:?}: {} calls, {reached} replies lost", calls.len());
    let wrong: Vec<_> = played
        .iter()
        .filter_map(|(call, lived)| Some(format!("the reply to {call} is lost, and {}", lived.as_ref().err()?)))
        .collect();
    assert!(wrong.is_empty(), "{} of {} lives:\n{}", wrong.len(), calls.len(), wrong.join("\n"));
    // Two lives differ a little: a poll may come once more or less.
    assert!(reached * 10 >= calls.len() * 8, "{reached} of {} replies were lost", calls.len());
    site.close().await;
}

/// Returns the calls of this kind whose replies get lost, each in a life of its own.
fn of(what: &str, times: usize) -> impl Iterator<Item = Call> {
    let most = if times > POLLED { OF_A_POLL } else { times };
    (1..=most).map(move |nth| Call { what: what.to_owned(), nth })
}

async fn play(site: &Site, kind: Kind, lose: Option<&Call>) -> Result<Lived, String> {
    match tokio::time::timeout(LIFE, life::play(site, kind, lose)).await {
        Ok(lived) => lived,
        Err(_) => Err(format!("it doesn't end within {LIFE:?}")),
    }
}
