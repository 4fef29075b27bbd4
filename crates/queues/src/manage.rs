//! What users and operators see of queues, and do with them.

use std::collections::{BTreeMap, HashMap};

use super::{
    Queues,
    cost::{running, used_by},
};
use sparkgate_access::{Queue, Role};
use sparkgate_common::error::Error;
use sparkgate_spark::Refusal;
use sparkgate_store::{HoldAnswer, QueueState, StoredQueueState, Submission};
use sparkgate_submission::{
    State, SubmissionId,
    queues::{Amounts, shares},
};
use sparkgate_tenancy::session::Session;

/// A queue, as those see it who may use it.
#[derive(Debug, Clone, PartialEq)]
pub struct QueueOverview {
    pub name: String,
    pub weight: u32,
    /// Its part of the capacity, according to the weights. What others don't use of theirs is lent to it.
    pub fair_share: f64,
    /// Its part of the capacity by use, of the resource of which it uses the largest part. Without a stated capacity, it is the part of
    /// all that runs.
    pub used_share: f64,
    /// What it uses of the fair shares of other queues, by their names. Queues that no tenant of the caller may use share an entry.
    pub borrowed: BTreeMap<Option<String>, f64>,
    /// What other queues use of its fair share.
    pub lent: f64,
    /// That part in amounts; resources without a capacity are unlimited.
    pub guaranteed: Amounts,
    /// What its submissions may use together; resources that it doesn't have are unlimited.
    pub caps: Amounts,
    /// Its state, if it isn't the normal one.
    pub state: Option<StoredQueueState>,
    /// What its admitted submissions reserve.
    pub running: Amounts,
    /// How many wait, not counting held ones.
    pub waiting: u64,
    pub held: u64,
    /// The tenants that the caller may read, by name.
    pub tenants: BTreeMap<String, TenantInQueue>,
}

/// What a tenant has in a queue.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TenantInQueue {
    pub running: Amounts,
    pub waiting: u64,
    pub held: u64,
}

impl Queues {
    /// Returns the queues that tenants of the caller may use, by name.
    ///
    /// # Errors
    /// The database doesn't answer.
    pub async fn overview(&self, caller: &Session) -> Result<Vec<QueueOverview>, Error> {
        let queues = caller.access().queues();
        if queues.is_empty() {
            return Ok(Vec::new());
        }
        let (read, backlogs) = (self.store.queue_round(0, &[], &[]).await?, self.store.queue_backlogs().await?);
        let tenants = caller.tenants();
        self.note_capacity(&read.capacity);
        let (weights, capacity) = (queues.weights(), self.capacity(queues));
        let is_visible = |queue: &Queue| tenants.iter().any(|tenant| queue.admits(tenant));
        let used: BTreeMap<_, _> =
            queues.iter().map(|queue| (queue.name.clone(), (queue.weight, used_by(&read, &queue.name)))).collect();
        let mut all = Amounts::default();
        read.places.iter().for_each(|place| all.add(&running(place)));
        let shares = shares(&used, if capacity.is_empty() { &all } else { &capacity });
        Ok(queues
            .iter()
            .filter(|queue| is_visible(queue))
            .map(|queue| {
                let share = shares.get(&queue.name).cloned().unwrap_or_default();
                let mut borrowed = BTreeMap::new();
                for (lender, part) in share.borrowed {
                    let lender = queues.get(&lender).filter(|queue| is_visible(queue)).map(|_| lender);
                    *borrowed.entry(lender).or_default() += part;
                }
                let mut overview = QueueOverview {
                    name: queue.name.clone(),
                    weight: queue.weight,
                    fair_share: share.fair,
                    used_share: share.used,
                    borrowed,
                    lent: shares.values().filter_map(|other| other.borrowed.get(&queue.name)).sum(),
                    guaranteed: capacity.part(queue.weight, weights),
                    caps: queue.caps.clone(),
                    state: read.states.iter().find(|state| state.queue == queue.name).cloned(),
                    running: used.get(&queue.name).map(|(_, used)| used.clone()).unwrap_or_default(),
                    waiting: 0,
                    held: 0,
                    tenants: BTreeMap::new(),
                };
                let of_queue = read.places.iter().filter(|place| place.queue == queue.name);
                for place in of_queue.filter(|place| tenants.contains(&place.tenant.as_str())) {
                    overview.tenants.entry(place.tenant.clone()).or_default().running = running(place);
                }
                for backlog in backlogs.iter().filter(|backlog| backlog.queue == queue.name) {
                    let (waiting, held) = (backlog.waiting.unsigned_abs(), backlog.held.unsigned_abs());
                    overview.waiting += waiting;
                    overview.held += held;
                    if tenants.contains(&backlog.tenant.as_str()) {
                        let tenant = overview.tenants.entry(backlog.tenant.clone()).or_default();
                        (tenant.waiting, tenant.held) = (waiting, held);
                    }
                }
                overview
            })
            .collect())
    }

