//! What can be measured, each in a room of its own.

mod accept;
mod launch;
mod request;

use crate::bench::{Bench, Name};

pub(crate) async fn run(bench: &Bench) -> anyhow::Result<()> {
    let all = if bench.figures.is_empty() { &Name::ALL } else { bench.figures.as_slice() };
    for name in all {
        match name {
            Name::Accept => accept::run(bench).await?,
            Name::Launch => launch::run(bench).await?,
        }
    }
    Ok(())
}
