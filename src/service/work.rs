//! Claimed work: who may touch a submission's objects, and what becomes of the claim.

use std::time::Duration;

use futures::{StreamExt, stream};
use tokio::time::Instant;

use super::{Error, Gateway, error::chain};
use crate::{
    cluster,
    store::{Claimed, Task},
};

/// How long a claim holds, and how long its work may take: who is slower stops before another may begin.
const LEASE: Duration = Duration::from_secs(30);
const WORK: Duration = Duration::from_secs(25);

/// A claimed launch or kill.
pub struct Work {
    claimed: Claimed,
    begun: Instant,
}

/// What becomes of a claim after the work.
pub(super) enum Backoff {
    /// Done.
    None,
    /// To be looked at again.
    After(Duration),
    /// To be tried again, with the reason.
    Because(Duration, String),
}

impl Backoff {
    /// One second, doubling to half a minute.
    pub(super) fn failed(claimed: &Claimed, error: &cluster::Error) -> Self {
        let doublings = claimed.failed_tries.clamp(0, 5);
        let delay = Duration::from_secs(1u64 << doublings).min(Duration::from_secs(30));
        Self::Because(delay, chain(error))
    }
}

impl Gateway {
    /// Claims up to `slots` launches and kills that are due, oldest first.
    pub async fn claim(&self, slots: usize) -> Result<Vec<Work>, Error> {
        let begun = Instant::now();
        let limit = i64::try_from(slots).unwrap_or(i64::MAX);
        let claimed = self.store.claim(self.worker, LEASE, limit).await?;
        Ok(claimed.into_iter().map(|claimed| Work { claimed, begun }).collect())
    }

    /// Claims what is due and carries it out; answers how many there were.
    pub async fn work(&self) -> Result<usize, Error> {
        let all = self.claim(16).await?;
        let count = all.len();
        stream::iter(all).for_each_concurrent(None, |work| self.carry_out(work)).await;
        Ok(count)
    }

    /// Does one piece of claimed work. Its failure is its own: it is logged, and the claim given back or left to run out.
    pub async fn carry_out(&self, work: Work) {
        let Work { claimed, begun } = work;
        let (id, task) = (&claimed.id, claimed.task);
        let done = async {
            match task {
                Task::Launch => self.launch(&claimed).await,
                Task::Kill => self.carry_out_kill(&claimed).await,
            }
        };
        let Ok(done) = tokio::time::timeout_at(begun + WORK, done).await else {
            tracing::warn!(submission = %id, ?task, "not done within {WORK:?}: left to the next claim");
            return;
        };
        let settled = match done {
            Ok(Backoff::None) => self.store.release(id, self.worker).await,
            Ok(Backoff::After(delay)) => self.store.retry_later(&claimed, self.worker, delay, None).await,
            Ok(Backoff::Because(delay, why)) => {
                tracing::warn!(submission = %id, ?task, retry_in = ?delay, "{why}");
                self.store.retry_later(&claimed, self.worker, delay, Some(&why)).await
            }
            Err(error) => {
                tracing::error!(submission = %id, ?task, "{}", chain(&error));
                return;
            }
        };
        if let Err(error) = settled {
            tracing::error!(submission = %id, "{}", chain(&error));
        }
        // A kill may have come while we held the claim.
        self.wake.notify_one();
    }
}
