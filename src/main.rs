//! The `sparkgate` program.

use std::process::ExitCode;

use sparkgate::app::{Arguments, LoadError, run};

/// Much of what a submission costs is many small pieces of memory. How jemalloc is set: `.cargo/config.toml`.
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let loaded = match Arguments::new(std::env::args_os()).load() {
        Ok(loaded) => loaded,
        Err(error) => return refuse(&error),
    };
    match run(loaded) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("sparkgate: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Prints why the arguments can't be used, or the help that they ask for.
fn refuse(error: &LoadError) -> ExitCode {
    match error {
        LoadError::CommandLine { error, notes } => {
            let _ = error.print();
            if error.use_stderr() && !notes.is_empty() {
                eprintln!("{}", notes.trim_start_matches('\n'));
            }
            u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from)
        }
        LoadError::File(faults) => {
            eprintln!("sparkgate: {faults}");
            ExitCode::FAILURE
        }
    }
}
