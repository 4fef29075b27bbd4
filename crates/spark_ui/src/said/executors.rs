//! Reads what a driver says of its executors: how much memory they used at most, and how busy they were.

use std::borrow::Cow;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Deserializer, Serialize};

use super::{Newest, cut, each, moment};

/// How many executors a summary names.
const NAMED: usize = 5;
/// The longest id, in characters.
const ID: usize = 64;
/// The id of the driver in the list.
const DRIVER: &str = "driver";

/// The executors that a driver had so far, those that ended among them, and the driver itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExecutorUse {
    /// How many there were.
    pub count: u64,
    /// The most heap that one of them had in use, garbage included, in bytes. 0 before the first heartbeat.
    pub peak_heap: u64,
    /// The same of the driver.
    pub driver_peak_heap: u64,
    /// How long their cores were there, how long tasks ran on them, and how long of that the garbage collection took, in milliseconds.
    pub core_ms: u64,
    pub task_ms: u64,
    pub gc_ms: u64,
    /// Those with the most heap in use, the greatest first.
    pub largest: Vec<ExecutorPeak>,
}

impl ExecutorUse {
    /// Returns the share of the time of the cores in which tasks ran; `None` before the first task.
    pub fn busy(&self) -> Option<f64> {
        share(self.task_ms, self.core_ms)
    }

    /// Returns the share of the time of tasks that the garbage collection took; `None` before the first task.
    pub fn garbage_collection(&self) -> Option<f64> {
        share(self.gc_ms, self.task_ms)
    }
}

/// Returns a share of at most 1, in thousandths.
fn share(part: u64, all: u64) -> Option<f64> {
    (part > 0 && all > 0).then(|| (part as f64 / all as f64 * 1000.0).round().min(1000.0) / 1000.0)
}

/// The most that an executor used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExecutorPeak {
    pub id: String,
    /// In bytes.
    pub heap: u64,
    /// Resident memory of its JVM and of its Python processes, in bytes; 0 unless `spark.executor.processTreeMetrics.enabled`.
    pub resident: u64,
    pub tasks: u64,
    pub failed_tasks: u64,
}

/// A list of Spark's `ExecutorSummary`, summed up.
#[derive(Debug)]
pub(crate) struct Executors(pub(crate) ExecutorUse);

/// Spark's `ExecutorSummary`, as far as it is used.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ExecutorSummary<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
    total_cores: u32,
    failed_tasks: u32,
    total_tasks: u32,
    total_duration: i64,
    #[serde(rename = "totalGCTime")]
    total_gc_time: i64,
    #[serde(borrow)]
    add_time: Option<Cow<'a, str>>,
    #[serde(borrow)]
    remove_time: Option<Cow<'a, str>>,
    peak_memory_metrics: Option<Peaks>,
}

/// Spark's `ExecutorMetrics`, as far as they are used. In bytes.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default)]
struct Peaks {
    #[serde(rename = "JVMHeapMemory")]
    heap: i64,
    #[serde(rename = "ProcessTreeJVMRSSMemory")]
    jvm: i64,
    #[serde(rename = "ProcessTreePythonRSSMemory")]
    python: i64,
}

impl<'de> Deserialize<'de> for Executors {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let now = Utc::now();
        let mut sums = ExecutorUse::default();
        let mut largest = Newest::new(NAMED);
        each::<D, ExecutorSummary<'de>>(deserializer, |one| {
            let peaks = one.peak_memory_metrics.unwrap_or_default();
            let heap = peaks.heap.max(0).unsigned_abs();
            if one.id == DRIVER {
                sums.driver_peak_heap = heap;
                // With a local master, tasks run in the driver.
                if one.total_cores == 0 {
                    return;
                }
            }
            add(&mut sums, &one, heap, now);
            largest.keep(heap, || ExecutorPeak {
                id: cut(&one.id, ID),
                heap,
                resident: peaks.jvm.saturating_add(peaks.python).max(0).unsigned_abs(),
                tasks: one.total_tasks.into(),
                failed_tasks: one.failed_tasks.into(),
            });
        })?;
        sums.largest = largest.into_items();
        Ok(Self(sums))
    }
}

fn add(sums: &mut ExecutorUse, one: &ExecutorSummary<'_>, heap: u64, now: DateTime<Utc>) {
    let milliseconds = |time: i64| time.max(0).unsigned_abs();
    sums.count += 1;
    sums.peak_heap = sums.peak_heap.max(heap);
    sums.task_ms = sums.task_ms.saturating_add(milliseconds(one.total_duration));
    sums.gc_ms = sums.gc_ms.saturating_add(milliseconds(one.total_gc_time));
    if let Some(from) = one.add_time.as_deref().and_then(moment) {
        let to = one.remove_time.as_deref().and_then(moment).unwrap_or(now);
        let there = milliseconds((to - from).num_milliseconds());
        sums.core_ms = sums.core_ms.saturating_add(there.saturating_mul(one.total_cores.into()));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn executors_are_summed_up_and_the_largest_are_named() {
        let gib = |heap: u64| json!({"JVMHeapMemory": heap << 30, "ProcessTreeJVMRSSMemory": heap << 30, "ProcessTreePythonRSSMemory": 1});
        let one = |id: &str, heap| {
            json!({"id": id, "totalCores": 2, "totalTasks": 4, "failedTasks": 1, "totalDuration": 3000, "totalGCTime": 100,
                "addTime": "2026-01-02T03:04:00.000GMT", "removeTime": "2026-01-02T03:04:05.000GMT", "isActive": false,
                "peakMemoryMetrics": gib(heap), "executorLogs": {}})
        };
        let mut all: Vec<_> = (1..=7).map(|id| one(&id.to_string(), id)).collect();
        let mut driver = one("driver", 9);
        driver["totalCores"] = json!(0);
        all.push(driver);
        all.push(json!({"id": "8", "totalDuration": -1}));
        let Executors(sums) = serde_json::from_str(&json!(all).to_string()).unwrap();
        assert_eq!((sums.count, sums.peak_heap, sums.driver_peak_heap), (8, 7 << 30, 9 << 30));
        assert_eq!((sums.core_ms, sums.task_ms, sums.gc_ms), (70_000, 21_000, 700));
        let named: Vec<_> = sums.largest.iter().map(|one| one.id.as_str()).collect();
        assert_eq!(named, ["7", "6", "5", "4", "3"]);
        assert_eq!(sums.largest[0].resident, (7 << 30) + 1);
    }
}
