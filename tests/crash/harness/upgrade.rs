//! A rolling upgrade and a rollback while jobs are submitted.

use std::{path::PathBuf, time::Duration};

use tokio::time::sleep;

use super::{
    oracle::{Unseen, Verdict, judge},
    world::World,
};

const PATIENCE: Duration = Duration::from_secs(120);
/// The time for which both releases run side by side in one composition.
const STEP: Duration = Duration::from_secs(3);
const REPLICAS: usize = 3;

/// Replaces the replicas of the old program by the new one, one after the other, and then back.
pub(crate) async fn play(old: PathBuf, new: PathBuf, seed: u64, jobs: u32) -> Verdict {
    let mut world = World::new(old.clone(), seed, REPLICAS, &[]).await;
    let clients = world.clients.clone();
    let time = STEP * u32::try_from(2 * REPLICAS + 3).unwrap();
    let rollout = async {
        sleep(STEP).await;
        world.servers.both().postgres.migrate(&new, &world.namespace, &world.pool).await;
        sleep(STEP).await;
        for program in [&new, &old] {
            for replica in &world.replicas {
                replica.replace(program).await;
                world.all_up().await;
                sleep(STEP).await;
            }
        }
    };
    tokio::join!(clients.submit_all(jobs, time), rollout);
    world.settle(PATIENCE).await;
    judge(&mut world, Unseen::Never).await
}
