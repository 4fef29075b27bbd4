//! Launching: from a committed row to a driver in the cluster, safe to repeat at every point.

use std::time::Duration;

use futures::{StreamExt, stream};
use tokio::time::Instant;

use super::{Error, Gateway, error::chain};
use crate::{
    cluster::{self, Found, labels},
    spark::{Refusal, SubmitContext, build_driver},
    store::{Claimed, Placement, Progress, Task},
    submission::{Outcome, State},
};

/// How long a claim holds, and how long its work may take: who is slower stops before another may begin.
const LEASE: Duration = Duration::from_secs(30);
const WORK: Duration = Duration::from_secs(25);
/// Claimed at a time, and worked on at once.
const BATCH: i64 = 16;
const CONCURRENCY: usize = 16;

/// Why an attempt to launch did not end with a driver.
enum Stopped {
    /// Repeating can't help.
    ForGood(Outcome),
    /// The cluster gave no answer: the same objects are tried again under the same names.
    ForNow(cluster::Error),
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
    /// Claims what is due and works on it: launches and kills. Answers how many there were; as many as a batch holds means
    /// that there may be more.
    pub async fn work(&self) -> Result<usize, Error> {
        let begun = Instant::now();
        let claimed = self.store.claim(self.worker, LEASE, BATCH).await?;
        let count = claimed.len();
        stream::iter(claimed).for_each_concurrent(CONCURRENCY, |claimed| self.work_on(claimed, begun)).await;
        Ok(count)
    }

    /// One claimed submission. Its failure is its own: it is logged and the claim runs out.
    async fn work_on(&self, claimed: Claimed, begun: Instant) {
        let id = &claimed.id;
        let work = async {
            match claimed.task {
                Task::Launch => self.launch(&claimed).await,
                Task::Kill => self.carry_out_kill(&claimed).await,
            }
        };
        let Ok(worked) = tokio::time::timeout_at(begun + WORK, work).await else {
            tracing::warn!(submission = %id, task = ?claimed.task, "not done within {WORK:?}: left to the next claim");
            return;
        };
        let settled = match worked {
            Ok(Backoff::None) => self.store.release(id, self.worker).await,
            Ok(Backoff::After(delay)) => self.store.retry_later(id, self.worker, delay, None).await,
            Ok(Backoff::Because(delay, why)) => {
                tracing::warn!(submission = %id, task = ?claimed.task, retry_in = ?delay, "{why}");
                self.store.retry_later(id, self.worker, delay, Some(&why)).await
            }
            Err(error) => {
                tracing::error!(submission = %id, task = ?claimed.task, "{}", chain(&error));
                return;
            }
        };
        if let Err(error) = settled {
            tracing::error!(submission = %id, "{}", chain(&error));
        }
        // A kill may have come while we held the claim.
        self.wake.notify_one();
    }

    async fn launch(&self, claimed: &Claimed) -> Result<Backoff, Error> {
        let (progress, placement) = match self.ensure_driver(claimed).await {
            Ok(uid) => (Progress::Launched, Placement { pod_uid: Some(uid), ..Placement::default() }),
            Err(Stopped::ForGood(outcome)) => (Progress::Ended(outcome), Placement::default()),
            Err(Stopped::ForNow(error)) => return Ok(Backoff::failed(claimed, &error)),
        };
        let moved = self.store.advance(&claimed.id, claimed.attempt, &progress, &placement).await?;
        tracing::info!(submission = %claimed.id, moved, progress = ?progress, "launched");
        Ok(Backoff::None)
    }

    /// Makes sure that the driver pod and everything beside it exist; answers the pod's uid. The pod comes first; a pod
    /// of that name that carries our id is the one an earlier try made. If the cluster refuses a later object the pod is
    /// deleted again, as spark-submit does.
    async fn ensure_driver(&self, claimed: &Claimed) -> Result<String, Stopped> {
        let Claimed { id, attempt, namespace, names, .. } = claimed;
        let mut request = claimed.request.clone();
        for (label, value) in [(labels::SUBMISSION_ID, id.to_string()), (labels::ATTEMPT, attempt.to_string())] {
            request.spark_properties.insert(format!("spark.kubernetes.executor.label.{label}"), value);
        }
        let context = SubmitContext {
            version: claimed.spark_version,
            names: names.clone(),
            submitted_at: claimed.created_at,
            user: self.spark.user.clone(),
        };
        let driver = build_driver(&request, &context).map_err(refused)?;
        let uid = match self.cluster.create_pod(namespace, &driver.pod, id, *attempt).await {
            Ok(uid) => uid,
            Err(cluster::Error::Conflict { message, .. }) => {
                match self.cluster.find_driver(namespace, &names.driver_pod, id, *attempt).await.map_err(stopped)? {
                    Found::Ours(seen) => seen.pod_uid,
                    Found::Foreign => {
                        let message = format!("{message}, and it isn't this submission's");
                        return Err(Stopped::ForGood(Outcome::new(State::Error, "AlreadyExists", message)));
                    }
                    // It went between the two calls: its name is free for the next try.
                    Found::Nothing => {
                        let action = format!("creating the driver pod {namespace}/{}", names.driver_pod);
                        return Err(Stopped::ForNow(cluster::Error::Conflict { action, message }));
                    }
                }
            }
            Err(error) => return Err(stopped(error)),
        };
        for object in &driver.resources {
            let created = self.cluster.create_owned(namespace, object, &names.driver_pod, &uid).await;
            if let Err(error) = created {
                let stopped = stopped(error);
                if matches!(stopped, Stopped::ForGood(_)) {
                    self.cluster.delete_pod(namespace, &names.driver_pod, &uid).await.map_err(Stopped::ForNow)?;
                }
                return Err(stopped);
            }
        }
        Ok(uid)
    }
}

fn refused(refusal: Refusal) -> Stopped {
    Stopped::ForGood(Outcome::new(State::Error, "Refused", refusal.to_string()))
}

/// Sorts a failed call: a `404` on a create means that the namespace isn't there.
fn stopped(error: cluster::Error) -> Stopped {
    let reason = match &error {
        cluster::Error::Unavailable { .. } => return Stopped::ForNow(error),
        cluster::Error::NotFound { .. } => "NotFound",
        cluster::Error::Conflict { .. } => "AlreadyExists",
        cluster::Error::Refused { reason, .. } => reason,
    };
    Stopped::ForGood(Outcome::new(State::Error, reason, error.to_string()))
}
