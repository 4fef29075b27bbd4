//! The executors of a driver as a set: for a queue that reserves room for them before they exist.

use serde_json::Value;

use super::{
    ExecutorPod, SparkRelease,
    size::{self, DYNAMIC, ExecutorMemory, INITIAL},
};
use crate::judged::Judged;

/// The executors that a driver will create.
#[derive(Debug, Clone, PartialEq)]
pub struct ExecutorSet {
    /// The pod of each of them, as far as a policy judges it: its metadata, its containers with their resources, and where it may run.
    pub pod: Value,
    pub memory: ExecutorMemory,
    pub count: ExecutorCount,
}

/// How many executors a driver will have at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExecutorCount {
    /// Always so many.
    Fixed(u64),
    /// As many as it has work for.
    Dynamic {
        /// It begins with so many.
        initial: u64,
        most: u64,
        /// The property that says how many it has at most.
        property: &'static str,
    },
    /// It has no maximum, since this property isn't set.
    Unbounded(&'static str),
    /// This property can't be read.
    Unreadable(&'static str),
}

/// Returns the executors that a driver will create.
pub fn executors(judged: &Judged<'_>) -> ExecutorSet {
    let pod = judged.objects.iter().find(|object| object["kind"] == "Pod");
    let ExecutorPod { pod, .. } = ExecutorPod::derive(judged, SparkRelease::from_pod(pod));
    // What can't be read is a violation of the policy, or Spark's to refuse.
    ExecutorSet { pod, memory: size::memory(judged, &mut Vec::new()), count: count(judged) }
}

fn count(judged: &Judged<'_>) -> ExecutorCount {
    let (most, property) = match size::count(judged) {
        size::Executors::AtMost(most, property) => (most, property),
        size::Executors::Unbounded(property) => return ExecutorCount::Unbounded(property),
        size::Executors::Unreadable(property) => return ExecutorCount::Unreadable(property),
    };
    if !judged.is_on(DYNAMIC) {
        return match property.starts_with("spark.streaming.") {
            true => ExecutorCount::Dynamic { initial: most.min(1), most, property },
            false => ExecutorCount::Fixed(most),
        };
    }
    let initial = match size::initial_count(judged) {
        Ok(initial) => initial,
        Err(property) => return ExecutorCount::Unreadable(property),
    };
    // A maximum below spark.executor.instances doesn't count as one.
    let property = if property == INITIAL[2] { "spark.dynamicAllocation.maxExecutors" } else { property };
    ExecutorCount::Dynamic { initial, most, property }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    fn set(properties: &[(&str, &str)]) -> ExecutorSet {
        let properties = properties.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let template = json!({"spec": {"tolerations": [{"key": "spot"}], "containers": [{"name": "mine"}]}});
        executors(&Judged {
            objects: &[],
            properties: &properties,
            origins: &BTreeMap::new(),
            driver_template: None,
            executor_template: Some(&template),
            resources: &[("appResource", "local:///a.jar")],
            of_operator: false,
        })
    }

    #[test]
    fn the_pod_has_the_resources_and_the_placement_of_an_executor() {
        let pod = set(&[("spark.executor.cores", "2"), ("spark.kubernetes.node.selector.disk", "ssd")]).pod;
        let spec = &pod["spec"];
        assert_eq!(spec["containers"][0]["name"], "mine");
        assert_eq!(spec["containers"][0]["resources"]["requests"], json!({"cpu": "2", "memory": "1408Mi"}));
        assert_eq!((&spec["nodeSelector"], &spec["tolerations"]), (&json!({"disk": "ssd"}), &json!([{"key": "spot"}])));
    }

    #[test]
    fn dynamic_allocation_begins_with_the_largest_of_three_properties() {
        const MOST: &str = "spark.dynamicAllocation.maxExecutors";
        let dynamic =
            |more: &[(&'static str, &'static str)]| set(&[&[(DYNAMIC, "true"), (MOST, "8")], more].concat()).count;
        assert_eq!(set(&[]).count, ExecutorCount::Fixed(2));
        assert_eq!(set(&[(INITIAL[2], "5")]).count, ExecutorCount::Fixed(5));
        let counted = |initial, most| ExecutorCount::Dynamic { initial, most, property: MOST };
        assert_eq!(dynamic(&[]), counted(0, 8));
        assert_eq!(dynamic(&[(INITIAL[0], "3"), (INITIAL[1], "2")]), counted(3, 8));
        assert_eq!(dynamic(&[(INITIAL[2], "4"), (INITIAL[1], "2")]), counted(4, 8));
        assert_eq!(dynamic(&[(INITIAL[2], "9")]), counted(9, 9), "more than the maximum");
        assert_eq!(dynamic(&[(INITIAL[1], "few")]), ExecutorCount::Unreadable(INITIAL[1]));
        assert_eq!(set(&[(DYNAMIC, "true")]).count, ExecutorCount::Unbounded(MOST));
    }
}
