//! The primary is killed in the middle of a storm, and its synchronous standby takes its place.

use std::{mem, path::PathBuf, time::Duration};

use sparkgate_testing::dice::Dice;
use tokio::time::{Instant, sleep};

use super::{
    chaos::kill_replicas,
    oracle::{Unseen, Verdict, judge},
    world::World,
};

const PATIENCE: Duration = Duration::from_secs(120);
/// The duration of the storm.
const STORM: Duration = Duration::from_secs(16);
/// The time from the death of the primary to the promotion of its standby.
const UNNOTICED: Duration = Duration::from_secs(2);

pub(crate) struct Failover {
    pub(crate) verdict: Verdict,
    /// From the death of the primary until the next submission was accepted.
    pub(crate) accepted_after: Duration,
}

/// Submits jobs while replicas are killed; kills the primary in the middle.
pub(crate) async fn play(program: PathBuf, seed: u64, jobs: u32) -> Failover {
    let mut world = World::new(program, seed, 3, &[]).await;
    let standby = world.servers.both().postgres.synchronous_standby().await;
    let (clients, replicas) = (world.clients.clone(), world.replicas.clone());
    let mut accepted_after = Duration::ZERO;
    let failover = async {
        sleep(STORM / 2).await;
        world.servers.both().postgres.kill();
        let killed = Instant::now();
        let before = clients.book().accepted.len();
        sleep(UNNOTICED).await;
        standby.promote().await;
        drop(mem::replace(&mut world.servers.both().postgres, standby));
        world.follow_postgres();
        while clients.book().accepted.len() == before {
            sleep(Duration::from_millis(5)).await;
        }
        accepted_after = killed.elapsed();
    };
    tokio::join!(clients.submit_all(jobs, STORM), kill_replicas(&replicas, Dice::new(seed, "kills"), 8), failover);
    world.calm().await;
    world.settle(PATIENCE).await;
    let verdict = judge(&mut world, Unseen::Never).await;
    Failover { verdict, accepted_after }
}
