//! A submission that waits moves to another queue, or changes its priority.

use super::{
    Queues,
    cost::can_fit,
    enter::{permitted, refused, timeout},
};
use sparkgate_access::{Access, DynamicAllocation, Queue};
use sparkgate_common::error::Error;
use sparkgate_store::{Destination, Found, HoldAnswer, InBacklog, Move, ToRequeue};
use sparkgate_submission::SubmissionId;
use sparkgate_tenancy::session::Session;

/// Where a submission is to wait: in another queue, or with another priority.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPlace {
    /// Its present one, if there is none.
    pub queue: Option<String>,
    /// That of the new queue, or its present one in the same queue, if there is none.
    pub priority: Option<i32>,
}

impl Queues {
    /// Moves a submission that waits to another queue of its tenant, or changes its priority. It waits as one of its number does there; its
    /// cost stays. Callers may move what they may kill.
    ///
    /// `changed` of the answer is `false` if it doesn't wait in a queue any more.
    ///
    /// # Errors
    /// [`Error::Denied`] if the caller may not; [`Error::QueueRefused`] if the queue or the priority isn't permitted, or it can never fit;
    /// [`Error::BacklogFull`].
    pub async fn requeue(&self, caller: &Session, id: &SubmissionId, place: &NewPlace) -> Result<HoldAnswer, Error> {
        let (scoped, killable) = (self.store.scoped(&caller.readable()), caller.killable());
        let found = scoped.to_requeue(id, &killable).await?;
        caller.check_permitted(id, found.as_ref().map(|found| found.allowed), "move")?;
        let mut changed = false;
        if let Some(ToRequeue { in_backlog: Some(from), .. }) = found {
            let tenancy = self.access.current();
            let (queue, priority) = self.place(tenancy.access(), &from, place)?;
            let is_same = queue.name == from.queue;
            if !is_same {
                self.check_accepts(queue).await?;
            }
            let to = destination(queue, is_same);
            let (by, actor) = (caller.principal().subject(), caller.actor());
            let moves = [Move { id, from: &from, priority }];
            let moved = self.store.scoped(&killable).requeue((by, actor.as_ref()), &moves, &to).await?;
            self.wakeups.state_changed();
            if moved.is_full {
                return Err(Error::BacklogFull { most: to.max_queued.unwrap_or_default(), queue: to.queue });
            }
            changed = !moved.ids.is_empty();
        }
        let submission = scoped.submission(id).await.transpose().map(|document| Found { id: id.clone(), document });
        Ok(HoldAnswer { changed, allowed: true, submission })
    }

    /// Returns the queue and the priority that a submission moves to, which has a place now. Whether the queue accepts submissions isn't
    /// checked.
    ///
    /// # Errors
    /// The queue or the priority isn't permitted, or it can never fit.
    pub(crate) fn place<'a>(
        &self,
        access: &'a Access,
        from: &InBacklog,
        place: &NewPlace,
    ) -> Result<(&'a Queue, i32), Error> {
        let name = place.queue.as_ref().unwrap_or(&from.queue);
        let is_same = *name == from.queue;
        let priority = if is_same { place.priority.or(Some(from.priority)) } else { place.priority };
        let (queue, priority) = permitted(access, &from.tenant, ("queue", name), priority)?;
        if !is_same {
            let capacity = self.capacity(access.queues());
            let is_limited = !queue.caps.is_empty() || !capacity.is_empty();
            if from.cost.grows && is_limited && queue.dynamic_allocation == DynamicAllocation::Maximum {
                return refused("queue", unbounded(&queue.name, &from.queue));
            }
            can_fit(queue, &capacity, &from.cost)?;
        }
        Ok((queue, priority))
    }
}

/// Returns where submissions move to. In the same queue as before they have their room already.
pub(crate) fn destination(queue: &Queue, is_same: bool) -> Destination {
    let max_queued = queue.max_queued.filter(|_| !is_same);
    Destination { queue: queue.name.clone(), max_queued, timeout: timeout(queue) }
}

/// Says that the new queue would need another cost.
fn unbounded(queue: &str, from: &str) -> String {
    format!(
        "queue {queue} counts the largest number of executors, and queue {from} counted those at first: submit it again to queue {queue}"
    )
}