    /// Returns how many submissions of its tenant are admitted before each of these that waits in a queue. More than a hundred aren't
    /// counted.
    ///
    /// # Errors
    /// The database doesn't answer.
    pub async fn positions(&self, submissions: &[Submission]) -> Result<HashMap<SubmissionId, u32>, Error> {
        let may_wait = |one: &&Submission| {
            one.queue.is_some() && one.held.is_none() && matches!(one.state, State::Queued | State::Launching)
        };
        let ids: Vec<&str> = submissions.iter().filter(may_wait).map(|one| one.id.as_str()).collect();
        if ids.is_empty() {
            return Ok(HashMap::new());
        }
        Ok(self.store.queue_positions(&ids).await?)
    }

    /// Returns whether the caller may change the states of queues: as operator of all tenants.
    pub fn may_change(caller: &Session) -> bool {
        caller.access().role_everywhere(caller.principal()) >= Some(Role::Operator)
    }

    /// Pauses a queue, lets it drain, or resumes it (`None`), and writes the entry of the audit.
    ///
    /// # Errors
    /// [`Error::Denied`] unless the caller is operator of all tenants; [`Error::QueueRefused`] for an unknown queue.
    pub async fn set_state(
        &self,
        caller: &Session,
        queue: &str,
        state: Option<QueueState>,
        reason: Option<&str>,
    ) -> Result<(), Error> {
        let (subject, access) = (caller.principal().subject(), caller.access());
        if !Self::may_change(caller) {
            return Err(Error::Denied(format!("{subject} needs the role operator in every tenant to change a queue")));
        }
        if access.queues().get(queue).is_none() {
            let names: Vec<_> = access.queues().iter().map(|queue| queue.name.as_str()).collect();
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            let reason = format!("there is no queue {queue:?}: the access file has {names}");
            return Err(Error::QueueRefused(Refusal::field("queue", reason)));
        }
        self.store.set_queue_state(queue, state, (subject, caller.actor().as_ref()), reason).await?;
        self.wakeups.state_changed();
        Ok(())
    }

    /// Holds a queued submission: it isn't launched before it is released, and its timeouts stop. Callers may hold what they may kill.
    ///
    /// # Errors
    /// [`Error::Denied`] if the caller may not; the database doesn't answer, or doesn't confirm it.
    pub async fn hold(&self, caller: &Session, id: &SubmissionId, reason: Option<&str>) -> Result<HoldAnswer, Error> {
        let (by, actor) = (caller.principal().subject(), caller.actor());
        let scoped = self.store.scoped(&caller.readable());
        let answer = scoped.hold(id, &caller.killable(), (by, actor.as_ref()), reason).await?;
        caller.check_permitted(id, answer.submission.as_ref().map(|_| answer.allowed), "hold")?;
        self.wakeups.state_changed();
        Ok(answer)
    }

    /// Releases a held submission.
    ///
    /// # Errors
    /// The same.
    pub async fn release(&self, caller: &Session, id: &SubmissionId) -> Result<HoldAnswer, Error> {
        let scoped = self.store.scoped(&caller.readable());
        let answer = scoped.release_held(id, &caller.killable(), caller.actor().as_ref()).await?;
        caller.check_permitted(id, answer.submission.as_ref().map(|_| answer.allowed), "release")?;
        self.wakeups.work_is_due();
        self.wakeups.state_changed();
        Ok(answer)
    }
}
