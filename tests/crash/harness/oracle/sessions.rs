//! The ends of sessions of Spark Connect.

use std::{collections::BTreeSet, time::Duration};

use sparkgate_testing::process::until;

use super::Verdict;
use crate::harness::world::{IDLE, World};

/// Within which a session that has ended frees its name.
const FREED: Duration = Duration::from_secs(60);

/// Checks that only sessions were ended that no client used for their time, and that ended ones free their names. Returns those that were
/// ended so.
pub(super) async fn judge(world: &World, verdict: &mut Verdict) -> BTreeSet<String> {
    let all = "SELECT count(*) FROM connect_sessions c JOIN submissions s ON s.id = c.submission_id";
    let all: i64 = sqlx::query_scalar(all).fetch_one(&world.pool).await.unwrap();
    let idle = "SELECT c.submission_id, s.started_at IS NOT NULL AND c.idled_at - greatest(c.used_at, c.ready_at, s.started_at)
            > make_interval(secs => $1)
        FROM connect_sessions c JOIN submissions s ON s.id = c.submission_id WHERE c.idled_at IS NOT NULL";
    let idle: Vec<(String, bool)> = sqlx::query_as(idle).bind(IDLE).fetch_all(&world.pool).await.unwrap();
    for (id, _) in idle.iter().filter(|(_, was_idle)| !was_idle) {
        verdict.violations.push(format!("{id}: the session was ended before it was idle"));
    }
    verdict.sessions = (usize::try_from(all).unwrap(), idle.len());
    if all > 0 {
        let named = "SELECT count(*) FROM connect_sessions c JOIN submissions s ON s.id = c.submission_id WHERE c.ended_at IS NULL";
        until("all sessions have ended", FREED, async || {
            sqlx::query_scalar::<_, i64>(named).fetch_one(&world.pool).await.is_ok_and(|left| left == 0)
        })
        .await;
    }
    idle.into_iter().map(|(id, _)| id).collect()
}
