//! The lives of the submissions, without a cluster: the statements of the launcher and of the watch.

use std::time::Duration;

use futures::future::try_join_all;
use sparkgate::{
    store::{Claimed, Store, replica},
    submission::{Outcome, Placement, State, StateChange},
};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use crate::samples::Samples;

/// Launches that are claimed at once.
const TOGETHER: i64 = 16;
/// The longest lease that there is.
const LEASE: Duration = Duration::from_secs(30);
/// The pause after a claim of nothing.
const PAUSE: Duration = Duration::from_millis(20);

pub(super) struct Lives {
    /// The latency of each claim that found something, in milliseconds.
    pub(super) claims: Samples,
}

impl Lives {
    /// Claims what is queued and lets it run and finish, for `time`.
    pub(super) async fn run(store: &Store, time: Duration) -> anyhow::Result<Self> {
        let session = Uuid::new_v4();
        let begun = Instant::now();
        let mut claims = Samples::default();
        while begun.elapsed() < time {
            store.acquire_lease(&replica(session), session, LEASE).await?;
            let sent = Instant::now();
            let claimed = store.claim(session, TOGETHER, &[], &[]).await?;
            if claimed.is_empty() {
                sleep(PAUSE).await;
                continue;
            }
            claims.push(sent.elapsed().as_secs_f64() * 1e3);
            try_join_all(claimed.iter().map(|claimed| live(store, claimed))).await?;
            let ended: Vec<_> = claimed.iter().map(|claimed| (claimed.id.as_str(), claimed.attempt)).collect();
            store.note_pods_deleted(&ended).await?;
        }
        store.end_leases(session).await?;
        Ok(Self { claims })
    }
}

async fn live(store: &Store, claimed: &Claimed) -> anyhow::Result<()> {
    let Claimed { id, attempt, epoch, .. } = claimed;
    let uid = Uuid::new_v4().to_string();
    store.record_pod(id, *attempt, *epoch, &uid).await?;
    let placement = Placement { pod_uid: Some(uid), node: Some("node-1".to_owned()), ..Placement::default() };
    store.advance(id, *attempt, Some(*epoch), &StateChange::Launched, &placement).await?;
    store.advance(id, *attempt, None, &StateChange::Running, &placement).await?;
    let finished = Outcome { exit_code: Some(0), ..Outcome::new(State::Finished, "Completed", "") };
    store.advance(id, *attempt, None, &StateChange::Ended(finished), &placement).await?;
    Ok(())
}
