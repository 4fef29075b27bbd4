//! How long a gateway takes to know so many pods that run: at its start, and when it has to list them again.

use crate::{
    bench::Bench,
    figures::growth::count,
    gateway::Gateway,
    report::Report,
    samples::Samples,
    servers::{Database, Played},
};

/// Beside a history of `ended`.
pub(super) async fn measure(
    bench: &Bench,
    database: &Database,
    pods: usize,
    ended: usize,
    report: &mut Report,
) -> anyhow::Result<()> {
    let (mut ready, mut relist, mut cpu) = (Samples::default(), Samples::default(), Samples::default());
    let server = Played::start(pods).await?;
    for _ in 0..bench.runs {
        let directory = tempfile::tempdir()?;
        let gateway = Gateway::start(bench, directory.path(), database.url(), &server.kubeconfig(), &[]).await?;
        let listed_in = gateway.until_ready().await?;
        ready.push((gateway.started_in + listed_in).as_secs_f64());
        let before = gateway.process().cpu()?;
        relist.push(server.relist(database).await?.as_secs_f64());
        cpu.push((gateway.process().cpu()? - before).as_secs_f64());
        // Another may watch at once only if this one gives its leases back, and it doesn't: they have to run out.
        drop(gateway);
        sqlx::query("DELETE FROM leases").execute(&mut database.connect().await?).await?;
    }
    let beside = format!("{} pods, {} ended", count(pods), count(ended));
    report.add(format!("{beside}: from its start until the gateway is ready"), "s", &ready);
    report.add(format!("{beside}: listed again and taken in"), "s", &relist);
    report.add(format!("{beside}: listed again, CPU of the gateway"), "s", &cpu);
    Ok(())
}
