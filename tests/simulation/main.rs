//! The engine under faults: histories from seeds, on models of the database and the cluster. The models themselves are
//! compared with Postgres and a kube-apiserver.
//!
//! `world.rs` plays a history, `truth.rs` checks what must hold in it. `make simulate` plays a million of them.

#![expect(clippy::unwrap_used, reason = "test code")]

mod adversary;
mod cluster;
mod counts;
mod differential;
mod fairness;
mod flaw;
mod kubelet;
mod links;
mod names;
mod outside;
mod plan;
mod queues;
mod replica;
mod rng;
mod run;
mod sessions;
mod store;
mod truth;
mod wire;
mod world;

use clap::ValueEnum;
use counts::{Count, Counts};

const HISTORIES: u64 = 15_000;
/// Those from seeds that differ each time. `make simulate` plays more.
const NEW_HISTORIES: u64 = 5_000;
/// Hours of a site with queues.
const HOURS: u64 = 2;
/// Histories within which a flaw has to be found.
const FLAWED: u64 = 5_000;

fn play(first: u64, histories: u64) -> Counts {
    match run::play_all(None, first, histories) {
        Ok(counts) => counts,
        Err(failure) => panic!(
            "{}\nseed {}: {}\nagain: make simulate ARGS=\"--replay {}\"",
            failure.history.join("\n"),
            failure.seed,
            failure.wrong,
            failure.seed
        ),
    }
}

#[test]
fn every_history_ends_with_the_true_outcomes() {
    let counts = play(1, HISTORIES);
    println!("{}", counts.table());
    // It takes two late writers within a second, which is too rare to be required here.
    let rare = Count::ALL.iter().find(|(what, _)| *what == Count::StrayStarted).map(|(_, words)| *words);
    let missing: Vec<_> = counts.missing().into_iter().filter(|words| Some(*words) != rare).collect();
    assert!(missing.is_empty(), "never tried: {missing:?}");
}

#[test]
fn histories_from_new_seeds_end_with_the_true_outcomes() {
    let first = u64::from(uuid::Uuid::new_v4().as_fields().0) << 20;
    println!("seeds {first}..{}", first + NEW_HISTORIES);
    play(first, NEW_HISTORIES);
}

#[test]
fn hours_of_contention_are_shared_by_weight_and_no_tenant_starves_another() {
    let hours = fairness::Hours::play(1, HOURS).unwrap_or_else(|wrong| panic!("{wrong}"));
    println!("{}", hours.table());
}

/// The checks find what they are for: with each of these faults of the gateway itself, a history goes wrong.
#[test]
fn each_flaw_is_found() {
    for flaw in flaw::Flaw::value_variants() {
        let found = (1..=FLAWED).find_map(|seed| world::play(Some(*flaw), seed, false).err());
        let failure = found.unwrap_or_else(|| panic!("{flaw:?} isn't found"));
        println!("{flaw:?}: seed {}: {}", failure.seed, failure.wrong);
    }
}

#[test]
fn a_seed_gives_the_same_history_each_time() {
    let history = |seed| world::play(None, seed, true).map(|(_, history)| history).unwrap();
    assert_eq!(history(7), history(7));
    assert_ne!(history(7), history(8));
}
