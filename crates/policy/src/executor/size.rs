//! The size of an executor (`ResourceProfile.getResourcesForClusterManager`, `BasicExecutorFeatureStep`), and how many there may
//! be. Where Spark's releases differ, the larger result counts.

use serde_json::{Map, Value, json};
use sparkgate_spark::{
    SparkVersion,
    sizes::{self, DEFAULT_HEAP_MIB},
};

use super::object;
use crate::judged::Judged;

/// The release whose grammar of sizes has all units.
const GRAMMAR: SparkVersion = SparkVersion::V4_3;
const MIN_OVERHEAD_MIB: i64 = 384;
const DEFAULT_INSTANCES: u64 = 2;
const INSTANCES: &str = "spark.executor.instances";
pub(super) const DYNAMIC: &str = "spark.dynamicAllocation.enabled";
/// Properties for the number of executors that dynamic allocation begins with.
pub(super) const INITIAL: [&str; 3] =
    ["spark.dynamicAllocation.initialExecutors", "spark.dynamicAllocation.minExecutors", INSTANCES];

type Unreadable = Vec<(String, String)>;

/// Reads a value that is a size in MiB unless it has a unit.
fn mib(judged: &Judged<'_>, key: &str, unreadable: &mut Unreadable) -> Option<i64> {
    read(judged, key, unreadable, "a size, such as 4g", |text| sizes::mib(text, GRAMMAR).filter(|size| *size >= 0))
}

fn read<T>(
    judged: &Judged<'_>,
    key: &str,
    unreadable: &mut Unreadable,
    expected: &str,
    parse: impl Fn(&str) -> Option<T>,
) -> Option<T> {
    let text = judged.property(key)?;
    let value = parse(text);
    if value.is_none() {
        unreadable.push((key.to_owned(), format!("it is not {expected}")));
    }
    value
}

/// Adds requests and limits to the executor's container.
pub(super) fn complete(container: &mut Map<String, Value>, judged: &Judged<'_>, unreadable: &mut Unreadable) {
    let memory = format!("{}Mi", memory(judged, unreadable).total());
    let cores = judged.property("spark.executor.cores").unwrap_or("1");
    let request = judged.property("spark.kubernetes.executor.request.cores").unwrap_or(cores);
    let Some(resources) = object(container, "resources") else { return };
    if let Some(requests) = object(resources, "requests") {
        requests.insert("memory".to_owned(), memory.clone().into());
        requests.insert("cpu".to_owned(), request.into());
    }
    let Some(limits) = object(resources, "limits") else { return };
    limits.insert("memory".to_owned(), memory.into());
    if let Some(limit) = judged.property("spark.kubernetes.executor.limit.cores") {
        limits.insert("cpu".to_owned(), limit.into());
    }
    for (key, amount) in judged.family("spark.executor.resource.") {
        if let Some(name) = key.strip_suffix(".amount") {
            let vendor = judged.property(&format!("spark.executor.resource.{name}.vendor"));
            let resource = vendor.map_or_else(|| name.to_owned(), |vendor| format!("{vendor}/{name}"));
            limits.insert(resource, json!(amount));
        }
    }
}

/// The memory of an executor's container in MiB, by its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExecutorMemory {
    /// `spark.executor.memory`.
    pub heap: i64,
    /// `spark.executor.memoryOverhead`, or what Spark adds without it.
    pub overhead: i64,
    /// Memory outside the heap, and Python's own, which have properties of their own.
    pub others: i64,
}

impl ExecutorMemory {
    pub fn total(self) -> i64 {
        self.heap.saturating_add(self.overhead).saturating_add(self.others)
    }
}

