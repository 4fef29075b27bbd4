//! The `sparkgate` program.

use std::process::ExitCode;

use clap::Parser;
use sparkgate::app::{Cli, run};

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("sparkgate: {error:#}");
            ExitCode::FAILURE
        }
    }
}
