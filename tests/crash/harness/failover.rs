//! The primary is killed in the middle of a storm, and a standby takes its place, which has all commits or lacks the last ones.

use std::{collections::BTreeSet, fmt, mem, path::PathBuf, time::Duration};

use sparkgate_testing::{dice::Dice, process::until};
use tokio::time::{Instant, sleep};

use super::{
    chaos::kill_replicas,
    oracle::{Unseen, Verdict, judge},
    plan::{Ending, Job},
    truth::PodTruth,
    world::World,
};

const PATIENCE: Duration = Duration::from_secs(120);
/// The duration of the storm.
const STORM: Duration = Duration::from_secs(16);
/// The time from the death of the primary to the promotion of its standby.
const UNNOTICED: Duration = Duration::from_secs(2);
/// How long commits reach the primary alone.
const LAG: Duration = Duration::from_millis(1500);

/// What the standby has when the primary is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standby {
    /// Every commit.
    Synchronous,
    /// All but the last commits.
    Lagging,
}

pub(crate) struct Failover {
    pub(crate) verdict: Verdict,
    /// From the death of the primary until the next submission was accepted.
    pub(crate) accepted_after: Duration,
    /// Accepted submissions that the standby never got. The verdict leaves them out.
    pub(crate) never_replicated: usize,
}

/// A failover as it happened.
#[derive(Default)]
struct Promotion {
    /// The submissions that the standby had.
    replicated: BTreeSet<String>,
    /// Those that clients had been promised until then.
    promised: BTreeSet<String>,
    accepted_after: Duration,
}

/// Submits jobs while replicas are killed; kills the primary in the middle.
pub(crate) async fn play(program: PathBuf, seed: u64, jobs: u32, standby: Standby) -> Failover {
    let mut world = World::new(program, seed, 3, &[]).await;
    if standby == Standby::Lagging {
        // A driver whose pod is gone leaves nothing that shows that it ran: it would run again, or be lost.
        world.clients.wanted = |job: &Job| {
            job.kill_after.is_none() && matches!(job.ending, Ending::Exit(_) | Ending::OutOfMemory | Ending::Evicted)
        };
    }
    let (clients, replicas) = (world.clients.clone(), world.replicas.clone());
    let spare = match standby {
        Standby::Synchronous => Some(world.servers.both().postgres.synchronous_standby().await),
        Standby::Lagging => None,
    };
    let mut promotion = Promotion::default();
    tokio::join!(clients.submit_all(jobs, STORM), kill_replicas(&replicas, Dice::new(seed, "kills"), 8), async {
        promotion = fail_over(&mut world, spare).await
    });
    world.calm().await;
    world.settle(PATIENCE).await;
    let lost = lost(&world, &promotion).await;
    let never_replicated = promotion.promised.intersection(&lost).count();

    let of_lost = |pod: &PodTruth| lost.contains(&pod.submission);
    until("drivers of lost submissions are stopped", PATIENCE, async || {
        world.truth.count(|pod| of_lost(pod) && !pod.gone && pod.played.is_none()) == 0
    })
    .await;
    world.truth.all().retain(|_, pod| !of_lost(pod));
    world.clients.book().accepted.retain(|id, _| !lost.contains(id));
    let verdict = judge(&mut world, Unseen::Never).await;
    Failover { verdict, accepted_after: promotion.accepted_after, never_replicated }
}

async fn fail_over(world: &mut World, spare: Option<super::servers::Postgres>) -> Promotion {
    let clients = world.clients.clone();
    sleep(STORM / 2).await;
    let standby = match spare {
        Some(standby) => standby,
        None => {
            let standby = world.servers.both().postgres.standby_left_behind().await;
            sleep(LAG).await;
            // Whatever the others do: this one is lost.
            clients.submit().await;
            standby
        }
    };
    world.servers.both().postgres.kill();
    let killed = Instant::now();
    sleep(UNNOTICED).await;
    let promised: BTreeSet<String> = clients.book().accepted.keys().cloned().collect();
    let pool = standby.pool(&world.namespace);
    let replicated: Vec<String> = sqlx::query_scalar("SELECT id FROM submissions").fetch_all(&pool).await.unwrap();
    let replicated = replicated.into_iter().collect();
    pool.close().await;
    standby.promote().await;
    drop(mem::replace(&mut world.servers.both().postgres, standby));
    world.follow_postgres();
    clients.submit().await;
    Promotion { replicated, promised, accepted_after: killed.elapsed() }
}

/// Returns the submissions that were lost with the primary: those that were promised before, and those without a promise that have
/// neither a row nor had one on the standby.
async fn lost(world: &World, promotion: &Promotion) -> BTreeSet<String> {
    let rows: Vec<String> = sqlx::query_scalar("SELECT id FROM submissions").fetch_all(&world.pool).await.unwrap();
    let rows: BTreeSet<String> = rows.into_iter().collect();
    let accepted: BTreeSet<String> = world.clients.book().accepted.keys().cloned().collect();
    let with_pods: BTreeSet<String> = world.truth.all().values().map(|pod| pod.submission.clone()).collect();
    let of_primary = |id: &String| promotion.promised.contains(id) || !accepted.contains(id);
    let missing = accepted.union(&with_pods).filter(|id| !rows.contains(*id) && !promotion.replicated.contains(*id));
    missing.filter(|id| of_primary(id)).cloned().collect()
}

impl fmt::Display for Failover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Verdict { rows, lost, extra_creates, .. } = &self.verdict;
        let (after, never) = (self.accepted_after.as_secs_f64(), self.never_replicated);
        write!(
            f,
            "{rows} rows, {never} accepted ones never replicated, {lost} others lost, {extra_creates} second pods, accepted again \
             after {after:.1} s"
        )
    }
}
