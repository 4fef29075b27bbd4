//! Sparkgate's benchmarks, one command each, against baselines that are measured in the same run. `make bench` runs
//! them all; `docs/operate/performance.md` explains the figures.
//!
//! `scripts/bench` runs this beside a private Postgres and with a release build of the gateway.

mod bench;
mod figures;
mod gateway;
mod load;
mod number;
mod page;
mod process;
mod program;
mod report;
mod samples;
mod servers;
mod stopwatch;

use bench::Bench;
use clap::Parser;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let bench = Bench::parse();
    tokio::select! {
        done = figures::run(&bench) => done,
        // Dropping the servers ends them.
        _ = tokio::signal::ctrl_c() => anyhow::bail!("interrupted"),
    }
}
