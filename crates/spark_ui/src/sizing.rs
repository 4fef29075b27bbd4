//! Advice of size: what the runs of a job reserved beside what they used.

use serde_json::Value;

use super::{
    SparkUi,
    said::{ExecutorUse, Said},
};
use sparkgate_common::error::Error;
use sparkgate_spark::{SparkVersion, sizes};
use sparkgate_store::RunUse;
use sparkgate_tenancy::session::Session;

/// The most runs that are read.
const MOST_RUNS: u32 = 10;
/// Runs that there must be before anything is said, all of the same size.
const LEAST_RUNS: usize = 3;
const MIB: u64 = 1 << 20;
/// Spark's own default, in MiB.
const DEFAULT_HEAP: u64 = sizes::DEFAULT_HEAP_MIB.unsigned_abs();
/// What is suggested beyond the peak, and the step that it is rounded up to, in MiB.
const HEADROOM: f64 = 1.3;
const STEP: u64 = 256;
/// Less memory is suggested if it saves this share.
const WORTH_SAVING: f64 = 0.3;
/// Cores that are busy for less than this share are idle, and a garbage collection that takes more of the tasks' time wants memory.
const IDLE: f64 = 0.3;
const MUCH_GARBAGE: f64 = 0.2;

/// Advice about a job, with its evidence. It is never carried out.
#[derive(Debug, Clone, PartialEq)]
pub struct Advice {
    /// The property that would change.
    pub property: &'static str,
    /// What it could be; `None` if the runs don't tell.
    pub suggested: Option<String>,
    /// Why, as a sentence with the amounts.
    pub reason: String,
    /// The runs that show it, the newest first.
    pub runs: Vec<String>,
}

/// A run whose driver said what its executors used.
struct Run {
    id: String,
    /// In MiB.
    executor_heap: u64,
    driver_heap: u64,
    used: ExecutorUse,
}

impl SparkUi {
    /// Returns what the last successful runs of a job advise, as far as the caller may see them.
    ///
    /// # Errors
    /// The database doesn't answer.
    pub async fn advice(&self, caller: &Session, tenant: &str, name: &str) -> Result<Vec<Advice>, Error> {
        let runs = self.store.scoped(&caller.readable()).run_uses(tenant, name, MOST_RUNS).await?;
        Ok(advice(runs))
    }
}

/// Returns what the successful runs of a job, the newest first, advise. Only runs of the size of the newest one count.
fn advice(runs: Vec<RunUse>) -> Vec<Advice> {
    let runs: Vec<Run> = runs.into_iter().filter_map(Run::read).collect();
    let Some(newest) = runs.first() else { return Vec::new() };
    let size = (newest.executor_heap, newest.driver_heap);
    let runs: Vec<&Run> = runs.iter().filter(|run| (run.executor_heap, run.driver_heap) == size).collect();
    if runs.len() < LEAST_RUNS {
        return Vec::new();
    }
    let peak = |of: fn(&ExecutorUse) -> u64| runs.iter().map(|run| of(&run.used)).max().unwrap_or_default();
    let sum = |of: fn(&ExecutorUse) -> u64| runs.iter().map(|run| of(&run.used)).sum::<u64>() as f64;
    let ids: Vec<String> = runs.iter().map(|run| run.id.clone()).collect();
    let say = |property, suggested, reason| Advice { property, suggested, reason, runs: ids.clone() };
    let (tasks, garbage) = (sum(|used| used.task_ms), sum(|used| used.gc_ms));
    let garbage = if tasks > 0.0 { garbage / tasks } else { 0.0 };
    let mut advice = Vec::new();
    if garbage >= MUCH_GARBAGE {
        let reason = format!(
            "the garbage collection took {:.0} % of the time of tasks with {} MiB of heap: more memory would be faster",
            garbage * 100.0,
            size.0
        );
        advice.push(say("spark.executor.memory", None, reason));
    } else if let Some((suggested, reason)) = smaller("an executor", size.0, peak(|used| used.peak_heap)) {
        advice.push(say("spark.executor.memory", Some(suggested), reason));
    }
    if let Some((suggested, reason)) = smaller("the driver", size.1, peak(|used| used.driver_peak_heap)) {
        advice.push(say("spark.driver.memory", Some(suggested), reason));
    }
    let cores = sum(|used| used.core_ms);
    if tasks > 0.0 && cores > 0.0 && tasks / cores < IDLE {
        let reason = format!(
            "tasks ran in {:.0} % of the time of the executors' cores: fewer executors, or dynamic allocation, would do",
            tasks / cores * 100.0
        );
        advice.push(say("spark.executor.instances", None, reason));
    }
    advice
}

