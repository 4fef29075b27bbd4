//! Claimed work: runs launches and kills, and returns their claims.

use std::{collections::HashMap, panic::AssertUnwindSafe, time::Duration};

use futures::{FutureExt, StreamExt, stream};
use tokio::time::{Instant, sleep, sleep_until};
use uuid::Uuid;

use super::{
    Error, Gateway,
    attempts::Objects,
    circuit_breaker::Restricted,
    error::chain,
    home_cluster::FRESH,
    perform::{Claim, Stopped, Subject},
};
use crate::{
    cluster::Manifest,
    store::{Claimed, Room, Task},
    submission::{
        SubmissionId,
        engine::{Job, Kill, Launch, Settled},
    },
};

/// Maximum number of submissions of one namespace that a process works on at once. The total may be higher, so that a namespace
/// with a slow webhook never occupies all slots.
const OF_ONE_NAMESPACE: usize = 96;
/// A namespace with fewer free slots than this waits until so many are free, so that one statement claims them together.
const TOGETHER: usize = 16;
/// Pause after a claim by namespace that found nothing. Otherwise, while one namespace uses its whole share, each launch that
/// ends would trigger another claim.
const NOTHING_FOUND: Duration = Duration::from_millis(20);

/// How often a driver that is being deleted is checked, in case the watch misses its end.
const RECHECK: Duration = Duration::from_secs(10);
/// Reason of a submission that waits because the API server denies its launch: Kubernetes' own reason of a 403.
const DENIED: &str = "Forbidden";
/// Pause before a failed attempt to return a claim is repeated.
const SETTLE: Duration = Duration::from_millis(500);

/// A claimed launch or kill.
pub struct Work {
    claimed: Claimed,
    session: Uuid,
}

/// The submissions that this process works on under a claim.
#[derive(Debug, Default)]
pub(super) struct UnderWay {
    /// With their namespaces.
    submissions: HashMap<SubmissionId, String>,
    /// When a claim by namespace last found nothing.
    found_nothing: Option<Instant>,
}

impl UnderWay {
    /// Returns the limit of a claim of up to `slots`, or, if the claim has to treat namespaces differently, the [`Room`] of
    /// each.
    fn room(&self, slots: usize, restricted: Restricted) -> Result<usize, Room> {
        let mut places = HashMap::<&str, usize>::new();
        for namespace in self.submissions.values() {
            *places.entry(namespace).or_insert(OF_ONE_NAMESPACE) -= 1;
        }
        let fewest = places.values().copied().min().unwrap_or(OF_ONE_NAMESPACE);
        let Restricted { open, half_open } = restricted;
        if open.is_empty() && half_open.is_empty() && fewest >= TOGETHER.min(slots) {
            return Ok(slots.min(fewest));
        }
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let fewer = places.into_iter().filter(|(namespace, _)| open.iter().all(|one| one != namespace));
        let fewer =
            fewer.map(|(namespace, left)| (namespace.to_owned(), if left < TOGETHER { 0 } else { number(left) }));
        let fewer = fewer.collect::<Vec<_>>().into_iter().chain(open.iter().map(|namespace| (namespace.clone(), 0)));
        Err(Room { all: number(slots), each: number(OF_ONE_NAMESPACE), fewer: fewer.collect(), one: half_open })
    }
}

