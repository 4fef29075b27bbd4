//! What metrics say of queues.

use super::{Queues, cost::used_by};
use sparkgate_common::error::Error;
use sparkgate_metrics::{metrics, text};
use sparkgate_store::Backlog;
use sparkgate_submission::queues::{Amounts, Resource};

/// Why a queue refused a submission.
#[derive(Debug, Clone, Copy)]
pub(crate) enum QueueRefusal {
    Draining,
    BacklogFull,
    NeverFits,
    WouldWait,
}

impl QueueRefusal {
    pub(crate) fn count(self, queue: &str) {
        let reason = match self {
            Self::Draining => "draining",
            Self::BacklogFull => "backlog",
            Self::NeverFits => "never_fits",
            Self::WouldWait => "would_wait",
        };
        metrics().queue_refused.with([text(queue), reason.into()]).inc();
    }
}

impl Queues {
    /// Sets the metrics of the queues of the access file.
    ///
    /// # Errors
    /// The database doesn't answer.
    pub async fn measure(&self, backlogs: &[Backlog]) -> Result<(), Error> {
        clear();
        let tenancy = self.access.current();
        let queues = tenancy.access().queues();
        if queues.is_empty() {
            return Ok(());
        }
        let read = self.store.queue_round(0, &[], &[]).await?;
        self.note_capacity(&read.capacity);
        let (capacity, metrics) = (self.capacity(queues), metrics());
        for queue in queues.iter() {
            let name = text(&queue.name);
            let (mut waiting, mut held, mut oldest) = (0, 0, None::<f64>);
            for backlog in backlogs.iter().filter(|backlog| backlog.queue == queue.name) {
                waiting += backlog.waiting;
                held += backlog.held;
                oldest = oldest.into_iter().chain(backlog.oldest).reduce(f64::max);
            }
            let used = used_by(&read, &queue.name);
            let lent = used.beyond(&capacity.part(queue.weight, queues.weights()));
            let admitted = used.amount(&Resource::Submissions) as f64;
            for (standing, count) in [("waiting", waiting as f64), ("held", held as f64), ("admitted", admitted)] {
                metrics.queue_submissions.with([name.clone(), standing.into()]).set(count);
            }
            if let Some(oldest) = oldest {
                metrics.queue_oldest_waiting.with([name.clone()]).set(oldest);
            }
            for (resource, cap) in queue.caps.iter().filter(|(_, cap)| **cap > 0) {
                let part = used.amount(resource) as f64 / *cap as f64;
                metrics.queue_cap_used.with([name.clone(), text(&resource.to_string())]).set(part);
            }
            let cores = |amounts: &Amounts| amounts.amount(&Resource::Cores) as f64 / 1000.0;
            let memory = |amounts: &Amounts| amounts.amount(&Resource::Memory) as f64;
            metrics.queue_cores.with([name.clone()]).set(cores(&used));
            metrics.queue_memory.with([name.clone()]).set(memory(&used));
            metrics.queue_lent_cores.with([name.clone()]).set(cores(&lent));
            metrics.queue_lent_memory.with([name]).set(memory(&lent));
        }
        Ok(())
    }
}

/// Removes the gauges, so that none says what isn't known any more.
fn clear() {
    let metrics = metrics();
    metrics.queue_submissions.clear();
    metrics.queue_cap_used.clear();
    for gauges in [
        &metrics.queue_oldest_waiting,
        &metrics.queue_cores,
        &metrics.queue_memory,
        &metrics.queue_lent_cores,
        &metrics.queue_lent_memory,
    ] {
        gauges.clear();
    }
}