/// Returns a heap that would do, if it saves enough, and why. Amounts are in MiB, the peak in bytes.
fn smaller(whose: &str, reserved: u64, peak: u64) -> Option<(String, String)> {
    if peak == 0 {
        return None;
    }
    let peak = peak.div_ceil(MIB);
    let wanted = ((peak as f64 * HEADROOM) as u64).div_ceil(STEP) * STEP;
    let wanted = wanted.max(DEFAULT_HEAP);
    let is_worth = wanted as f64 <= reserved as f64 * (1.0 - WORTH_SAVING);
    let reason =
        format!("{whose} had {peak} MiB of heap in use at most, garbage included, and reserved {reserved} MiB");
    is_worth.then(|| (format!("{wanted}m"), reason))
}

impl Run {
    /// Reads a run; `None` if its driver said nothing of executors, or nothing that this release can read.
    fn read(run: RunUse) -> Option<Self> {
        let said: Said = serde_json::from_value(run.summary).ok()?;
        let heap = |property: &str| {
            let text = run.properties.get(property).and_then(Value::as_str)?;
            sizes::mib(text, SparkVersion::V4_3).and_then(|mib| u64::try_from(mib).ok())
        };
        Some(Self {
            executor_heap: heap("spark.executor.memory").unwrap_or(DEFAULT_HEAP),
            driver_heap: heap("spark.driver.memory").unwrap_or(DEFAULT_HEAP),
            used: said.executors.filter(|used| used.count > 0)?,
            id: run.id,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const GIB: u64 = 1 << 30;

    fn run(id: u32, memory: &str, used: &ExecutorUse) -> RunUse {
        let said = Said { executors: Some(used.clone()), ..Said::default() };
        RunUse {
            id: id.to_string(),
            properties: json!({"spark.executor.memory": memory}),
            summary: serde_json::to_value(said).unwrap(),
        }
    }

    fn used() -> ExecutorUse {
        ExecutorUse {
            count: 2,
            peak_heap: 2 * GIB,
            driver_peak_heap: GIB / 2,
            core_ms: 1000,
            task_ms: 900,
            gc_ms: 20,
            largest: Vec::new(),
        }
    }

    fn properties(runs: Vec<RunUse>) -> Vec<(&'static str, Option<String>)> {
        advice(runs).into_iter().map(|advice| (advice.property, advice.suggested)).collect()
    }

    #[test]
    fn memory_that_no_run_used_is_named_with_its_evidence() {
        let smaller = ExecutorUse { peak_heap: GIB, ..used() };
        let runs = |memory| vec![run(3, memory, &used()), run(2, memory, &smaller), run(1, memory, &smaller)];
        let found = advice(runs("8g"));
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].property, found[0].suggested.as_deref()), ("spark.executor.memory", Some("2816m")));
        assert_eq!(found[0].runs, ["3", "2", "1"]);
        assert_eq!(
            found[0].reason,
            "an executor had 2048 MiB of heap in use at most, garbage included, and reserved 8192 MiB"
        );
        assert_eq!(properties(runs("3g")), [], "it saves too little");
        assert_eq!(properties(runs("8g")[..2].to_vec()), [], "two runs are no history");
        let mut grown = runs("8g");
        grown.insert(0, run(4, "9g", &used()));
        assert_eq!(properties(grown), [], "its size has changed");
    }

    #[test]
    fn idle_cores_and_much_garbage_are_named() {
        let busy = |task_ms, gc_ms| ExecutorUse { task_ms, gc_ms, ..used() };
        let runs = |used: &ExecutorUse| (0..3).map(|id| run(id, "8g", used)).collect::<Vec<_>>();
        let found = properties(runs(&busy(100, 0)));
        assert_eq!(found[1], ("spark.executor.instances", None));
        assert_eq!(properties(runs(&busy(900, 300))), [("spark.executor.memory", None)]);
        assert_eq!(properties(vec![]), []);
        let silent = RunUse { id: "1".to_owned(), properties: json!({}), summary: json!({}) };
        assert_eq!(properties(vec![silent.clone(), silent.clone(), silent]), []);
    }
}
