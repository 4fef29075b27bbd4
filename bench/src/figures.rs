//! The figures, one module each.

mod accept;
mod access;
mod console;
mod cost;
mod growth;
mod lag;
mod launch;
mod memory;
mod neighbours;
mod peers;
mod queues;
mod read;
mod render;
mod sessions;
mod spark;
mod spark_submit;
mod traces;
mod years;

use crate::{
    bench::{Bench, Name},
    page,
};
use clap::ValueEnum;

pub(crate) async fn run(bench: &Bench) -> anyhow::Result<()> {
    let usual: Vec<_> =
        Name::value_variants().iter().copied().filter(|name| !matches!(name, Name::Years | Name::Peers)).collect();
    for name in if bench.figures.is_empty() { &usual } else { &bench.figures } {
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
            Name::Queues => queues::run(bench).await?,
            Name::Sessions => sessions::run(bench).await?,
            Name::Years => years::run(bench).await?,
            Name::Peers => peers::run(bench).await?,
            Name::Console => console::run(bench).await?,
        }
    }
    page::finish(bench)
}
