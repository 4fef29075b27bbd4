//! How long a gateway takes to list so many running pods: at its start, and when it has to list them again.

use sqlx::AssertSqlSafe;

use crate::{
    bench::Bench,
    gateway::Gateway,
    number::count,
    report::Report,
    samples::Samples,
    servers::{Database, Played},
};

/// Measures one run beside a history of `ended` submissions.
pub(super) async fn measure(
    bench: &Bench,
    database: &Database,
    pods: usize,
    ended: usize,
    report: &mut Report,
) -> anyhow::Result<()> {
    let (mut ready, mut cpu_of_start) = (Samples::default(), Samples::default());
    let (mut relist, mut cpu) = (Samples::default(), Samples::default());
    let server = Played::start(pods).await?;
    for _ in 0..bench.runs {
        forget(database).await?;
        let directory = tempfile::tempdir()?;
        let gateway = Gateway::start(bench, directory.path(), database.url(), &server.kubeconfig(), &[]).await?;
        let listed_in = gateway.until_ready().await?;
        ready.push((gateway.started_in + listed_in).as_secs_f64());
        let before = gateway.process().cpu()?;
        cpu_of_start.push(before.as_secs_f64());
        relist.push(server.relist(database).await?.as_secs_f64());
        cpu.push((gateway.process().cpu()? - before).as_secs_f64());
        drop(gateway);
    }
    let beside = format!("{} pods, {} ended", count(pods), count(ended));
    report.add(format!("{beside}: from its start until the gateway has listed them"), "s", &ready);
    report.add(format!("{beside}: until then, CPU of the gateway"), "s", &cpu_of_start);
    report.add(format!("{beside}: listed again and processed"), "s", &relist);
    report.add(format!("{beside}: listed again, CPU of the gateway"), "s", &cpu);
    Ok(())
}

/// Deletes the traces of earlier gateways. Otherwise the lease of a killed gateway would first have to expire, and the
/// watch would resume where that gateway stopped.
async fn forget(database: &Database) -> anyhow::Result<()> {
    let mut connection = database.connect().await?;
    for table in ["leases", "watch_positions"] {
        sqlx::query(AssertSqlSafe(format!("DELETE FROM {table}"))).execute(&mut connection).await?;
    }
    Ok(())
}
