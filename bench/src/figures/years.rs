//! Years: millions of ended submissions, as many deleted by the retention as arrive, with autovacuum on.

mod life;
mod load;
mod tables;

use std::time::Duration;

use anyhow::Context;
use sparkgate::store::{DatabaseSettings, Store};
use sqlx::PgConnection;
use tokio::time::{Instant, sleep, timeout};

use self::{life::Lives, load::Load, tables::Tables};
use crate::{
    bench::{Bench, Name},
    figures::accept::nowhere,
    gateway::Gateway,
    number::count,
    report::Report,
    samples::Samples,
    servers::{Database, rows},
};

/// Submissions that arrive per second, and that the retention makes due per second.
const RATE: usize = 100;
/// Submissions that are due when the clean-up starts.
const BACKLOG: usize = 20_000;
/// How long submissions arrive, run and are deleted.
const STEADY: usize = 60_000;
/// The limit for deleting the backlog.
const PATIENCE: Duration = Duration::from_secs(600);

#[derive(Default)]
struct Figures {
    cleaned: Samples,
    accepted: Samples,
    accept_p50: Samples,
    accept_p99: Samples,
    page: Samples,
    claim: Samples,
    deleted: Samples,
    hot: Samples,
    wal: Samples,
    grown: Samples,
    vacuum: Samples,
}

pub(crate) async fn run(bench: &Bench) -> anyhow::Result<()> {
    let mut report = Report::new(Name::Years, bench);
    // Each number has a database of its own.
    for size in bench.ended.iter().map(|&size| bench.size(size)) {
        let database = Database::migrated(bench).await?;
        let begun = Instant::now();
        // As many become due in each second as arrive.
        rows::old_history(&database, size, Duration::from_secs((size / RATE) as u64)).await?;
        let mut connection = database.connect().await?;
        let bytes = tables::bytes(&mut connection).await?;
        eprintln!("{} ended: {:.1} GB, written in {:.0?}", count(size), bytes / 1e9, begun.elapsed());
        let mut figures = Figures::default();
        let mut oldest = 1;
        for _ in 0..bench.runs {
            oldest = once(bench, &database, oldest, &mut figures).await?;
        }
        let beside = format!("{} ended", count(size));
        report.add(format!("{beside}: on disk, with indexes and events"), "kB each", &one(bytes / 1e3 / size as f64));
        report.add(format!("{beside}: deleted of {} that are due at once", count(BACKLOG)), "/s", &figures.cleaned);
        report.add(format!("{beside}: accepted, of {RATE}/s"), "/s", &figures.accepted);
        report.add(format!("{beside}: accepted, p50"), "ms", &figures.accept_p50);
        report.add(format!("{beside}: accepted, p99"), "ms", &figures.accept_p99);
        report.add(format!("{beside}: deleted meanwhile, of {RATE}/s"), "/s", &figures.deleted);
        report.add(format!("{beside}: the newest 50 that finished, p99"), "ms", &figures.page);
        report.add(format!("{beside}: a claim of up to 16, p99"), "ms", &figures.claim);
        report.add(format!("{beside}: updates of submissions without index writes"), "%", &figures.hot);
        report.add(format!("{beside}: WAL of a submission's life and its deletion"), "kB", &figures.wal);
        report.add(format!("{beside}: growth of the tables per arrival"), "kB", &figures.grown);
        report.add(format!("{beside}: a vacuum of submissions"), "s", &figures.vacuum);
        database.drop_it().await?;
    }
    report.publish(bench)
}

/// Measures one run; `oldest` is the number of the oldest submission. Returns that of the oldest which is left.
async fn once(bench: &Bench, database: &Database, oldest: i64, figures: &mut Figures) -> anyhow::Result<i64> {
    let backlog = bench.size(BACKLOG) as i64;
    let time = Duration::from_millis(bench.size(STEADY) as u64);
    let mut connection = database.connect().await?;
    sqlx::query("CHECKPOINT").execute(&mut connection).await?;
    let retention = age(&mut connection, oldest + backlog).await?;
    let directory = tempfile::tempdir()?;
    let kubeconfig = nowhere(&directory)?;
    let options = ["--retention", &retention];
    let gateway = Gateway::start(bench, directory.path(), database.url(), &kubeconfig, &options).await?;

    let began = until_deleted(&mut connection, oldest + 1).await?;
    let cleaned = until_deleted(&mut connection, oldest + backlog).await?;
    figures.cleaned.push(backlog as f64 / (cleaned - began).as_secs_f64());

    let settings = DatabaseSettings { url: database.url().to_owned(), max_connections: 12 };
    let store = Store::connect(&settings).await?;
    let before = Tables::read(&mut connection).await?;
    let (first, began) = (oldest_number(&mut connection).await?, Instant::now());
    let (load, lives) = tokio::try_join!(Load::run(&gateway, RATE, time), Lives::run(&store, time))?;
    let left = oldest_number(&mut connection).await?;
    let took = began.elapsed();
    // Statistics of the connections arrive with a delay.
    sleep(Duration::from_secs(2)).await;
    let after = Tables::read(&mut connection).await?;
    store.close().await;
    drop(gateway);

    let arrived = load.accepted.len() as f64;
    figures.accepted.push(arrived / time.as_secs_f64());
    figures.accept_p50.push(load.accepted.median());
    figures.accept_p99.push(load.accepted.quantile(0.99));
    figures.page.push(load.pages.quantile(0.99));
    figures.claim.push(lives.claims.quantile(0.99));
    figures.deleted.push((left - first) as f64 / took.as_secs_f64());
    figures.hot.push(after.share_of_hot_updates_since(&before));
    figures.wal.push((after.wal - before.wal) / 1e3 / arrived);
    figures.grown.push((after.bytes - before.bytes) / 1e3 / arrived);
    let vacuum = Instant::now();
    sqlx::query("VACUUM submissions").execute(&mut connection).await?;
    figures.vacuum.push(vacuum.elapsed().as_secs_f64());
    Ok(left)
}

fn one(value: f64) -> Samples {
    [value].into_iter().collect()
}

/// Returns the retention with which the submissions before this one are due.
async fn age(connection: &mut PgConnection, number: i64) -> anyhow::Result<String> {
    let age = "SELECT extract(epoch FROM now() - finished_at)::bigint FROM submissions WHERE number = $1";
    let seconds: i64 = sqlx::query_scalar(age).bind(number).fetch_one(connection).await?;
    Ok(format!("{}s", seconds.max(1)))
}

/// Waits until the submissions before this one are deleted, and returns when that was seen.
async fn until_deleted(connection: &mut PgConnection, number: i64) -> anyhow::Result<Instant> {
    let deleted = async {
        while oldest_number(connection).await? < number {
            sleep(Duration::from_millis(50)).await;
        }
        anyhow::Ok(Instant::now())
    };
    timeout(PATIENCE, deleted).await.context("the clean-up doesn't delete what is due")?
}

async fn oldest_number(connection: &mut PgConnection) -> anyhow::Result<i64> {
    Ok(sqlx::query_scalar("SELECT min(number) FROM submissions").fetch_one(connection).await?)
}
