//! Replicas are replaced one by one. `scripts/upgrade-test` does this with two releases.

use crate::{harness::upgrade::play, panic_if_any};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_that_are_replaced_one_by_one_lose_and_repeat_nothing() {
    let program = || env!("CARGO_BIN_EXE_sparkgate").into();
    let verdict = play(program(), program(), 31, 120).await;
    panic_if_any("the replicas were replaced", &verdict.violations);
    assert!(verdict.rows >= 120 && verdict.extra_creates == 0, "{verdict:?}");
}
