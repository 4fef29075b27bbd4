//! What one submission costs beside so many ended ones. There is no cluster, so accepted submissions stay queued.

use sparkgate_testing::request::request;
use std::time::Duration;

use crate::{
    bench::Bench,
    figures::accept::nowhere,
    gateway::Gateway,
    load::clients::{Seen, clients},
    number::count,
    report::Report,
    samples::Samples,
    servers::Database,
};

const CLIENTS: usize = 16;

#[derive(Default)]
struct Figures {
    start: Samples,
    rate: Samples,
    p99: Samples,
    cpu: Samples,
    postgres: Samples,
    page: Samples,
}

/// Measures one run. Deletes the submissions numbered from `free` on after each run.
pub(super) async fn measure(
    bench: &Bench,
    database: &Database,
    free: usize,
    size: usize,
    report: &mut Report,
) -> anyhow::Result<()> {
    let mut figures = Figures::default();
    let mut connection = database.connect().await?;
    for _ in 0..bench.runs {
        // Writes pending data now, so that it isn't written during the measurement.
        sqlx::query("CHECKPOINT").execute(&mut connection).await?;
        once(bench, database, &mut figures).await?;
        let new = sqlx::query("DELETE FROM submissions WHERE number >= $1").bind(i64::try_from(free)?);
        new.execute(&mut connection).await?;
        for table in ["submissions", "submission_events", "manifests"] {
            let vacuum = sqlx::AssertSqlSafe(format!("VACUUM ANALYZE {table}"));
            sqlx::query(vacuum).execute(&mut connection).await?;
        }
    }
    let beside = format!("{} ended", count(size));
    report.add(format!("{beside}: accepted, {CLIENTS} clients"), "/s", &figures.rate);
    report.add(format!("{beside}: accepted, p99"), "ms", &figures.p99);
    report.add(format!("{beside}: CPU of the gateway"), "ms/submission", &figures.cpu);
    report.add(format!("{beside}: CPU of Postgres' connections"), "ms/submission", &figures.postgres);
    report.add(format!("{beside}: the newest 50 that finished, p99"), "ms", &figures.page);
    report.add(format!("{beside}: from its start until the gateway answers"), "s", &figures.start);
    Ok(())
}

async fn once(bench: &Bench, database: &Database, figures: &mut Figures) -> anyhow::Result<()> {
    let time = Duration::from_millis(bench.size(4000) as u64);
    let directory = tempfile::tempdir()?;
    let gateway = Gateway::start(bench, directory.path(), database.url(), &nowhere(&directory)?, &[]).await?;
    let accept = async |time| -> anyhow::Result<Seen> {
        clients(&gateway, CLIENTS, time, async |connection, n| {
            connection.post("/v1/submissions/create", request(n, "default")).await
        })
        .await
    };
    accept(time / 4).await?;
    let before = database.cpu().await?;
    let seen = accept(time).await?;
    let postgres = database.cpu().await? - before;
    let page = clients(&gateway, CLIENTS, time / 4, async |connection, _| {
        connection.get("/v1/submissions?limit=50&state=FINISHED").await
    });
    figures.start.push(gateway.started_in.as_secs_f64());
    figures.rate.push(seen.rate());
    figures.p99.push(seen.milliseconds.quantile(0.99));
    figures.cpu.push(seen.cpu_of_each());
    figures.postgres.push(postgres.as_secs_f64() * 1e3 / seen.milliseconds.len() as f64);
    figures.page.push(page.await?.milliseconds.quantile(0.99));
    Ok(())
}
