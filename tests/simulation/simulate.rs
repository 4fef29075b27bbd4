//! `make simulate`: histories of the engine under faults, by the million.

use std::{process::ExitCode, time::Instant};

use clap::Parser;

mod adversary;
mod cluster;
mod counts;
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

use flaw::Flaw;

/// Plays histories of the engine, each from a seed, and checks the guarantees in each.
#[derive(Debug, Parser)]
struct Arguments {
    /// The number of histories.
    #[arg(long, default_value_t = 1_000_000)]
    histories: u64,
    /// The number of hours of a site with queues, played first.
    #[arg(long, default_value_t = 300)]
    hours: u64,
    /// The seed of the first history; the others count up from it [default: a new one].
    #[arg(long)]
    seed: Option<u64>,
    /// Print the history of this one seed, step by step.
    #[arg(long)]
    replay: Option<u64>,
    /// Put this fault into the gateway, as it once had it: some history has to go wrong.
    #[arg(long)]
    flaw: Option<Flaw>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Some(seed) = arguments.replay {
        return replay(arguments.flaw, seed);
    }
    let seed = arguments.seed.unwrap_or_else(|| u64::from(uuid::Uuid::new_v4().as_fields().0) << 20);
    println!("seed {seed}");
    let begun = Instant::now();
    match fairness::Hours::play(seed, arguments.hours) {
        Ok(hours) => print!("{}", hours.table()),
        Err(wrong) => {
            println!("{wrong}");
            return ExitCode::FAILURE;
        }
    }
    match run::play_all(arguments.flaw, seed, arguments.histories) {
        Ok(counts) => {
            print!("{}", counts.table());
            if !counts.missing().is_empty() {
                println!("never happened: {}", counts.missing().join(", "));
            }
            println!("{:<52} {:>14.1}", "seconds", begun.elapsed().as_secs_f64());
            ExitCode::SUCCESS
        }
        Err(failure) => {
            tell(&failure);
            ExitCode::FAILURE
        }
    }
}

fn replay(flaw: Option<Flaw>, seed: u64) -> ExitCode {
    match world::play(flaw, seed, true) {
        Ok(history) => {
            history.1.iter().for_each(|line| println!("{line}"));
            ExitCode::SUCCESS
        }
        Err(failure) => {
            tell(&failure);
            ExitCode::FAILURE
        }
    }
}

fn tell(failure: &world::Failure) {
    failure.history.iter().for_each(|line| println!("{line}"));
    println!("seed {} went wrong: {}", failure.seed, failure.wrong);
    println!("again: make simulate ARGS=\"--replay {}\"", failure.seed);
}
