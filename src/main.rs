//! The `sparkgate` program.

use std::process::ExitCode;

use clap::Parser;
use sparkgate::app::{Cli, run};
use tikv_jemallocator::Jemalloc;

/// Much of what a submission costs is many small pieces of memory. How jemalloc is set: `.cargo/config.toml`.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("sparkgate: {error:#}");
            ExitCode::FAILURE
        }
    }
}
