//! Spark's own master: it keeps submissions in its memory, and has no worker that would run one.

use anyhow::ensure;
use hyper::body::Bytes;

use super::{
    PATH, measure_protocol,
    table::{Measure, Table},
};
use crate::{
    bench::{Bench, Peer},
    servers::Master,
};

pub(super) async fn measure(bench: &Bench, table: &mut Table) -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let master = Master::start(directory.path()).await?;
    // At each submission the master goes through all drivers that wait for a worker.
    measure_protocol(bench, &master, Peer::Master, table, async |connection| {
        let answer = connection.post(&format!("{PATH}/killall"), Bytes::new()).await?;
        ensure!(answer.status == 200, "killall: {}", answer.status);
        Ok(())
    })
    .await?;
    let memory = master.process().peak_memory()?;
    table.put(Measure::less("peak memory while accepting", "MB"), Peer::Master, memory);
    Ok(())
}
