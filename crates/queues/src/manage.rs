//! What users and operators see of queues, and do with them.

use std::collections::BTreeMap;

use super::{Queues, cost::running};
use sparkgate_access::Role;
use sparkgate_common::error::Error;
use sparkgate_spark::Refusal;
use sparkgate_store::{Filter, HoldAnswer, QueueState, StoredQueueState};
use sparkgate_submission::{SubmissionId, queues::Amounts};
use sparkgate_tenancy::session::Session;

/// A queue, as those see it who may use it.
#[derive(Debug, Clone, PartialEq)]
pub struct QueueOverview {
    pub name: String,
    pub weight: u32,
    /// Its part of the capacity, according to the weights. What others don't use of theirs is lent to it.
    pub fair_share: f64,
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
        let weights: u32 = queues.iter().map(|queue| queue.weight).sum();
        let visible = queues.iter().filter(|queue| tenants.iter().any(|tenant| queue.admits(tenant)));
        Ok(visible
            .map(|queue| {
                let mut overview = QueueOverview {
                    name: queue.name.clone(),
                    weight: queue.weight,
                    fair_share: f64::from(queue.weight) / f64::from(weights.max(1)),
                    caps: queue.caps.clone(),
                    state: read.states.iter().find(|state| state.queue == queue.name).cloned(),
                    running: Amounts::default(),
                    waiting: 0,
                    held: 0,
                    tenants: BTreeMap::new(),
                };
                for place in read.places.iter().filter(|place| place.queue == queue.name) {
                    let of_tenant = running(place);
                    overview.running.add(&of_tenant);
                    if tenants.contains(&place.tenant.as_str()) {
                        overview.tenants.entry(place.tenant.clone()).or_default().running = of_tenant;
                    }
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
        if access.role_everywhere(caller.principal()) < Some(Role::Operator) {
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
    /// The database doesn't answer, or doesn't confirm it.
    pub async fn hold(&self, caller: &Session, id: &SubmissionId, reason: Option<&str>) -> Result<HoldAnswer, Error> {
        let (by, actor) = (caller.principal().subject(), caller.actor());
        let scoped = self.store.scoped(&caller.readable());
        let answer = scoped.hold(id, &caller.killable(), (by, actor.as_ref()), reason).await?;
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
        self.wakeups.work_is_due();
        self.wakeups.state_changed();
        Ok(answer)
    }

    /// Holds the queued submissions that match a filter, of those that the caller may kill. Returns how many there were.
    ///
    /// # Errors
    /// The same.
    pub async fn hold_all(&self, caller: &Session, filter: &Filter, reason: Option<&str>) -> Result<u64, Error> {
        let (by, actor) = (caller.principal().subject(), caller.actor());
        let held = self.store.scoped(&caller.killable()).hold_all(filter, (by, actor.as_ref()), reason).await?;
        self.wakeups.state_changed();
        Ok(held)
    }

    /// Releases the held submissions that match a filter, of those that the caller may kill. Returns how many there were.
    ///
    /// # Errors
    /// The same.
    pub async fn release_all(&self, caller: &Session, filter: &Filter) -> Result<u64, Error> {
        let released = self.store.scoped(&caller.killable()).release_all(filter, caller.actor().as_ref()).await?;
        self.wakeups.work_is_due();
        self.wakeups.state_changed();
        Ok(released)
    }
}
