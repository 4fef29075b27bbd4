//! The database is restored from a backup that was taken while jobs ran.

use std::{collections::BTreeSet, path::PathBuf, time::Duration};

use futures::future::join_all;
use sparkgate_testing::process::until;

use super::{
    http::get,
    oracle::{Unseen, Verdict, judge},
    plan::{Ending, Job},
    truth::PodTruth,
    world::World,
};

/// How the database is backed up and restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Backup {
    /// `pg_dump`, restored while a replica runs on.
    Dump,
    /// `pg_basebackup`, restored while no replica runs.
    Base,
}

/// What the drivers do when the database is restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Drivers {
    Run,
    HaveEnded,
}

const LIMIT: Duration = Duration::from_secs(60);
const PATIENCE: Duration = Duration::from_secs(150);
/// The number of jobs that run when the backup is taken, of those that wait then, of those that are submitted later, and of
/// those that are submitted after the restore.
const EACH: usize = 8;

/// Runs the drill. The verdict leaves out the submissions that the backup lacks, whose drivers must have ended.
pub(crate) async fn play(program: PathBuf, seed: u64, backup: Backup, drivers: Drivers) -> Verdict {
    let mut world = World::new(program, seed, 2, &[]).await;
    let (ended, database) = (drivers == Drivers::HaveEnded, world.namespace.clone());
    world.hold.send_replace(true);
    // A driver whose pod is gone leaves nothing that shows that it ran: it would run again, or be lost.
    let keeps = |job: &Job| !ended || matches!(job.ending, Ending::Exit(_) | Ending::OutOfMemory | Ending::Evicted);
    let may_be_lost = |job: &Job| keeps(job) || job.retries == 0;

    let running = submit(&world, may_be_lost).await;
    started(&world, EACH).await;
    world.servers.both().kubernetes.kill_apiserver();
    let waiting = submit(&world, keeps).await;
    let postgres = &world.servers.both().postgres;
    let (mut dump, mut copy) = (None, None);
    match backup {
        Backup::Dump => dump = Some(postgres.dump(&database).await),
        Backup::Base => copy = Some(postgres.copy("base", &[]).await),
    }
    world.servers.both().kubernetes.ready().await;
    started(&world, 2 * EACH).await;
    let unknown = submit(&world, keeps).await;
    started(&world, 3 * EACH).await;
    if ended {
        world.hold.send_replace(false);
        world.settle(PATIENCE).await;
        world.hold.send_replace(true);
    }
    let cursor = cursor(&world).await;

    let away = if backup == Backup::Dump { 1 } else { 2 };
    world.replicas.iter().take(away).for_each(|replica| replica.down());
    let postgres = &mut world.servers.both().postgres;
    if let Some(dump) = dump {
        postgres.restore(&database, &dump).await;
    }
    if let Some(copy) = copy {
        postgres.go_back_to(copy).await;
        postgres.after_restore(&database).await;
    }
    world.replicas.iter().take(away).for_each(|replica| replica.start());
    world.all_up().await;

    let later = submit(&world, |_| true).await;
    let mut violations = Vec::new();
    let all: BTreeSet<&String> = [&running, &waiting, &unknown, &later].into_iter().flatten().collect();
    if all.len() != 4 * EACH {
        violations.push(format!("an id was given out twice: {all:?}"));
    }
    let of_unknown = |pod: &PodTruth| unknown.contains(&pod.submission);
    let settled = |pod: &PodTruth| pod.gone || pod.played.is_some();
    until("drivers without a submission are stopped", LIMIT, async || {
        world.truth.count(|pod| of_unknown(pod) && !settled(pod)) == 0
    })
    .await;
    world.hold.send_replace(false);
    until("a cursor from the lost time is refused", LIMIT, async || {
        let target = format!("/v1/events?after={cursor}");
        let replies = world.clients.gateways.iter().map(|gateway| get(gateway, &target));
        join_all(replies).await.into_iter().all(|reply| reply.is_some_and(|reply| reply.status == 410))
    })
    .await;
    world.settle(PATIENCE).await;

    world.truth.all().retain(|_, pod| !of_unknown(pod));
    world.clients.book().accepted.retain(|id, _| !unknown.contains(id));
    let mut verdict = judge(&mut world, if ended { Unseen::Deleted } else { Unseen::Never }).await;
    if verdict.extra_creates > 0 {
        violations.push(format!("{} second pods of an attempt", verdict.extra_creates));
    }
    verdict.violations.append(&mut violations);
    verdict
}

async fn submit(world: &World, like: impl Fn(&Job) -> bool) -> Vec<String> {
    let mut ids = Vec::new();
    for _ in 0..EACH {
        ids.push(world.clients.submit_like(&like).await);
    }
    ids
}

async fn started(world: &World, drivers: usize) {
    until("the drivers run", LIMIT, async || world.truth.count(|pod| pod.started) == drivers).await;
}

/// Returns the cursor of a client that has seen all events.
async fn cursor(world: &World) -> i64 {
    let mut cursor = 0;
    until("all events have numbers", LIMIT, async || {
        let numbered =
            "SELECT last FROM event_sequence WHERE NOT EXISTS (SELECT FROM submission_events WHERE sequence IS NULL)";
        cursor = sqlx::query_scalar(numbered).fetch_optional(&world.pool).await.unwrap().unwrap_or_default();
        cursor > 0
    })
    .await;
    cursor
}
