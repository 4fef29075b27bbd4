//! The capacity, if it is learned from the `ResourceQuota`s of the tenants' namespaces.

use std::{collections::BTreeMap, sync::PoisonError, time::Duration};

use tokio::time::{sleep, timeout};

use super::Queues;
use sparkgate_access as access;
use sparkgate_common::error::{Error, error_chain};
use sparkgate_spark::Quantity;
use sparkgate_submission::queues::{Amounts, Resource};

/// Interval of reads.
const PERIOD: Duration = Duration::from_secs(30);
/// Interval of looks whether the access file wants them.
const UNWANTED: Duration = Duration::from_secs(2);
/// How long the first round of admissions waits for the first read.
const FIRST: Duration = Duration::from_secs(10);

impl Queues {
    /// Reads the quotas once before the first round.
    pub(super) async fn learn_first(&self) {
        // If it takes longer, the capacity that was learned last counts.
        let _ = timeout(FIRST, self.learn_or_warn()).await;
    }

    /// Reads the quotas again and again.
    pub(super) async fn keep_learning(&self) {
        loop {
            let pause = if self.access.current().access().queues().learns_capacity { PERIOD } else { UNWANTED };
            sleep(pause).await;
            self.learn_or_warn().await;
        }
    }

    async fn learn_or_warn(&self) {
        if let Err(error) = self.learn_capacity().await {
            let error = error_chain(&error);
            tracing::warn!(retry_in = ?PERIOD, "the capacity of queues can't be learned, the last one counts: {error}");
        }
    }

    /// Learns the capacity from the quotas, if the access file says so. It stays if a quota can't be read.
    ///
    /// # Errors
    /// The API server or the database doesn't answer, or the account may not list quotas.
    pub async fn learn_capacity(&self) -> Result<(), Error> {
        let tenancy = self.access.current();
        if !tenancy.access().queues().learns_capacity {
            return Ok(());
        }
        let mut all = Vec::new();
        for namespace in tenancy.access().namespaces_of_queues(self.cluster.namespaces(), |_| true) {
            all.push(amounts(&self.cluster.quota_limits(&namespace).await?));
        }
        let capacity = together(&all);
        if self.store.set_queue_capacity(&capacity.to_map()).await? {
            let written = capacity.iter().map(|(resource, amount)| format!("{resource}={}", resource.written(*amount)));
            let capacity = written.collect::<Vec<_>>().join(",");
            tracing::info!(capacity, "the ResourceQuotas give queues another capacity");
        }
        Ok(())
    }

    /// Notes the learned capacity that was just read.
    pub(super) fn note_capacity(&self, learned: &BTreeMap<String, u64>) {
        *self.learned.lock().unwrap_or_else(PoisonError::into_inner) = Amounts::from_map(learned);
    }

    /// Returns the capacity of all queues, with what was noted last.
    pub(super) fn capacity(&self, queues: &access::Queues) -> Amounts {
        queues.capacity_with(&self.learned.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Returns the amounts of a namespace by what queues count. Of two names of a quota for the same, the smaller amount counts.
fn amounts(limits: &BTreeMap<String, Quantity>) -> Amounts {
    let mut amounts = Amounts::default();
    for (name, limit) in limits {
        let resource = match name.as_str() {
            "pods" | "count/pods" => Resource::Pods,
            "cpu" | "requests.cpu" => Resource::Cores,
            "memory" | "requests.memory" => Resource::Memory,
            name => match name.strip_prefix("requests.") {
                Some(extended) if extended.contains('/') => Resource::Extended(extended.to_owned()),
                _ => continue,
            },
        };
        let limit = if resource == Resource::Cores { limit.millis() } else { limit.units() };
        let limit = u64::try_from(limit).unwrap_or_default();
        let least = amounts.get(&resource).map_or(limit, |other| other.min(limit));
        amounts.set(resource, least);
    }
    amounts
}

/// Returns the sum over namespaces. A resource that one of them doesn't limit is unlimited.
fn together(all: &[Amounts]) -> Amounts {
    let Some(first) = all.first() else { return Amounts::default() };
    let limited = first.iter().filter(|(resource, _)| all.iter().all(|one| one.get(resource).is_some()));
    let sum = |resource: &Resource| all.iter().fold(0, |sum: u64, one| sum.saturating_add(one.amount(resource)));
    limited.map(|(resource, _)| (resource.clone(), sum(resource))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(limits: &[(&str, &str)]) -> Amounts {
        let limits = limits.iter().map(|(name, limit)| ((*name).to_owned(), Quantity::parse(limit).unwrap()));
        amounts(&limits.collect())
    }

    #[test]
    fn quotas_are_read_by_their_names_of_resources() {
        let found = of(&[
            ("cpu", "4"),
            ("requests.cpu", "2500m"),
            ("limits.cpu", "1"),
            ("requests.memory", "8Gi"),
            ("pods", "20"),
            ("count/pods", "10"),
            ("requests.nvidia.com/gpu", "2"),
            ("requests.storage", "1Ti"),
            ("services", "3"),
        ]);
        let expected = Amounts::default()
            .with(Resource::Cores, 2500)
            .with(Resource::Memory, 8 << 30)
            .with(Resource::Pods, 10)
            .with(Resource::Extended("nvidia.com/gpu".to_owned()), 2);
        assert_eq!(found, expected);
        assert_eq!(Amounts::from_map(&expected.to_map()), expected);
    }

    #[test]
    fn what_one_namespace_does_not_limit_is_unlimited() {
        let all = [of(&[("cpu", "4"), ("pods", "10")]), of(&[("cpu", "2")])];
        assert_eq!(together(&all), Amounts::default().with(Resource::Cores, 6000));
        assert_eq!(together(&[]), Amounts::default());
    }
}
