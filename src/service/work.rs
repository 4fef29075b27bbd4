//! Claimed work: launches and kills, and what becomes of the claim.

use std::{panic::AssertUnwindSafe, time::Duration};

use futures::{FutureExt, StreamExt, stream};
use uuid::Uuid;

use super::{
    Error, Gateway,
    attempts::Objects,
    error::chain,
    home_cluster::FRESH,
    perform::{Claim, Stopped, Subject},
};
use crate::{
    cluster::Manifest,
    store::{Claimed, Task},
    submission::engine::{Job, Kill, Launch, Settled},
};

/// How often a driver that was told to go is looked at, should the watch miss its end.
const RECHECK: Duration = Duration::from_secs(10);
/// The reason of a submission that waits because the API server denies its launch: Kubernetes' own word for a 403.
const DENIED: &str = "Forbidden";
/// How soon a claim is tried to be given back again that the database didn't take.
const SETTLE: Duration = Duration::from_millis(500);

/// A claimed launch or kill.
pub struct Work {
    claimed: Claimed,
    session: Uuid,
}

impl Gateway {
    /// Claims up to `slots` launches and kills that are due, oldest first. While the cluster doesn't answer, only one of
    /// all tries.
    pub async fn claim(&self, slots: usize) -> Result<Vec<Work>, Error> {
        self.leases.begin().await?;
        if !self.is_home_cluster(FRESH).await {
            return Ok(Vec::new());
        }
        let slots = self.gate.admits(slots);
        let Some(session) = self.leases.session().filter(|_| slots > 0) else { return Ok(Vec::new()) };
        // One claim at a time: what the database has given out and we don't know of yet looks like a lost answer.
        let mut busy = self.busy.lock().await;
        let ids: Vec<_> = busy.iter().cloned().collect();
        let claimed = self
            .store
            .claim(session, i64::try_from(slots).unwrap_or(i64::MAX), self.cluster.namespaces(), &ids)
            .await?;
        if claimed.is_empty() {
            self.gate.not_tried();
        } else {
            // Queued ones are being launched now.
            self.events.changed();
        }
        busy.extend(claimed.iter().map(|claimed| claimed.id.clone()));
        Ok(claimed.into_iter().map(|claimed| Work { claimed, session }).collect())
    }

    /// Claims what is due and carries it out; answers how many there were.
    pub async fn work(&self) -> Result<usize, Error> {
        let all = self.claim(16).await?;
        let count = all.len();
        stream::iter(all).for_each_concurrent(None, |work| self.carry_out(work)).await;
        Ok(count)
    }

    /// Does one piece of claimed work and gives the claim back. Its failure is its own.
    pub async fn carry_out(&self, work: Work) {
        self.work_and_settle(&work).await;
        self.busy.lock().await.remove(&work.claimed.id);
        // A kill may have come while we held the claim.
        self.wake.notify_one();
    }

    async fn work_and_settle(&self, work: &Work) {
        let Work { claimed, session } = work;
        let (id, task) = (&claimed.id, claimed.task);
        // A panic would leave the claim with this process for as long as it lives.
        let settled = match AssertUnwindSafe(self.do_work(work)).catch_unwind().await {
            Ok(Ok(settled)) => settled,
            Ok(Err(Stopped::ClaimLost)) => {
                tracing::warn!(submission = %id, ?task, "the claim was lost: left to whoever has it next");
                return;
            }
            Ok(Err(Stopped::Store(error))) => Settled::TryAgain(chain(&error)),
            Err(_) => Settled::TryAgain("a fault of Sparkgate: see its log".to_owned()),
        };
        while let Err(error) = self.settle(claimed, &settled).await {
            tracing::warn!(submission = %id, "{}", chain(&error));
            if !error.may_pass() || !self.leases.holds(*session) {
                return;
            }
            tokio::time::sleep(SETTLE).await;
        }
    }

    async fn do_work(&self, Work { claimed, session }: &Work) -> Result<Settled, Stopped> {
        let Claimed { id, attempt, namespace, epoch, .. } = claimed;
        let Objects { manifest, pod } = self.objects(claimed, claimed.task == Task::Launch).await?;
        let (manifest, fault) = match manifest {
            Ok(manifest) => (manifest, None),
            Err(why) => (Manifest::default(), Some(why)),
        };
        let job = Job {
            pod_uid: claimed.pod_uid.clone(),
            signed: manifest.is_signed(),
            before: manifest.before.len(),
            beside: manifest.beside.len(),
            kill: claimed.kill.clone(),
        };
        // A launch that is given up has started nothing that could use it.
        let grace = claimed.kill_grace.filter(|_| claimed.task == Task::Kill);
        let claim = Claim { session: *session, epoch: *epoch, manifest: &manifest, grace };
        let subject = Subject { id, attempt: *attempt, namespace, pod: &pod, claim: Some(claim) };
        match (claimed.task, fault) {
            (Task::Kill, _) => self.run(&subject, Kill::begin(job)).await,
            (Task::Launch, None) => self.run(&subject, Launch::begin(job)).await,
            (Task::Launch, Some(why)) => self.run(&subject, Launch::refuse(job, "Unreadable", why)).await,
        }
    }

    async fn settle(&self, claimed: &Claimed, settled: &Settled) -> Result<(), Error> {
        let (id, task) = (&claimed.id, claimed.task);
        match settled {
            Settled::GivenBack => {}
            Settled::Done => self.store.release(claimed).await?,
            Settled::LookAgain => self.store.retry_later(claimed, RECHECK, None).await?,
            Settled::TryAgain(why) => {
                // In an outage all wait for the same thing; otherwise this one has a trouble of its own.
                let delay = self.gate.pause().unwrap_or_else(|| backoff(claimed.failed_tries));
                tracing::warn!(submission = %id, ?task, retry_in = ?delay, "{why}");
                self.store.retry_later(claimed, delay, Some((None, why))).await?;
            }
            Settled::Denied(why) => {
                let delay = backoff(claimed.failed_tries);
                tracing::error!(submission = %id, ?task, retry_in = ?delay, "{why}");
                self.store.retry_later(claimed, delay, Some((Some(DENIED), why))).await?;
            }
            Settled::GivenUp(why) => {
                tracing::error!(submission = %id, ?task, "{why}");
                self.store.release(claimed).await?;
            }
        }
        Ok(())
    }
}

/// One second, doubling to half a minute. After about five minutes of failures the submission is set aside: it is tried
/// every five minutes, for whatever is wrong may be put right.
fn backoff(failed_tries: i32) -> Duration {
    Duration::from_secs(match failed_tries {
        ..=4 => 1 << failed_tries.max(0),
        5..=13 => 30,
        _ => 300,
    })
}
