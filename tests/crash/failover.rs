//! Failovers of Postgres.

use crate::{
    harness::failover::{Failover, Standby, play},
    panic_if_any,
};

async fn fail_over(seed: u64, standby: Standby) -> Failover {
    let failover = play(env!("CARGO_BIN_EXE_sparkgate").into(), seed, 200, standby).await;
    eprintln!("{standby:?}: {failover}");
    panic_if_any("the primary was killed", &failover.verdict.violations);
    failover
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failover_to_a_synchronous_standby_loses_and_repeats_nothing() {
    let Failover { verdict, never_replicated, .. } = fail_over(17, Standby::Synchronous).await;
    assert!(never_replicated == 0 && verdict.lost == 0 && verdict.rows >= 200, "{verdict:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failover_to_a_lagging_standby_loses_only_what_it_never_got() {
    let Failover { verdict, never_replicated, .. } = fail_over(18, Standby::Lagging).await;
    assert!(never_replicated > 0 && verdict.lost == 0, "{verdict:?}");
}
