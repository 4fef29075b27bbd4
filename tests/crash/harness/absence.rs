//! All replicas are killed while drivers run, and start again when the drivers have ended.

use std::{fmt, path::PathBuf, time::Duration};

use futures::future::join_all;
use sparkgate_testing::process::until;

use super::{
    oracle::{Unseen, Verdict, judge},
    world::World,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Absence {
    /// Our finalizer keeps every pod until its outcome is recorded, even if etcd is compacted.
    WithFinalizer,
    /// Without the finalizer the watch resumes where it stopped.
    Resumed,
    /// Without the finalizer, and with etcd's history compacted meanwhile.
    Forgotten,
}

impl fmt::Display for Absence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::WithFinalizer => "all replicas away, compaction",
            Self::Resumed => "the same, no finalizer, resumed",
            Self::Forgotten => "the same, no finalizer, compaction",
        })
    }
}

const LIMIT: Duration = Duration::from_secs(60);

pub(crate) async fn play(program: PathBuf, seed: u64, absence: Absence, jobs: u32) -> Verdict {
    let options: &[&str] = if absence == Absence::WithFinalizer { &[] } else { &["--outcome-finalizer", "false"] };
    let mut world = World::new(program, seed, 2, options).await;
    world.hold.send_replace(true);
    join_all((0..jobs).map(|_| world.clients.submit())).await;
    let all = usize::try_from(jobs).unwrap();
    until("all drivers run", LIMIT, async || world.truth.count(|pod| pod.started) == all).await;
    // The replicas may be that fast: without a position there is nothing to resume from.
    until("the watch has a position", LIMIT, async || {
        let positions = sqlx::query_scalar("SELECT count(*) FROM watch_positions").fetch_one(&world.pool).await;
        positions.is_ok_and(|positions: i64| positions > 0)
    })
    .await;

    for replica in &world.replicas {
        replica.down();
    }
    world.hold.send_replace(false);
    until("all drivers have ended", LIMIT, async || world.truth.count(|pod| pod.told) == all).await;
    if absence != Absence::Resumed {
        let kubernetes = &mut world.servers.both().kubernetes;
        kubernetes.compact().await.unwrap();
        kubernetes.kill_apiserver();
        kubernetes.ready().await;
    }

    world.replicas[0].start();
    world.settle(LIMIT).await;
    judge(&mut world, if absence == Absence::Forgotten { Unseen::Deleted } else { Unseen::Never }).await
}
