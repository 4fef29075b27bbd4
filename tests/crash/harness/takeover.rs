//! Measures how long the other replicas take to finish the work of a killed one.

use std::{fmt, time::Duration};

use futures::future::join_all;
use tokio::time::Instant;

use super::world::World;

/// Jobs in progress when their replica is killed.
const BURST: usize = 20;

const PATIENCE: Duration = Duration::from_secs(60);

/// For each killed replica, how long until all its submissions were launched, and until all had ended.
#[derive(Debug, Default)]
pub(crate) struct Takeovers {
    launched: Vec<Duration>,
    ended: Vec<Duration>,
}

/// Submits a burst to one replica and kills it in the middle, `times` times.
pub(crate) async fn measure(world: &World, times: usize) -> Takeovers {
    let mut takeovers = Takeovers::default();
    for nth in 0..times {
        let replica = world.replicas[nth % world.replicas.len()].clone();
        let mut clients = world.clients.clone();
        clients.gateways = vec![clients.gateways[nth % world.replicas.len()].clone()];
        join_all((0..BURST).map(|_| clients.submit())).await;
        replica.kill();
        let killed = Instant::now();
        world.drain(PATIENCE).await;
        takeovers.launched.push(killed.elapsed());
        world.settle(PATIENCE).await;
        takeovers.ended.push(killed.elapsed());
        world.all_up().await;
    }
    takeovers
}

impl fmt::Display for Takeovers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.launched.is_empty() {
            return f.write_str("not measured");
        }
        let times = |all: &[Duration]| {
            let mut all: Vec<_> = all.iter().map(Duration::as_secs_f64).collect();
            all.sort_by(f64::total_cmp);
            format!("p50 {:.1} s, max {:.1} s", all[all.len() / 2], all[all.len() - 1])
        };
        write!(f, "{} times; launched: {}; ended: {}", self.launched.len(), times(&self.launched), times(&self.ended))
    }
}
