//! A run from its start to its report.

use std::{collections::BTreeMap, fmt, path::PathBuf, time::Instant};

use sparkgate_testing::guard::guard;

use super::{
    clients::Clients,
    faults::{Harm, harm, heal, prepare},
    judge::{Counts, judge},
    table::TABLE,
    world::World,
};

pub(crate) struct Run {
    pub(crate) program: PathBuf,
    pub(crate) seed: u64,
    pub(crate) requests: usize,
    /// The number of concurrent requests.
    pub(crate) clients: usize,
    pub(crate) talkative: bool,
}

#[derive(Debug)]
pub(crate) struct Report {
    seconds: u64,
    pub(crate) rows: usize,
    counts: Counts,
    faults: BTreeMap<Harm, usize>,
    pub(crate) violations: Vec<String>,
}

impl Run {
    pub(crate) async fn play(self) -> Report {
        let begun = Instant::now();
        let mut world = World::new(self.program, self.seed).await;
        prepare(&world.pool).await;
        let clients = Clients::new(self.seed, world.gateways.iter().map(|gateway| gateway.address).collect());
        let mut faults = BTreeMap::new();
        tokio::select! {
            () = clients.send_all(self.requests, self.clients, self.talkative) => {}
            () = harm(&mut world, self.seed, &clients.successes, &mut faults) => {}
        }
        heal(&mut world).await;
        world.end().await;
        let entries = std::mem::take(&mut *clients.entries.lock().unwrap());
        let (counts, violations, rows) = judge(&world.pool, &entries).await;
        if !violations.is_empty() {
            guard().keep();
        }
        Report { seconds: begun.elapsed().as_secs(), rows, counts, faults, violations }
    }
}

impl Report {
    pub(crate) fn complaint(&self) -> String {
        let some: Vec<&str> = self.violations.iter().take(20).map(String::as_str).collect();
        let (count, logs) = (self.violations.len(), guard().directory().display());
        format!("{count} untrue, logs in {logs}:\n{}", some.join("\n"))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let requests: usize = self.counts.values().sum();
        writeln!(f, "{requests} replies, {} rows, {} s, {} untrue", self.rows, self.seconds, self.violations.len())?;
        for ((asked, reply, found), count) in &self.counts {
            let row = TABLE.iter().find(|row| row.asked == *asked && row.reply == *reply);
            let says = row.map_or("nothing", |row| row.says);
            writeln!(f, "| {asked} | {reply} | {says} | {found} | {count} |")?;
        }
        let faults: Vec<String> = self.faults.iter().map(|(fault, count)| format!("{count} {fault:?}")).collect();
        write!(f, "faults: {}", faults.join(", "))
    }
}