/// Returns the memory of an executor's container.
pub(super) fn memory(judged: &Judged<'_>, unreadable: &mut Unreadable) -> ExecutorMemory {
    let heap = mib(judged, "spark.executor.memory", unreadable).unwrap_or(DEFAULT_HEAP_MIB);
    let fixed = ["spark.executor.memoryOverhead", "spark.yarn.executor.memoryOverhead"];
    let overhead = fixed.iter().find_map(|key| mib(judged, key, unreadable)).unwrap_or_else(|| {
        let least = mib(judged, "spark.executor.minMemoryOverhead", unreadable).unwrap_or(MIN_OVERHEAD_MIB);
        // A cast saturates: an infinite factor is more than any limit.
        ((heap as f64 * factor(judged, unreadable)) as i64).max(least)
    });
    let off_heap = match judged.is_on("spark.memory.offHeap.enabled") {
        true => {
            let parse = |text: &str| sizes::bytes(text, GRAMMAR);
            let bytes = read(judged, "spark.memory.offHeap.size", unreadable, "a size, such as 4g", parse);
            bytes.unwrap_or(0) / (1024 * 1024)
        }
        false => 0,
    };
    let python = match is_python(judged) {
        true => mib(judged, "spark.executor.pyspark.memory", unreadable).unwrap_or(0),
        false => 0,
    };
    ExecutorMemory { heap, overhead, others: i64::saturating_add(off_heap, python) }
}

fn factor(judged: &Judged<'_>, unreadable: &mut Unreadable) -> f64 {
    let keys = ["spark.executor.memoryOverheadFactor", "spark.kubernetes.memoryOverheadFactor"];
    let parse = |text: &str| sizes::double(text).filter(|factor| !factor.is_nan() && *factor >= 0.0);
    let set = keys.iter().find_map(|key| read(judged, key, unreadable, "a factor, such as 0.1", parse));
    set.unwrap_or_else(|| if is_jvm(judged) { 0.1 } else { 0.4 })
}

fn app_resource<'a>(judged: &'a Judged<'_>) -> &'a str {
    judged.resources.iter().find(|(name, _)| *name == "appResource").map_or("", |(_, uri)| *uri)
}

fn is_python(judged: &Judged<'_>) -> bool {
    judged.property("spark.kubernetes.resource.type") == Some("python") || app_resource(judged).ends_with(".py")
}

fn is_jvm(judged: &Judged<'_>) -> bool {
    match judged.property("spark.kubernetes.resource.type") {
        Some(kind) => kind == "java",
        None => !app_resource(judged).to_lowercase().ends_with(".r") && !is_python(judged),
    }
}

