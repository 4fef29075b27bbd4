//! Short outages of the servers.

use std::time::Duration;

use crate::{
    harness::outage::{Server, play, restarts},
    panic_if_any,
};

async fn outage(server: Server) {
    let outage = play(env!("CARGO_BIN_EXE_sparkgate").into(), 6, server, Duration::from_secs(5), 20).await;
    eprintln!("{server:?} away: {outage}");
    panic_if_any(&format!("{server:?} away"), &outage.verdict.violations);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_api_server_submissions_are_accepted_and_launched_later() {
    outage(Server::Apiserver).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_postgres_creates_are_answered_503_with_retry_after() {
    outage(Server::Postgres).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_api_server_that_starts_refuses_no_queued_submission() {
    let verdict = restarts(env!("CARGO_BIN_EXE_sparkgate").into(), 8, 2, 40).await;
    panic_if_any("the API server restarted", &verdict.violations);
}