impl Gateway {
    /// Claims up to `slots` launches and kills that are due, oldest first. One namespace gets no more than its share of the
    /// slots. While the cluster doesn't answer for a namespace, the claim takes only one of its submissions.
    pub async fn claim(&self, slots: usize) -> Result<Vec<Work>, Error> {
        self.leases.begin().await?;
        if !self.is_home_cluster(FRESH).await {
            return Ok(Vec::new());
        }
        let Some(session) = self.leases.session().filter(|_| slots > 0) else { return Ok(Vec::new()) };
        if self.watch.is_cut_off() {
            return Ok(Vec::new());
        }
        // One claim at a time: a claim that the database granted and this process doesn't know of yet looks like a lost reply.
        let mut busy = self.busy.lock().await;
        let ids: Vec<_> = busy.submissions.keys().cloned().collect();
        let namespaces = self.cluster.namespaces();
        let claimed = match busy.room(slots, self.breakers.restricted()) {
            Ok(limit) => {
                let limit = i64::try_from(limit).unwrap_or(i64::MAX);
                self.store.claim(session, limit, namespaces, &ids).await?
            }
            Err(room) => {
                if let Some(at) = busy.found_nothing {
                    sleep_until(at + NOTHING_FOUND).await;
                }
                let claimed = self.store.claim_by_namespace(session, &room, namespaces, &ids).await?;
                busy.found_nothing = claimed.is_empty().then(Instant::now);
                claimed
            }
        };
        if !claimed.is_empty() {
            // The state of claimed launches changed from QUEUED to LAUNCHING.
            self.events.changed();
        }
        for claimed in &claimed {
            self.breakers.begins(&claimed.namespace, claimed.number);
            busy.submissions.insert(claimed.id.clone(), claimed.namespace.clone());
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
        self.work_and_settle(&work).await;
        self.breakers.ends(&work.claimed.namespace, work.claimed.number);
        self.busy.lock().await.submissions.remove(&work.claimed.id);
        // A kill may have been requested while this process held the claim.
        self.wake.notify_one();
    }

    async fn work_and_settle(&self, work: &Work) {
        let Work { claimed, session } = work;
        let (id, task) = (&claimed.id, claimed.task);
        // A panic would leave the claim with this process until it exits.
        let settled = match AssertUnwindSafe(self.do_work(work)).catch_unwind().await {
            Ok(Ok(settled)) => settled,
            Ok(Err(Stopped::ClaimLost)) => {
                tracing::warn!(submission = %id, ?task, "claim lost: left to its next holder");
                return;
            }
            Ok(Err(Stopped::Store(error))) => Settled::TryAgain(chain(&error)),
            Err(_) => Settled::TryAgain("an internal error of Sparkgate: see its log".to_owned()),
        };
        while let Err(error) = self.settle(claimed, &settled).await {
            tracing::warn!(submission = %id, "{}", chain(&error));
            if !error.may_pass() || !self.leases.holds(*session) {
                return;
            }
            sleep(SETTLE).await;
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
        // A launch that is given up has started no driver that could use a grace period.
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
                // In an outage, all submissions of the namespace wait for the same thing; otherwise, the problem is this
                // submission's own.
                let outage = self.breakers.pause(&claimed.namespace);
                let delay = outage.unwrap_or_else(|| backoff(claimed.failed_tries));
                tracing::warn!(submission = %id, ?task, retry_in = ?delay, "{why}");
                match outage {
                    Some(_) => self.store.retry_after_outage(claimed, delay, why).await?,
                    None => self.store.retry_later(claimed, delay, Some((None, why))).await?,
                }
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

/// Returns the pause before the next try: one second, doubling to 30 seconds. After about five minutes of failures, the
/// submission is tried only every five minutes.
fn backoff(failed_tries: i32) -> Duration {
    match failed_tries {
        ..14 => Duration::from_secs(1u64 << failed_tries.clamp(0, 5)).min(Duration::from_secs(30)),
        _ => Duration::from_secs(300),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn under_way(counts: &[(&str, usize)]) -> UnderWay {
        let mut under_way = UnderWay::default();
        for (namespace, count) in counts {
            for number in 0..*count {
                let id = format!("driver-20260101000000-{:04}", under_way.submissions.len() + number);
                under_way.submissions.insert(id.parse().unwrap(), (*namespace).to_owned());
            }
        }
        under_way
    }

    #[test]
    fn a_claim_gives_a_namespace_no_more_than_its_share() {
        let room = |counts, slots| under_way(counts).room(slots, Restricted::default());
        assert_eq!(room(&[], 192), Ok(96));
        assert_eq!(room(&[("a", 60)], 132), Ok(36), "a plain limit, as long as all namespaces have room");
        assert_eq!(room(&[("a", 95)], 1), Ok(1));
        let fewer = |room: Result<usize, Room>| {
            let mut room = room.unwrap_err();
            room.fewer.sort();
            (room.all, room.each, room.fewer)
        };
        assert_eq!(fewer(room(&[("a", 90)], 102)), (102, 96, vec![("a".to_owned(), 0)]));
        let two = fewer(room(&[("a", 96), ("b", 20)], 76));
        assert_eq!(two, (76, 96, vec![("a".to_owned(), 0), ("b".to_owned(), 76)]));
    }

    #[test]
    fn a_claim_takes_one_submission_of_a_half_open_namespace_and_none_of_an_open_one() {
        let restricted = || Restricted { open: vec!["a".to_owned()], half_open: vec![("b".to_owned(), 7)] };
        let room = under_way(&[("a", 3)]).room(16, restricted()).unwrap_err();
        assert_eq!((room.fewer, room.one), (vec![("a".to_owned(), 0)], vec![("b".to_owned(), 7)]));
    }

    #[test]
    fn the_backoff_grows_to_five_minutes() {
        let seconds: Vec<_> = (0..16).map(|tries| backoff(tries).as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 30, 30, 30, 30, 30, 30, 30, 30, 30, 300, 300]);
        assert!((290..=330).contains(&seconds[..14].iter().sum::<u64>()));
    }
}
