//! How costs grow: the cost of a submission as more and more ended ones are stored, and the time until a gateway is
//! ready as there are more and more pods.

mod cluster;
mod history;

use std::time::Duration;

use crate::{
    bench::{Bench, Name},
    report::Report,
    servers::{Database, rows},
};

/// Numbers of ended submissions. The same database grows from one to the next.
const HISTORY: [usize; 4] = [1_000, 10_000, 100_000, 1_000_000];
/// Numbers of running driver pods.
const PODS: [usize; 2] = [10_000, 100_000];
/// The time over which the history is spread.
const SPAN: Duration = Duration::from_secs(7 * 24 * 3600);

pub(crate) async fn run(bench: &Bench) -> anyhow::Result<()> {
    let database = Database::migrated(bench).await?;

    let mut report = Report::new(Name::Growth, bench);
    // Lower numbers are for the submissions whose pods run.
    let first = PODS[1] + 1;
    let mut there = 0;
    for size in HISTORY.map(|size| bench.size(size)) {
        rows::history(&database, first + there, size - there, SPAN).await?;
        there = size;
        history::measure(bench, &database, first + there, size, &mut report).await?;
    }
    let mut running = 0;
    for pods in PODS.map(|pods| bench.size(pods)) {
        let uids: Vec<_> = (running + 1..=pods).map(rows::uid).collect();
        rows::live(&database, "RUNNING", running + 1, &uids).await?;
        running = pods;
        cluster::measure(bench, &database, pods, there, &mut report).await?;
    }
    database.drop_it().await?;
    report.publish(bench)
}
