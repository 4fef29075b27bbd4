//! A submission enters a queue.

use futures::FutureExt;

use super::{
    Queues,
    admission::{HEADS, empty_queue, snapshot},
    cost::{amounts_of, can_fit, cost, largest},
    figures::QueueRefusal,
};
use sparkgate_access::{self as access, Access, Queue};
use sparkgate_common::error::Error;
use sparkgate_core::ports::{Attachment, Proposed, Step};
use sparkgate_policy::ApplicationSize;
use sparkgate_spark::Refusal;
use sparkgate_store::{Cost, InQueue};
use sparkgate_submission::{
    Wire,
    queues::{Outlook, outlook},
};

/// How many seconds a submission may wait whose client waits for its pod in the request: less than the request.
const IN_REQUEST: i32 = 60;

pub(crate) fn refused<T>(field: &str, reason: String) -> Result<T, Error> {
    Err(Error::QueueRefused(Refusal::field(field, reason)))
}

/// Returns the queue of a submission, and its priority there. A submission without a queue is launched as it comes: its tenant may use
/// none.
fn chosen<'a>(access: &'a Access, proposed: &Proposed<'_>) -> Result<Option<(&'a Queue, i32)>, Error> {
    let tenant = proposed.tenant;
    let asked = proposed.options.queue.as_deref();
    let default = access.tenant(tenant).and_then(|tenant| tenant.default_queue.as_deref());
    let Some(name) = asked.or(default) else {
        return match proposed.options.priority {
            Some(_) => {
                refused("priority", format!("tenant {tenant} may use no queue, and only queues have priorities"))
            }
            None => Ok(None),
        };
    };
    let field = if asked.is_some() { proposed.queue_field } else { "queue" };
    permitted(access, tenant, (field, name), proposed.options.priority).map(Some)
}

/// Returns a queue that a tenant may use, which `field` of the request names, and the priority of a submission there that asks for this one.
pub(crate) fn permitted<'a>(
    access: &'a Access,
    tenant: &str,
    (field, name): (&str, &str),
    priority: Option<i32>,
) -> Result<(&'a Queue, i32), Error> {
    let queues = access.queues();
    let Some(queue) = queues.get(name).filter(|queue| queue.admits(tenant)) else {
        let names: Vec<_> = queues.for_tenant(tenant).map(|queue| queue.name.as_str()).collect();
        let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        return refused(field, format!("{name:?} is not a queue of tenant {tenant}: it may use {names}"));
    };
    let priority = priority.unwrap_or(queue.default_priority);
    if priority > queue.max_priority {
        return refused("priority", format!("{priority} is more than queue {name} permits, {}", queue.max_priority));
    }
    Ok((queue, priority))
}

/// Returns what is stored of a submission in a queue.
fn in_queue(queue: &Queue, priority: i32, cost: Cost) -> InQueue {
    InQueue { queue: queue.name.clone(), priority, cost, max_queued: queue.max_queued, timeout: timeout(queue) }
}

/// Returns how many seconds a submission may wait in a queue.
pub(crate) fn timeout(queue: &Queue) -> Option<i32> {
    queue.queue_timeout.and_then(|time| i32::try_from(time.as_secs()).ok())
}

impl Queues {
    /// Checks that a queue accepts submissions now.
    ///
    /// # Errors
    /// It drains, its backlog is full, or the database doesn't answer.
    pub(crate) async fn check_accepts(&self, queue: &Queue) -> Result<(), Error> {
        let entrance = self.store.queue_entrance(&queue.name).await?;
        self.note_capacity(&entrance.capacity);
        if entrance.is_draining {
            QueueRefusal::Draining.count(&queue.name);
            return refused("queue", format!("queue {} drains: it accepts no submissions", queue.name));
        }
        match queue.max_queued {
            Some(most) if entrance.backlog >= most => {
                QueueRefusal::BacklogFull.count(&queue.name);
                Err(Error::BacklogFull { queue: queue.name.clone(), most })
            }
            _ => Ok(()),
        }
    }
}

impl Attachment for Queues {
    /// Refuses a submission to a queue that its tenant may not use, that drains, or whose backlog is full. The statement that accepts it
    /// compares the backlog again.
    fn check<'a>(&'a self, proposed: &'a Proposed<'a>) -> Step<'a, ()> {
        let tenancy = self.access.current();
        if tenancy.access().queues().is_empty()
            && proposed.options.queue.is_none()
            && proposed.options.priority.is_none()
        {
            return None;
        }
        let check = async move {
            let Some((queue, _)) = chosen(tenancy.access(), proposed)? else { return Ok(()) };
            self.check_accepts(queue).await
        };
        Some(check.boxed())
    }

    fn queue<'a>(&'a self, proposed: &'a Proposed<'a>, size: &'a ApplicationSize) -> Step<'a, Option<InQueue>> {
        Some(self.enter(proposed, size).boxed())
    }
}

impl Queues {
    async fn enter(&self, proposed: &Proposed<'_>, size: &ApplicationSize) -> Result<Option<InQueue>, Error> {
        let tenancy = self.access.current();
        let queues: &access::Queues = tenancy.access().queues();
        let Some((queue, priority)) = chosen(tenancy.access(), proposed)? else { return Ok(None) };
        let capacity = self.capacity(queues);
        let cost = cost(queue, &capacity, size).and_then(|cost| can_fit(queue, &capacity, &cost).map(|()| cost));
        let cost = cost.inspect_err(|_| QueueRefusal::NeverFits.count(&queue.name))?;
        let mut entered = in_queue(queue, priority, cost);
        if proposed.options.wire.is_some_and(Wire::answers_with_pod) {
            self.is_admitted_at_once(queues, queue, proposed.tenant, &entered.cost).await?;
            entered.timeout = Some(entered.timeout.map_or(IN_REQUEST, |time| time.min(IN_REQUEST)));
        }
        Ok(Some(entered))
    }

    /// Checks that the next round admits a submission.
    ///
    /// # Errors
    /// It would have to wait.
    async fn is_admitted_at_once(
        &self,
        queues: &access::Queues,
        queue: &Queue,
        tenant: &str,
        cost: &Cost,
    ) -> Result<(), Error> {
        let read = self.store.queue_round(HEADS, &largest(queues, &self.capacity(queues)), &[]).await?;
        let mut snapshot = snapshot(&read, queues);
        snapshot.queues.entry(queue.name.clone()).or_insert_with(|| empty_queue(&read, queues, &queue.name));
        let reason = match outlook(snapshot, &queue.name, tenant, amounts_of(cost)) {
            Outlook::Admitted => return Ok(()),
            Outlook::Behind => format!("other submissions of tenant {tenant} wait in it"),
            Outlook::Waits(reason) => reason.sentence(&queue.name),
        };
        QueueRefusal::WouldWait.count(&queue.name);
        Err(Error::WouldWait { queue: queue.name.clone(), reason })
    }
}
