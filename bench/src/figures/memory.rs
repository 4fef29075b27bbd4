//! The resident memory of the gateway: idle, and with as many running drivers as the largest installations have. The
//! API server is played by this process; the database is a real one.

use std::time::Duration;

use tokio::time::sleep;

use crate::{
    bench::{Bench, Name},
    gateway::Gateway,
    report::{Bar, Report},
    samples::Samples,
    servers::{Database, Played, rows},
};

const DRIVERS: [usize; 3] = [1_000, 10_000, 100_000];
/// The pause before a measurement. By then connections have been used, and the buffers of the first list have been
/// freed if they are freed at all.
const QUIET: Duration = Duration::from_secs(5);
/// The number of lists after the first one. Memory that isn't freed adds up over them.
const RELISTS: usize = 5;
const IDLE_BAR: f64 = 40.0;
const BAR: f64 = 150.0;

#[derive(Default)]
struct Beside {
    steady: Samples,
    peak: Samples,
    listed_anew: Samples,
    peak_anew: Samples,
}

pub(crate) async fn run(bench: &Bench) -> anyhow::Result<()> {
    let mut report = Report::new(Name::Memory, bench);
    let mut idle = Beside::default();
    let mut beside: [Beside; DRIVERS.len()] = Default::default();
    for _ in 0..bench.runs {
        once(bench, 0, &mut idle).await?;
        for (drivers, beside) in DRIVERS.into_iter().zip(&mut beside) {
            once(bench, bench.size(drivers), beside).await?;
        }
    }
    report.judge("idle", "MB", &idle.steady, Bar::AtMost(IDLE_BAR));
    for (drivers, of) in DRIVERS.into_iter().zip(&beside) {
        let live = format!("{} live drivers", bench.size(drivers));
        report.judge(format!("{live}: while it watches them"), "MB", &of.steady, Bar::AtMost(BAR));
        report.add(format!("{live}: peak until then"), "MB", &of.peak);
        report.judge(format!("{live}: after {RELISTS} more lists of them"), "MB", &of.listed_anew, Bar::AtMost(BAR));
        report.add(format!("{live}: peak until then"), "MB", &of.peak_anew);
    }
    report.publish(bench)
}

async fn once(bench: &Bench, drivers: usize, of: &mut Beside) -> anyhow::Result<()> {
    let database = Database::migrated(bench).await?;
    let uids: Vec<_> = (1..=drivers).map(rows::uid).collect();
    rows::live(&database, "RUNNING", 1, &uids).await?;
    let played = Played::start(drivers).await?;
    let directory = tempfile::tempdir()?;
    let gateway = Gateway::start(bench, directory.path(), database.url(), &played.kubeconfig(), &[]).await?;
    gateway.until_ready().await?;
    sleep(QUIET).await;
    of.steady.push(gateway.process().memory()?);
    of.peak.push(gateway.process().peak_memory()?);
    if drivers > 0 {
        for _ in 0..RELISTS {
            played.relist(&database).await?;
        }
        sleep(QUIET).await;
        of.listed_anew.push(gateway.process().memory()?);
        of.peak_anew.push(gateway.process().peak_memory()?);
    }
    drop(gateway);
    database.drop_it().await
}
