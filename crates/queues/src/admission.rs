//! Admits what is next, round by round, while this replica holds the lease.

use std::{
    collections::{BTreeMap, HashMap},
    future::ready,
    sync::{Arc, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::{
    Queues,
    cost::{largest, running, waiting_cost},
};
use sparkgate_access as access;
use sparkgate_common::error::{Error, error_chain};
use sparkgate_metrics::{metrics, text};
use sparkgate_store::{Place, QueueRound, QueueState, WaitingHead};
use sparkgate_submission::queues::{Amounts, Candidate, Queue, Snapshot, Tenant, WaitReason, decide};

/// The lease of the replica that admits.
const LEASE: &str = "queues";
/// How many submissions of each tenant in a queue a round knows.
pub(crate) const HEADS: u32 = 32;
/// How many submissions a round admits.
const ADMITTED_AT_ONCE: usize = 200;
/// The shortest time between two rounds, so that concurrent submissions share one.
const GAP: Duration = Duration::from_millis(20);
/// The shortest time between two rounds as a multiple of a round's: beside a long backlog, where a round reads much, rounds take at most a
/// fifth of a connection.
const REST: u32 = 4;
/// Interval of rounds, for what other replicas accepted or saw end.
const PERIOD: Duration = Duration::from_millis(500);
const AFTER_A_FAULT: Duration = Duration::from_secs(1);
/// Interval at which submissions are ended that waited too long, and old admissions are deleted.
const CLEAN_UP: Duration = Duration::from_secs(5);
const CLEANED_UP_AT_ONCE: u32 = 500;
const ADDED_UP_AT_ONCE: u32 = 10_000;
/// How long the numbers of a reason may be old.
const REASON: Duration = Duration::from_secs(15);
/// For how long a submission that was picked and couldn't be admitted is left out: another transaction has locked its row, and others
/// would wait for it in vain.
const SET_ASIDE: Duration = Duration::from_secs(5);
/// Interval of looks for submissions in queues while the file has none.
const LEFT_OVER: Duration = Duration::from_secs(60);

impl Queues {
    /// Admits submissions while this replica holds the lease, until `stop`. Without queues in the access file, it only looks now and then
    /// for submissions in queues that the file had.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        let mut looked: Option<Instant> = None;
        while !stop.is_cancelled() {
            if self.has_queues() || self.has_left_over(&mut looked).await {
                let ended = stop.child_token();
                let rounds = async || {
                    self.learn_first().await;
                    tokio::select! {
                        () = self.rounds() => ended.cancel(),
                        () = self.keep_learning() => {}
                    }
                };
                self.leases.while_held(LEASE, &ended, || ready(Ok(true)), rounds).await;
            }
            stop.run_until_cancelled(sleep(AFTER_A_FAULT)).await;
        }
    }

    fn has_queues(&self) -> bool {
        !self.access.current().access().queues().is_empty()
    }

    /// Returns whether submissions wait in queues that the file has no more. They are admitted without caps.
    async fn has_left_over(&self, looked: &mut Option<Instant>) -> bool {
        if looked.is_some_and(|at| at.elapsed() < LEFT_OVER) {
            return false;
        }
        *looked = Some(Instant::now());
        self.store.has_waiting_in_queues().await.unwrap_or_else(|error| {
            tracing::debug!("looking for submissions in queues failed: {}", error_chain(&error));
            false
        })
    }

    /// Runs rounds as long as there are queues.
    async fn rounds(&self) {
        let mut cleaned_up: Option<Instant> = None;
        loop {
            if cleaned_up.is_none_or(|at| at.elapsed() >= CLEAN_UP) {
                cleaned_up = Some(Instant::now());
                if let Err(error) = self.clean_up().await {
                    tracing::warn!(retry_in = ?CLEAN_UP, "ending overdue waits in queues failed: {}", error_chain(&error));
                }
            }
            let begun = Instant::now();
            let round = self.round().await;
            let gap = GAP.max(begun.elapsed() * REST).min(PERIOD);
            let pause = match round {
                Ok(Rest::More) => gap,
                Ok(Rest::Nothing) if !self.has_queues() => return,
                Ok(_) => PERIOD,
                Err(error) => {
                    tracing::warn!(retry_in = ?AFTER_A_FAULT, "a round of admissions failed: {}", error_chain(&error));
                    AFTER_A_FAULT
                }
            };
            sleep(gap).await;
            if pause > gap {
                tokio::select! {
                    () = sleep(pause - gap) => {}
                    () = self.wakeups.admission_may_be_due() => {}
                }
            }
        }
    }

    async fn clean_up(&self) -> Result<(), Error> {
        self.store.forget_admissions(CLEANED_UP_AT_ONCE).await?;
        while self.store.add_up_backlogs(ADDED_UP_AT_ONCE).await? >= u64::from(ADDED_UP_AT_ONCE) {}
        let Some(until) = self.clock.believed_until("deadlines").await? else { return Ok(()) };
        let ended = self.store.end_overdue_waits(CLEANED_UP_AT_ONCE, Some(until)).await?;
        if ended > 0 {
            tracing::info!(submissions = ended, "submissions ended that waited too long in their queues");
            self.wakeups.work_is_due();
            self.wakeups.state_changed();
        }
        Ok(())
    }

    /// Admits what is next, if there is room.
    ///
    /// # Errors
    /// The database doesn't answer. The next round decides anew.
    pub async fn round(&self) -> Result<Rest, Error> {
        let tenancy = self.access.current();
        let queues = tenancy.access().queues();
        let set_aside: Vec<_> = self.set_aside().keys().copied().collect();
        let read = self.store.queue_round(HEADS, &largest(queues, &self.capacity(queues)), &set_aside).await?;
        self.note_capacity(&read.capacity);
        let decision = decide(&snapshot(&read, queues), ADMITTED_AT_ONCE);
        let heads = heads(&read);
        if !decision.admitted.is_empty() {
            let Some(session) = self.leases.session() else { return Ok(Rest::Waits) };
            let picks = decision.admitted.iter().filter_map(|number| Some((*number, heads.get(number)?.1.attempt)));
            let picks: Vec<_> = picks.collect();
            let Some(admitted) = self.store.admit((session, LEASE), read.version, &picks).await? else {
                return Ok(Rest::More);
            };
            let is_admitted = |number: &i64| admitted.iter().any(|one| one.number == *number);
            let left = picks.iter().map(|(number, _)| *number).filter(|number| !is_admitted(number));
            self.set_aside().extend(left.map(|number| (number, Instant::now() + SET_ASIDE)));
            for one in &admitted {
                let (submission, attempt, queue, tenant) = (&one.id, one.attempt, &one.queue, &one.tenant);
                tracing::info!(submission, attempt, queue, tenant, waited = one.waited_seconds, "submission admitted");
                if queues.get(queue).is_some() {
                    metrics().queue_wait.with([text(queue)]).observe(one.waited_seconds);
                }
            }
            self.wakeups.work_is_due();
            self.wakeups.state_changed();
        }
        self.explain(&decision.waiting, &heads).await?;
        Ok(match read.places.iter().all(|place| place.waiting.is_empty()) {
            _ if decision.is_partial => Rest::More,
            true => Rest::Nothing,
            false => Rest::Waits,
        })
    }

    /// Returns the submissions that are left out for now, and until when.
    fn set_aside(&self) -> MutexGuard<'_, HashMap<i64, Instant>> {
        let mut set_aside = self.set_aside.lock().unwrap_or_else(PoisonError::into_inner);
        set_aside.retain(|_, until| *until > Instant::now());
        set_aside
    }

    /// Writes reasons that have changed; those whose numbers alone have changed, only now and then.
    async fn explain(
        &self,
        waiting: &BTreeMap<i64, WaitReason>,
        heads: &HashMap<i64, (&str, &WaitingHead)>,
    ) -> Result<(), Error> {
        let now = Instant::now();
        let changed: Vec<_> = {
            let mut explained = self.explained.lock().unwrap_or_else(PoisonError::into_inner);
            explained.retain(|number, _| waiting.contains_key(number));
            let each = waiting.iter().filter_map(|(number, reason)| {
                let (queue, head) = heads.get(number)?;
                let (word, sentence) = (reason.word(), reason.sentence(queue));
                let is_old = explained.get(number).is_none_or(|at| now - *at >= REASON);
                let is_same = head.reason.as_deref() == Some(word);
                let is_stale = head.message.as_ref() != Some(&sentence);
                (!is_same || is_stale && is_old).then_some((*number, head.attempt, word, sentence))
            });
            let changed: Vec<_> = each.collect();
            explained.extend(changed.iter().map(|(number, ..)| (*number, now)));
            changed
        };
        if !changed.is_empty() {
            self.store.explain_waiting(&changed).await?;
        }
        Ok(())
    }
}

