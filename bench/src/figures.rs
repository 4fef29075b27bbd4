//! The figures, one module each.

mod accept;
mod access;
mod cost;
mod growth;
mod lag;
mod launch;
mod memory;
mod neighbours;
mod read;
mod render;
pub(crate) mod request;
mod spark;
mod traces;

use clap::ValueEnum;

use crate::bench::{Bench, Name};

pub(crate) async fn run(bench: &Bench) -> anyhow::Result<()> {
    let all = if bench.figures.is_empty() { Name::value_variants() } else { bench.figures.as_slice() };
    for name in all {
        match name {
            Name::Accept => accept::run(bench).await?,
            Name::Access => access::run(bench).await?,
            Name::Traces => traces::run(bench).await?,
            Name::Launch => launch::run(bench).await?,
            Name::Cost => cost::run(bench).await?,
            Name::Lag => lag::run(bench).await?,
            Name::Memory => memory::run(bench).await?,
            Name::Render => render::run(bench).await?,
            Name::Read => read::run(bench).await?,
            Name::Growth => growth::run(bench).await?,
            Name::Neighbours => neighbours::run(bench).await?,
        }
    }
    Ok(())
}