/// How many executors there may be at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Executors {
    /// At most this many, according to a property.
    AtMost(u64, &'static str),
    /// Any number, since this property isn't set.
    Unbounded(&'static str),
    /// This property can't be read.
    Unreadable(&'static str),
}

/// Reads a number of executors.
///
/// # Errors
/// The property can't be read.
fn number(judged: &Judged<'_>, key: &'static str) -> Result<Option<u64>, &'static str> {
    judged.property(key).map(|text| text.parse().map_err(|_| key)).transpose()
}

/// Returns how many executors there may be at a time.
pub(crate) fn count(judged: &Judged<'_>) -> Executors {
    let mut most = match number(judged, INSTANCES) {
        Ok(instances) => (instances.unwrap_or(DEFAULT_INSTANCES), INSTANCES),
        Err(unreadable) => return Executors::Unreadable(unreadable),
    };
    for (enabled, maximum) in [
        (DYNAMIC, "spark.dynamicAllocation.maxExecutors"),
        ("spark.streaming.dynamicAllocation.enabled", "spark.streaming.dynamicAllocation.maxExecutors"),
    ] {
        if judged.is_on(enabled) {
            match number(judged, maximum) {
                Ok(Some(count)) if count > most.0 => most = (count, maximum),
                Ok(Some(_)) => {}
                Ok(None) => return Executors::Unbounded(maximum),
                Err(unreadable) => return Executors::Unreadable(unreadable),
            }
        }
    }
    Executors::AtMost(most.0, most.1)
}

/// Returns how many executors there are at first: with dynamic allocation, the largest of its three numbers (`Utils.
/// getDynamicAllocationInitialExecutors`).
pub(crate) fn initial_count(judged: &Judged<'_>) -> Result<u64, &'static str> {
    if !judged.is_on(DYNAMIC) {
        return Ok(number(judged, INSTANCES)?.unwrap_or(DEFAULT_INSTANCES));
    }
    INITIAL.into_iter().try_fold(0, |most, key| Ok(most.max(number(judged, key)?.unwrap_or_default())))
}

/// Parses a duration as Spark does, in seconds unless it has a unit, rounded up.
pub(super) fn seconds(text: &str) -> Option<i64> {
    let lower = text.trim().to_lowercase();
    let split = lower.find(|c: char| !c.is_ascii_digit()).unwrap_or(lower.len());
    let (digits, unit) = lower.split_at(split);
    let number: i64 = digits.parse().ok()?;
    match unit {
        "" | "s" => Some(number),
        "us" => Some(number / 1_000_000 + 1),
        "ms" => Some(number / 1000 + 1),
        "m" | "min" => number.checked_mul(60),
        "h" => number.checked_mul(3600),
        "d" => number.checked_mul(86_400),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn judge<T>(properties: &[(&str, &str)], resource: &str, read: impl FnOnce(&Judged<'_>) -> T) -> T {
        let properties = properties.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let (origins, resources) = (BTreeMap::new(), [("appResource", resource)]);
        read(&Judged {
            objects: &[],
            properties: &properties,
            origins: &origins,
            driver_template: None,
            executor_template: None,
            resources: &resources,
            of_operator: false,
        })
    }

    fn memory(properties: &[(&str, &str)], resource: &str) -> i64 {
        judge(properties, resource, |judged| super::memory(judged, &mut Vec::new()).total())
    }

    #[test]
    fn memory_is_heap_and_overhead() {
        assert_eq!(memory(&[], "local:///a.jar"), 1024 + 384);
        assert_eq!(memory(&[("spark.executor.memory", "10g")], "local:///a.jar"), 10240 + 1024);
        assert_eq!(memory(&[("spark.executor.memory", "10g")], "local:///a.py"), 10240 + 4096);
        assert_eq!(memory(&[("spark.executor.memory", "2048")], "local:///a.jar"), 2048 + 384);
        let fixed = [("spark.executor.memory", "1g"), ("spark.yarn.executor.memoryOverhead", "3g")];
        assert_eq!(memory(&fixed, "local:///a.jar"), 4096, "an older name of the property counts");
        let factor = [("spark.executor.memory", "10g"), ("spark.kubernetes.memoryOverheadFactor", "0.5")];
        assert_eq!(memory(&factor, "local:///a.jar"), 15360);
        let off_heap = [("spark.memory.offHeap.enabled", "true"), ("spark.memory.offHeap.size", "2g")];
        assert_eq!(memory(&off_heap, "local:///a.jar"), 1024 + 384 + 2048);
    }

    #[test]
    fn memory_that_overflows_is_more_than_any_limit() {
        assert_eq!(
            memory(&[("spark.executor.memory", "8191p")], "local:///a.jar"),
            8191 * 1024 * 1024 * 1024 * 11 / 10
        );
        let factor = [("spark.kubernetes.memoryOverheadFactor", "Infinity")];
        assert_eq!(memory(&factor, "local:///a.jar"), i64::MAX);
    }

    #[test]
    fn without_a_maximum_dynamic_allocation_is_unbounded() {
        let of = |properties: &[(&str, &str)]| judge(properties, "", count);
        assert_eq!(of(&[]), Executors::AtMost(2, "spark.executor.instances"));
        let on = ("spark.dynamicAllocation.enabled", "TRUE");
        assert_eq!(of(&[on]), Executors::Unbounded("spark.dynamicAllocation.maxExecutors"));
        let maximum = ("spark.dynamicAllocation.maxExecutors", "30");
        assert_eq!(of(&[on, maximum]), Executors::AtMost(30, maximum.0));
        assert_eq!(of(&[maximum]), Executors::AtMost(2, "spark.executor.instances"), "it isn't on");
        let instances = ("spark.executor.instances", "40");
        assert_eq!(of(&[on, maximum, instances]), Executors::AtMost(40, instances.0));
        assert_eq!(of(&[("spark.executor.instances", "many")]), Executors::Unreadable("spark.executor.instances"));
    }
}
