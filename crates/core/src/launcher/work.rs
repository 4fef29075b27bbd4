//! Claimed work: runs launches and kills, and returns their claims.

use std::{panic::AssertUnwindSafe, time::Duration};

use futures::{FutureExt, StreamExt, stream};
use tokio::time::{Instant, sleep, sleep_until};
use uuid::Uuid;

use super::{Launcher, SLOTS, attempts::Objects, under_way::Whose};
use crate::{
    effects::{Claim, Stopped, Subject, circuit_breaker::Failure},
    home_cluster::FRESH,
    ports::{Attempt, LaunchChange, NoLaunch, Resolution, Wait},
};
use sparkgate_common::error::{Error, error_chain};
use sparkgate_metrics::metrics;
use sparkgate_store::{Claimed, Task};
use sparkgate_submission::engine::{Job, Kill, Launch, Obstacle, Settled};
use sparkgate_traces::{KeyValue, Span, SpanKind, attribute};

/// Pause after a claim that left namespaces out and found nothing. Otherwise, while one namespace uses its whole share, each launch that
/// ends would trigger another claim.
const NOTHING_FOUND: Duration = Duration::from_millis(20);
/// How often claims whose replies were lost are returned, while this replica may not work.
const GIVEN_BACK: Duration = Duration::from_secs(1);

/// How often a driver that is being deleted is checked, in case the watch misses its end.
const RECHECK: Duration = Duration::from_secs(10);
/// Reason of a submission that waits because the API server denies its launch: Kubernetes' own reason of a 403.
const DENIED: &str = "Forbidden";
/// How long a submission that a queue holds waits at most before the queue is asked again.
const HELD: Duration = Duration::from_secs(30);
/// The longest pause of a submission that a webhook denies for now, or whose namespace doesn't exist.
const LONGEST_POSTPONED: Duration = Duration::from_secs(30);
/// Pause before a failed attempt to return a claim is repeated.
const SETTLE: Duration = Duration::from_millis(500);

/// A claimed launch or kill.
pub struct Work {
    claimed: Claimed,
    session: Uuid,
}

/// How work ended that still has its claim.
enum Ended {
    Settled(Settled),
    Waits(Wait),
    Held(Wait),
}

impl Ended {
    /// Returns the result for metrics.
    fn result(&self) -> &'static str {
        match self {
            Self::Waits(wait) | Self::Held(wait) => wait.result,
            Self::Settled(settled) => match settled {
                Settled::GivenBack | Settled::Done => "done",
                Settled::LookAgain => "look_again",
                Settled::TryAgain(_) => "retried",
                Settled::Denied(_) => "denied",
                Settled::Postponed(Obstacle::Quota, _) => "no_room",
                Settled::Postponed(..) => "denied",
                Settled::GivenUp(_) => "given_up",
            },
        }
    }

    /// Marks the span of work that didn't succeed.
    fn mark(&self, span: &Span) {
        if !matches!(self, Self::Settled(Settled::Done | Settled::GivenBack | Settled::LookAgain)) {
            span.fail(self.result());
        }
    }
}

fn count(task: Task, result: &'static str) {
    let task = match task {
        Task::Launch => "launch",
        Task::Kill => "kill",
    };
    metrics().launch_tries.with([task, result]).inc();
}

/// Returns the span of work for a submission, in the trace that the submission belongs to.
fn span_of(claimed: &Claimed) -> Span {
    let name = if claimed.task == Task::Launch { "launch" } else { "kill" };
    Span::for_submission(name, SpanKind::Consumer, claimed.trace.as_deref(), || {
        [
            KeyValue::new(attribute::SUBMISSION_ID, claimed.id.to_string()),
            KeyValue::new(attribute::ATTEMPT, i64::from(claimed.attempt)),
            KeyValue::new(attribute::K8S_NAMESPACE_NAME, claimed.namespace.clone()),
            KeyValue::new(attribute::K8S_POD_NAME, claimed.pod.clone()),
        ]
    })
}

