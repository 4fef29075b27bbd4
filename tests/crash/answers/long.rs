//! `make answers`: the long run.

#![expect(clippy::unwrap_used, reason = "a tool for developers, which shares its parts with a test")]

mod harness;

use std::{path::PathBuf, process::ExitCode};

use clap::Parser;
use sparkgate_testing::guard::guard;

/// Sends requests to gateways under faults, and compares each reply with the database.
#[derive(Debug, Parser)]
#[command(name = "scripts/answers")]
struct Options {
    #[arg(long, default_value_t = 100_000)]
    requests: usize,
    /// The number of concurrent requests.
    #[arg(long, default_value_t = 64)]
    clients: usize,
    /// The seed of all random decisions; timing isn't repeated [default: a new one].
    #[arg(long)]
    seed: Option<u64>,
    /// Keep the logs even if the run succeeds.
    #[arg(long)]
    keep: bool,
    /// The `sparkgate` program to run.
    #[arg(long, default_value = "target/release/sparkgate")]
    program: PathBuf,
}

#[tokio::main]
async fn main() -> ExitCode {
    let options = Options::parse();
    let seed = options.seed.unwrap_or_else(|| uuid::Uuid::new_v4().as_u64_pair().0 >> 16);
    println!("seed {seed}: {} requests", options.requests);
    if options.keep {
        guard().keep();
        println!("logs: {}", guard().directory().display());
    }
    let run = harness::run::Run {
        program: std::path::absolute(&options.program).unwrap(),
        seed,
        requests: options.requests,
        clients: options.clients,
        talkative: true,
    };
    let report = run.play().await;
    println!("{report}");
    if report.violations.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!("{}", report.complaint());
    ExitCode::FAILURE
}
