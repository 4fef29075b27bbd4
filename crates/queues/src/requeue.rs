//! A submission that waits moves to another queue, or changes its priority.

use super::{
    Queues,
    cost::can_fit,
    enter::{in_queue, permitted, refused},
};
use sparkgate_access::DynamicAllocation;
use sparkgate_common::error::Error;
use sparkgate_store::{Found, HoldAnswer, InBacklog, ToRequeue};
use sparkgate_submission::SubmissionId;
use sparkgate_tenancy::session::Session;

impl Queues {
    /// Moves a submission that waits to another queue of its tenant, or changes its priority. Without a priority it gets that of the new
    /// queue, and keeps its own in the same one. It waits as one of its number does there; its cost stays. Callers may move what they
    /// may kill.
    ///
    /// `changed` of the answer is `false` if it doesn't wait in a queue any more.
    ///
    /// # Errors
    /// [`Error::Denied`] if the caller may not; [`Error::QueueRefused`] if the queue or the priority isn't permitted, or it can never fit;
    /// [`Error::BacklogFull`].
    pub async fn requeue(
        &self,
        caller: &Session,
        id: &SubmissionId,
        queue: Option<&str>,
        priority: Option<i32>,
    ) -> Result<HoldAnswer, Error> {
        let scoped = self.store.scoped(&caller.readable());
        let found = scoped.to_requeue(id, &caller.killable()).await?;
        caller.check_permitted(id, found.as_ref().map(|found| found.allowed), "move")?;
        let Some(ToRequeue { in_backlog: Some(from), .. }) = found else {
            let read = scoped.submission(id).await?;
            let submission = read.map(|read| Found { id: id.clone(), document: Ok(read) });
            return Ok(HoldAnswer { changed: false, allowed: true, submission });
        };
        let to = {
            let tenancy = self.access.current();
            let access = tenancy.access();
            let name = queue.unwrap_or(&from.queue);
            let is_same = name == from.queue;
            let priority = if is_same { priority.or(Some(from.priority)) } else { priority };
            let (queue, priority) = permitted(access, &from.tenant, ("queue", name), priority)?;
            if !is_same {
                let capacity = self.capacity(access.queues());
                let is_limited = !queue.caps.is_empty() || !capacity.is_empty();
                if from.cost.grows && is_limited && queue.dynamic_allocation == DynamicAllocation::Maximum {
                    return refused("queue", unbounded(&queue.name, &from));
                }
                can_fit(queue, &capacity, &from.cost)?;
                self.check_accepts(queue).await?;
            }
            in_queue(queue, priority, from.cost.clone())
        };
        let (by, actor) = (caller.principal().subject(), caller.actor());
        let moved = scoped.requeue(id, &caller.killable(), (by, actor.as_ref()), &from, &to).await?;
        self.wakeups.state_changed();
        moved.ok_or_else(|| Error::BacklogFull { most: to.max_queued.unwrap_or_default(), queue: to.queue })
    }
}

/// Says that the new queue would need another cost.
fn unbounded(queue: &str, from: &InBacklog) -> String {
    format!(
        "queue {queue} counts the largest number of executors, and queue {} counted those at first: submit it again to queue {queue}",
        from.queue
    )
}