impl Launcher {
    /// Claims up to `slots` launches and kills that are due. Tenants take turns, and the namespaces of each; none of them gets more
    /// than its share of the slots. While the cluster doesn't answer for a namespace, the claim takes only one of its submissions.
    pub async fn claim(&self, slots: usize) -> Result<Vec<Work>, Error> {
        self.effects.leases.begin().await?;
        let may_work = self.health.home.is_here(FRESH).await && !self.health.watch.is_cut_off();
        let Some(session) = self.effects.leases.session().filter(|_| slots > 0) else { return Ok(Vec::new()) };
        // One claim at a time: a claim that the database granted and this process doesn't know of yet looks like a lost reply.
        let mut busy = self.busy.lock().await;
        let ids: Vec<_> = busy.submissions.keys().cloned().collect();
        if !may_work {
            // Otherwise, a claim whose reply was lost would keep its submission from the other replicas. Not for each submission that is
            // accepted meanwhile: the statement reads all that wait.
            if busy.gave_back.is_none_or(|at| at.elapsed() >= GIVEN_BACK) {
                self.store.give_back_unknown(session, &ids).await?;
                busy.gave_back = Some(Instant::now());
            }
            return Ok(Vec::new());
        }
        let namespaces = self.cluster.namespaces();
        let room = busy.room(slots, SLOTS, self.effects.breakers.restricted());
        let is_restricted = !room.closed.is_empty() || !room.one.is_empty();
        if let Some(at) = busy.found_nothing.filter(|_| is_restricted) {
            sleep_until(at + NOTHING_FOUND).await;
        }
        let claimed = self.store.claim_within(session, &room, namespaces, &ids).await?;
        busy.found_nothing = (is_restricted && claimed.is_empty()).then(Instant::now);
        if !claimed.is_empty() {
            // The state of claimed launches changed from QUEUED to LAUNCHING.
            self.wakeups.state_changed();
        }
        for claimed in &claimed {
            self.effects.breakers.begins(&claimed.namespace, claimed.number);
            let whose = Whose { tenant: claimed.tenant.clone(), namespace: claimed.namespace.clone() };
            busy.submissions.insert(claimed.id.clone(), whose);
        }
        Ok(claimed.into_iter().map(|claimed| Work { claimed, session }).collect())
    }

    /// Claims the work that is due and carries it out. Returns how much there was.
    pub async fn work(&self) -> Result<usize, Error> {
        let all = self.claim(16).await?;
        let count = all.len();
        stream::iter(all).for_each_concurrent(None, |work| self.carry_out(work)).await;
        Ok(count)
    }

    /// Carries out one piece of claimed work and returns the claim. A failure affects no other work.
    pub async fn carry_out(&self, work: Work) {
        // After a panic, too, the row is no longer this process's work: it claims the row again.
        let _ = AssertUnwindSafe(span_of(&work.claimed).enter(self.work_and_settle(&work))).catch_unwind().await;
        self.effects.breakers.ends(&work.claimed.namespace, work.claimed.number);
        self.busy.lock().await.submissions.remove(&work.claimed.id);
        // A kill may have been requested while this process held the claim.
        self.wakeups.work_is_due();
    }

    async fn work_and_settle(&self, work: &Work) {
        let Work { claimed, session } = work;
        let (id, task) = (&claimed.id, claimed.task);
        // A panic would leave the claim with this process until it exits.
        let ended = match AssertUnwindSafe(self.do_work(work)).catch_unwind().await {
            Ok(Ok(settled)) => Ended::Settled(settled),
            Ok(Err(Stopped::ClaimLost)) => {
                count(task, "claim_lost");
                tracing::warn!(submission = %id, ?task, "claim lost: left to its next holder");
                return;
            }
            Ok(Err(Stopped::Store(error))) => Ended::Settled(Settled::TryAgain(error_chain(&error))),
            Ok(Err(Stopped::Waits(wait))) => Ended::Waits(wait),
            Ok(Err(Stopped::Held(wait))) => Ended::Held(wait),
            Err(_) => Ended::Settled(Settled::TryAgain("an internal error of Sparkgate: see its log".to_owned())),
        };
        count(task, ended.result());
        ended.mark(&Span::current());
        while let Err(error) = self.settle(claimed, &ended).await {
            tracing::warn!(submission = %id, "returning the claim failed: {}", error_chain(&error));
            if !error.may_pass() || !self.effects.leases.holds(*session) {
                return;
            }
            sleep(SETTLE).await;
        }
    }

