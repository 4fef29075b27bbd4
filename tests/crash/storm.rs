//! All faults at once, twice: once from a fixed seed, once from a new one, which is printed.

use std::time::Duration;

use crate::{
    harness::{chaos::Blows, run::Run, world::Setting},
    panic_if_any,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_with_a_fixed_seed_loses_and_repeats_nothing() {
    weather(20_261_121, 14).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_with_a_new_seed_loses_and_repeats_nothing() {
    weather(u64::from(uuid::Uuid::new_v4().as_fields().0), 10).await;
}

async fn weather(seed: u64, kills: u16) {
    eprintln!("seed {seed}");
    let blows = Blows {
        kills: kills.into(),
        pauses: 1,
        postgres: 2,
        apiserver: 1,
        etcd: 1,
        compactions: 1,
        network: 4,
        isolations: 1,
        long_isolations: 1,
        pages: 2,
        snapshot: true,
        denials: 2,
        webhooks: 3,
        acts: 24,
        locks: 3,
        objects: 6,
        lost_replies: 0.02,
    };
    let run = Run {
        program: env!("CARGO_BIN_EXE_sparkgate").into(),
        seed,
        jobs: u32::from(kills) * 8,
        replicas: 3,
        setting: Setting { tenants: true, objects: true, old: 1000, queues: true, sessions: true, restarts: true },
        blows,
        takeovers: 0,
        // A namespace that was denied tries again after half a minute.
        patience: Duration::from_secs(90),
        talkative: false,
    };
    let report = Box::pin(run.play()).await;
    eprintln!("{report}");
    panic_if_any(&format!("seed {seed}"), &report.verdict.violations);
}
