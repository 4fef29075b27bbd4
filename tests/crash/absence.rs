//! Outcomes of drivers that ended while no replica was running.

use crate::{
    harness::absence::{Absence, play},
    panic_if_any,
};

const JOBS: u32 = 60;

async fn absence(absence: Absence) {
    let verdict = play(env!("CARGO_BIN_EXE_sparkgate").into(), 3, absence, JOBS).await;
    panic_if_any(&absence.to_string(), &verdict.violations);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_finalizer_keeps_every_outcome_past_a_compaction() {
    absence(Absence::WithFinalizer).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_finalizer_the_watch_resumes_where_it_stopped() {
    absence(Absence::Resumed).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_finalizer_a_compacted_outcome_is_lost_and_not_guessed() {
    absence(Absence::Forgotten).await;
}