    async fn do_work(&self, Work { claimed, session }: &Work) -> Result<Settled, Stopped> {
        let Claimed { id, attempt, namespace, epoch, .. } = claimed;
        let Objects { mut manifest, pod, mut fault } = self.objects(claimed, claimed.task == Task::Launch).await?;
        let (queue, is_begun) = (claimed.queue.as_deref(), claimed.pod_uid.is_some());
        let about = Attempt { id, number: *attempt, namespace, queue, pod: &pod, is_begun };
        if claimed.task == Task::Launch && fault.is_none() {
            let (resolution, changes) =
                self.attachments.resolve(&about, &mut manifest).await.map_err(Stopped::Store)?;
            match resolution {
                Resolution::Ready | Resolution::Changed(_) => self.record(claimed, &changes).await?,
                Resolution::Wait(wait) => return Err(Stopped::Waits(wait)),
                Resolution::Held(wait) => return Err(Stopped::Held(wait)),
                Resolution::NoRoom(why) => {
                    self.effects.breakers.failed(namespace, true, Failure::Full, None);
                    return Ok(Settled::Postponed(Obstacle::Quota, why));
                }
                Resolution::Refused(why) => fault = Some(why),
            }
        }
        let job = Job {
            pod_uid: claimed.pod_uid.clone(),
            // Nothing of an attempt without objects was created, so nothing unsigned is its.
            signed: manifest.is_signed() || manifest.is_empty(),
            held: manifest.is_held(),
            before: manifest.before.len(),
            beside: manifest.beside.len(),
            kill: claimed.kill.clone(),
        };
        // A launch that is given up has started no driver that could use a grace period.
        let grace = claimed.kill_grace.filter(|_| claimed.task == Task::Kill);
        let failed_tries = claimed.failed_tries;
        let claim = Claim { session: *session, epoch: *epoch, manifest: &manifest, failed_tries, grace };
        let subject = Subject { id, attempt: *attempt, namespace, pod: &pod, held: true, claim: Some(claim) };
        match (claimed.task, fault) {
            (Task::Kill, _) => self.effects.run(&subject, Kill::begin(job)).await,
            (Task::Launch, None) => {
                let settled = self.effects.run(&subject, Launch::begin(job)).await?;
                if matches!(settled, Settled::Postponed(Obstacle::Quota, _)) {
                    self.attachments.withdraw(&about).await.map_err(Stopped::Store)?;
                }
                Ok(settled)
            }
            (Task::Launch, Some(NoLaunch { reason, message })) => {
                tracing::warn!(submission = %id, reason, "not launched: {message}");
                self.effects.run(&subject, Launch::refuse(job, reason, message)).await
            }
        }
    }

    /// Records what the launch changes in the objects, before anything is created.
    async fn record(&self, claimed: &Claimed, changes: &[LaunchChange]) -> Result<(), Stopped> {
        if changes.is_empty() {
            return Ok(());
        }
        let changes = serde_json::to_value(changes)
            .map_err(|error| Error::Internal("writing the changes of a launch".into(), Box::new(error)))
            .map_err(Stopped::Store)?;
        match self.store.record_launch_changes(claimed, &changes).await? {
            true => Ok(()),
            false => Err(Stopped::ClaimLost),
        }
    }

