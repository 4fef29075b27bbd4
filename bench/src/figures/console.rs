//! The console beside a long history: what a page of the list costs, also far from the newest, and what 500 open consoles cost beside
//! 500 subscribers of events.

use std::{
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    time::Duration,
};

use anyhow::{Context, ensure};
use futures::future::try_join_all;
use sparkgate_testing::request::request;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::accept::nowhere;
use crate::{
    bench::{Bench, Name},
    gateway::Gateway,
    load::{clients::clients, events::Events, http::Connection},
    number::count,
    report::{Bar, Report},
    samples::Samples,
    servers::{Database, rows},
};

/// Rows in the table, and how many of them are paged through.
const ROWS: usize = 1_000_000;
const PAGED: usize = 100_000;
/// The largest page.
const PAGE: usize = 500;
/// Open consoles, and subscribers without one.
const OPEN: usize = 500;
/// The pause between two submissions while they are open.
const EVERY: Duration = Duration::from_secs(2);
/// A console reads its page at most once in this time (`assets/live.js`).
const PAUSE: Duration = Duration::from_secs(1);
/// The most CPU time of a page, in milliseconds.
const BAR: f64 = 50.0;

const LIST: &str = "/console/submissions";
/// What an open list reads after a change.
const ROWS_OF_LIST: &str = "/console/submissions/rows";

#[derive(Default)]
struct Figures {
    newest: Samples,
    filtered: Samples,
    bytes: Samples,
    paged: Samples,
    longest: Samples,
    subscribers: Samples,
    consoles: Samples,
    reads: Samples,
}

pub(crate) async fn run(bench: &Bench) -> anyhow::Result<()> {
    let mut report = Report::new(Name::Console, bench);
    let size = bench.size(ROWS);
    let database = Database::migrated(bench).await?;
    rows::old_history(&database, size, Duration::from_secs(90 * 24 * 3600)).await?;
    let mut of = Figures::default();
    for _ in 0..bench.runs {
        once(bench, &database, &mut of).await?;
    }
    database.drop_it().await?;
    let (beside, paged) = (format!("{} ended", count(size)), count(bench.size(PAGED)));
    let (milliseconds, open) = ("ms/page", bench.size(OPEN));
    report.judge(format!("{beside}: the newest 50, CPU of the gateway"), milliseconds, &of.newest, Bar::AtMost(BAR));
    report.judge(
        format!("{beside}: 50 of one owner, CPU of the gateway"),
        milliseconds,
        &of.filtered,
        Bar::AtMost(BAR),
    );
    report.add(format!("{beside}: the newest 50, before compression"), "kB", &of.bytes);
    report.add(format!("{paged} in pages of {PAGE}: CPU of the gateway"), milliseconds, &of.paged);
    report.add(format!("{paged} in pages of {PAGE}: the slowest"), "ms", &of.longest);
    report.add(format!("{open} subscribers: CPU of the gateway"), "ms/s", &of.subscribers);
    report.add(format!("{open} open lists: CPU of the gateway"), "ms/s", &of.consoles);
    report.add(format!("{open} open lists: pages read"), "/s", &of.reads);
    report.publish(bench)
}

async fn once(bench: &Bench, database: &Database, of: &mut Figures) -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let gateway = Gateway::start(bench, directory.path(), database.url(), &nowhere(&directory)?, &[]).await?;
    let time = Duration::from_millis(bench.size(3000) as u64);
    let filtered = format!("{LIST}?owner=etl");
    for (path, cpu) in [(LIST, &mut of.newest), (&filtered, &mut of.filtered)] {
        let ask = async |time| clients(&gateway, 1, time, async |connection, _| connection.get(path).await).await;
        ask(time / 5).await?;
        cpu.push(ask(time).await?.cpu_of_each());
    }
    let mut connection = Connection::open(gateway.address).await?;
    of.bytes.push(connection.get(LIST).await?.body.len() as f64 / 1e3);
    page_through(bench, &gateway, &mut connection, of).await?;
    let (quiet, _) = followed(bench, &gateway, false).await?;
    let (live, reads) = followed(bench, &gateway, true).await?;
    of.subscribers.push(quiet);
    of.consoles.push(live);
    of.reads.push(reads);
    Ok(())
}

/// Follows the links to older pages.
async fn page_through(
    bench: &Bench,
    gateway: &Gateway,
    connection: &mut Connection,
    of: &mut Figures,
) -> anyhow::Result<()> {
    let pages = bench.size(PAGED) / PAGE;
    let (cpu, mut longest) = (gateway.process().cpu()?, 0.0_f64);
    let mut path = format!("{LIST}?limit={PAGE}");
    for _ in 0..pages {
        let asked = Instant::now();
        let page = connection.get(&path).await?;
        longest = longest.max(asked.elapsed().as_secs_f64() * 1e3);
        ensure!(page.status == 200, "{path}: {}", page.status);
        let text = std::str::from_utf8(&page.body)?;
        let next = text.split("rel=\"next\" href=\"").nth(1).and_then(|rest| rest.split('"').next());
        path = format!("/console/{}", next.context("a page has no older one")?.replace("&amp;", "&"));
    }
    of.paged.push((gateway.process().cpu()? - cpu).as_secs_f64() * 1e3 / pages as f64);
    of.longest.push(longest);
    Ok(())
}

/// Returns the gateway's CPU time of a second while many follow its events, and the pages that they read in it. A console reads the
/// live parts of its page again after each event, compressed as for browsers.
async fn followed(bench: &Bench, gateway: &Gateway, are_consoles: bool) -> anyhow::Result<(f64, f64)> {
    let end = Instant::now() + Duration::from_millis(bench.size(20_000) as u64);
    let reads = AtomicUsize::new(0);
    let streams = try_join_all((0..bench.size(OPEN)).map(|_| Events::follow(gateway.address))).await?;
    let one = async |mut events: Events| -> anyhow::Result<()> {
        let mut connection = Connection::open(gateway.address).await?;
        while let Ok(told) = timeout_at(end, events.next()).await {
            if are_consoles && !told?.is_empty() {
                connection.get_compressed(ROWS_OF_LIST).await?;
                reads.fetch_add(1, Relaxed);
                sleep_until(end.min(Instant::now() + PAUSE)).await;
            }
        }
        Ok(())
    };
    let (cpu, begun) = (gateway.process().cpu()?, Instant::now());
    let submit = async || -> anyhow::Result<()> {
        let mut connection = Connection::open(gateway.address).await?;
        for number in 0.. {
            sleep_until(end.min(Instant::now() + EVERY)).await;
            if Instant::now() >= end {
                break;
            }
            connection.post("/v1/submissions/create", request(number, "default")).await?;
        }
        Ok(())
    };
    tokio::try_join!(try_join_all(streams.into_iter().map(one)), submit())?;
    let seconds = begun.elapsed().as_secs_f64();
    let cpu = (gateway.process().cpu()? - cpu).as_secs_f64() * 1e3;
    Ok((cpu / seconds, reads.into_inner() as f64 / seconds))
}
