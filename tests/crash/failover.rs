//! A failover of Postgres.

use crate::{harness::failover::play, panic_if_any};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failover_to_a_synchronous_standby_loses_and_repeats_nothing() {
    let failover = play(env!("CARGO_BIN_EXE_sparkgate").into(), 17, 200).await;
    let verdict = failover.verdict;
    eprintln!("{} rows, accepted again after {:.1} s", verdict.rows, failover.accepted_after.as_secs_f64());
    panic_if_any("the primary was killed", &verdict.violations);
    assert!(verdict.lost == 0 && verdict.rows >= 200, "{verdict:?}");
}