    async fn settle(&self, claimed: &Claimed, ended: &Ended) -> Result<(), Error> {
        let (id, task) = (&claimed.id, claimed.task);
        let settled = match ended {
            Ended::Settled(settled) => settled,
            Ended::Waits(Wait { reason, message, .. }) => {
                let delay = backoff(claimed.failed_tries);
                tracing::warn!(submission = %id, reason, retry_in = ?delay, "the launch waits: {message}");
                return Ok(self.store.retry_later(claimed, delay, Some((Some(reason), message))).await?);
            }
            Ended::Held(Wait { reason, message, .. }) => {
                tracing::debug!(submission = %id, reason, "a queue holds the launch: {message}");
                return Ok(self.store.hold(claimed, jittered(HELD), reason, message).await?);
            }
        };
        match settled {
            Settled::GivenBack => {}
            Settled::Done => self.store.release(claimed).await?,
            Settled::LookAgain => self.store.retry_later(claimed, RECHECK, None).await?,
            Settled::TryAgain(why) => {
                // In an outage, all submissions of the namespace wait for the same thing; otherwise, the problem is this
                // submission's own.
                let outage = self.effects.breakers.pause(&claimed.namespace);
                let delay = outage.unwrap_or_else(|| jittered(backoff(claimed.failed_tries)));
                tracing::warn!(submission = %id, ?task, retry_in = ?delay, "work postponed: {why}");
                match outage {
                    Some(_) => self.store.retry_after_outage(claimed, delay, why).await?,
                    None => self.store.retry_later(claimed, delay, Some((None, why))).await?,
                }
            }
            // The circuit breaker spaces the tries of the namespace, and the end of a pod there permits the next one.
            Settled::Postponed(Obstacle::Quota, why) => {
                tracing::info!(submission = %id, "waiting for room in a quota: {why}");
                self.store.wait_for_room(claimed, Obstacle::Quota.reason(), why).await?;
            }
            Settled::Postponed(obstacle, why) => {
                let delay = jittered(backoff(claimed.failed_tries).min(LONGEST_POSTPONED));
                tracing::warn!(submission = %id, ?task, retry_in = ?delay, "work postponed: {why}");
                self.store.retry_later(claimed, delay, Some((Some(obstacle.reason()), why))).await?;
            }
            Settled::Denied(why) => {
                let delay = jittered(backoff(claimed.failed_tries));
                tracing::error!(submission = %id, ?task, retry_in = ?delay, "work denied by the cluster: {why}");
                self.store.retry_later(claimed, delay, Some((Some(DENIED), why))).await?;
            }
            Settled::GivenUp(why) => {
                tracing::error!(submission = %id, ?task, "work given up: {why}");
                self.store.release(claimed).await?;
            }
        }
        Ok(())
    }
}

/// Returns the pause before the next try: one second, doubling to 30 seconds. After about five minutes of failures, the
/// submission is tried only every five minutes.
fn backoff(failed_tries: i32) -> Duration {
    match failed_tries {
        ..14 => Duration::from_secs(1u64 << failed_tries.clamp(0, 5)).min(Duration::from_secs(30)),
        _ => Duration::from_secs(300),
    }
}

/// Shortens a pause at random by up to a quarter, so that submissions that failed together don't try again together.
fn jittered(pause: Duration) -> Duration {
    let random = f64::from(Uuid::new_v4().as_fields().0) / f64::from(u32::MAX);
    pause.mul_f64(1.0 - random / 4.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_of_submissions_that_failed_together_differ() {
        let pauses: Vec<_> = (0..32).map(|_| jittered(Duration::from_secs(60))).collect();
        let range = Duration::from_secs(45)..=Duration::from_secs(60);
        assert!(pauses.iter().all(|pause| range.contains(pause)), "{pauses:?}");
        assert!(pauses.iter().any(|pause| *pause != pauses[0]));
    }

    #[test]
    fn the_backoff_grows_to_five_minutes() {
        let seconds: Vec<_> = (0..16).map(|tries| backoff(tries).as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 30, 30, 30, 30, 30, 30, 30, 30, 30, 300, 300]);
        assert!((290..=330).contains(&seconds[..14].iter().sum::<u64>()));
    }
}
