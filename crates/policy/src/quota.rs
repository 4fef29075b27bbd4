//! What the applications of a tenant may request together, derived from the limits of one application.

use crate::compiled::Rules;
use sparkgate_spark::Quantity;

/// What a number of applications may request together, as quantities of Kubernetes. A field is `None` if the limits of the policy
/// don't bound it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Quota {
    /// Drivers and executors.
    pub pods: Option<u64>,
    pub cores: Option<String>,
    pub memory: Option<String>,
    /// Claims, those of ephemeral volumes included.
    pub storage: Option<String>,
}

impl Quota {
    /// Computes the quota: for each application its driver, and as many executors of the largest size as the limits permit.
    pub(crate) fn new(rules: &Rules, applications: u32) -> Self {
        let (limits, applications) = (&rules.limits, u64::from(applications));
        let executors = rules.document.limits.executors;
        let all = |driver: Option<Quantity>, executor: Option<Quantity>, total: Option<Quantity>| {
            let product = executor.zip(executors).map(|(size, count)| size.times(count));
            let executors = product.into_iter().chain(total).min()?;
            Some(driver?.plus(executors).times(applications))
        };
        Self {
            pods: executors.map(|count| count.saturating_add(1).saturating_mul(applications)),
            cores: all(limits.driver.cores, limits.executor.cores, limits.total_cores).map(Quantity::as_number),
            memory: all(limits.driver.memory, limits.executor.memory, limits.total_memory).map(Quantity::as_memory),
            storage: limits.storage.map(|storage| storage.times(applications).as_memory()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn quota(limits: Value, applications: u32) -> Quota {
        let document = serde_json::from_value(json!({ "limits": limits })).unwrap();
        Quota::new(&Rules::compile(document, &[]).unwrap(), applications)
    }

    #[test]
    fn a_quota_has_room_for_each_driver_and_its_executors() {
        let mut limits = json!({
            "driver": { "cores": "500m", "memory": "2Gi" }, "executor": { "cores": 4, "memory": "8Gi" }, "executors": 10
        });
        let of = |pods, cores: &str, memory: &str| Quota {
            pods: Some(pods),
            cores: Some(cores.to_owned()),
            memory: Some(memory.to_owned()),
            storage: None,
        };
        assert_eq!(quota(limits.clone(), 1), of(11, "40.5", "82Gi"));
        assert_eq!(quota(limits.clone(), 3), of(33, "121.5", "246Gi"));
        limits["totalCores"] = json!(20);
        limits["totalMemory"] = json!("1Ti");
        assert_eq!(quota(limits, 2), of(22, "41", "164Gi"), "the smaller limit counts");
        assert_eq!(quota(json!({ "storage": "2Ti" }), 3).storage.as_deref(), Some("6144Gi"));
    }

    #[test]
    fn what_the_limits_do_not_bound_has_no_quota() {
        assert_eq!(quota(json!({}), 1), Quota::default());
        let limits = json!({ "driver": { "cores": 1 }, "executor": { "cores": 1 }, "totalMemory": "1Gi" });
        assert_eq!(quota(limits, 1), Quota::default());
    }
}