/// What a round left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest {
    /// Another round may admit more right now.
    More,
    /// Something waits, and has a reason.
    Waits,
    Nothing,
}

/// Returns the next submissions by their numbers, with their queues.
fn heads<'a>(read: &'a QueueRound) -> HashMap<i64, (&'a str, &'a WaitingHead)> {
    let of_place = |place: &'a Place| {
        let heads = place.passed_over.iter().chain(&place.waiting);
        heads.map(|one| (one.number, (place.queue.as_str(), one)))
    };
    read.places.iter().flat_map(of_place).collect()
}

/// Returns a queue without submissions.
pub(crate) fn empty_queue(read: &QueueRound, rules: &access::Queues, name: &str) -> Queue {
    let is_paused = read.state_of(name) == Some(QueueState::Paused);
    rules.get(name).map_or_else(Queue::default, |rules| Queue {
        weight: rules.weight,
        caps: rules.caps.clone(),
        is_paused,
        tenants: BTreeMap::new(),
    })
}

/// Combines the rows with the rules of the access file. A queue that the file has no more has no caps.
pub(crate) fn snapshot(read: &QueueRound, rules: &access::Queues) -> Snapshot {
    let mut queues = BTreeMap::<String, Queue>::new();
    for place in &read.places {
        let queue = queues.entry(place.queue.clone()).or_insert_with(|| empty_queue(read, rules, &place.queue));
        // Those that cost too much only get their reason.
        let waiting = place.passed_over.iter().chain(&place.waiting).map(|one| Candidate {
            number: one.number,
            cost: waiting_cost(one),
            waited: Duration::try_from_secs_f64(one.waited_seconds).unwrap_or_default(),
        });
        let seconds = |seconds: f64| Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or_default();
        let tenant = Tenant {
            running: running(place),
            since_admission: place.since_admission.map(seconds),
            waiting: waiting.collect(),
            has_more: place.has_more,
        };
        queue.tenants.insert(place.tenant.clone(), tenant);
    }
    let capacity = rules.capacity_with(&Amounts::from_map(&read.capacity));
    Snapshot { capacity, reserve_after: rules.reserve_after, queues }
}
