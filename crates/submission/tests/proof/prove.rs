//! `make prove`: all states of the model within larger bounds than those of the tests, and the seeded errors.

use std::process::ExitCode;

use clap::{Parser, ValueEnum};

mod action;
mod bounds;
mod check;
mod cluster;
mod effects;
mod liveness;
mod machines;
mod model;
mod steps;
mod store;
mod truth;
mod view;
mod world;

use bounds::{Bounds, Seeded};
use check::check;

/// Visits all states of the engine on a small database and cluster within a bound, and checks the invariants in each.
#[derive(Debug, Parser)]
struct Arguments {
    /// The most faults of a history, of any kinds. The other bounds are those of `docs/internals/proof.md`.
    #[arg(long)]
    faults: Option<u8>,
    /// Check only the bounds of these numbers, as they are printed, separated by commas.
    #[arg(long, value_delimiter = ',')]
    only: Vec<usize>,
    /// Seed this error into the gateway, and print the shortest way to a broken invariant.
    #[arg(long)]
    seed: Option<Seeded>,
    /// Seed every error, one after the other.
    #[arg(long)]
    seeds: bool,
    /// The number of threads. With more than one, a trace may not be the shortest.
    #[arg(long, default_value_t = 2)]
    threads: usize,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let errors: Vec<Seeded> = match arguments.seed {
        Some(error) => vec![error],
        None if arguments.seeds => Seeded::value_variants().to_vec(),
        None => Vec::new(),
    };
    let mut is_clean = true;
    for error in &errors {
        let report = check(error.bounds(), Some(*error), 1);
        is_clean &= report.found.is_some();
        println!("{report}");
    }
    if !errors.is_empty() {
        return if is_clean { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    for (number, bounds) in (1..).zip(Bounds::of_make_prove(arguments.faults)) {
        if arguments.only.is_empty() || arguments.only.contains(&number) {
            let report = check(bounds, None, arguments.threads);
            is_clean &= report.found.is_none();
            println!("{number}. {report}");
        }
    }
    if is_clean { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
