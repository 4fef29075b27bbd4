//! More memory for the attempt after one that ran out of it, where a submission asks for it by `memoryGrowth`.

mod rule;

use sparkgate_cluster::{Manifest, Overlay};
use sparkgate_core::{judgement::executors_of, ports::NoLaunch};
use sparkgate_policy::ExecutorMemory;
use sparkgate_requests::options::again::{MemoryGrowth, RETRIES};
use sparkgate_spark::{SparkVersion, sizes};
use sparkgate_store::{EarlierAttempt, FullMemory, MemoryFailure};
use sparkgate_submission::MEMORY_MAX;

use crate::Rule;
use rule::Memory;

/// More memory.
pub(crate) const RULE: Rule = Rule { name: "memoryGrowth", property: RETRIES, overlay };
const MIB: i64 = 1 << 20;
const DRIVER_MEMORY: &str = "spark.driver.memory";

/// Returns what an attempt gets beyond its stored objects, after these failures.
///
/// # Errors
/// What ran out of memory last can't have more.
fn overlay(earlier: &[EarlierAttempt], manifest: &Manifest) -> Result<Overlay, NoLaunch> {
    let failures: Vec<MemoryFailure> = earlier.iter().filter_map(|attempt| attempt.memory).collect();
    let failures = failures.as_slice();
    let properties = manifest.properties()?;
    let growth = MemoryGrowth::of_driver(&properties);
    let mut overlay = Overlay::default();
    let total = manifest.driver_request("memory")?.map(|memory| memory.units() / MIB);
    let heap = properties.get(DRIVER_MEMORY).and_then(|text| sizes::mib(text, SparkVersion::V4_3));
    let heap = heap.unwrap_or(sizes::DEFAULT_HEAP_MIB);
    let driver = Memory { heap, rest: total.unwrap_or(heap).saturating_sub(heap) };
    if let Some(Memory { heap, rest }) = grown("driver", driver, failures, |failure| failure.driver, &growth)? {
        overlay.driver_resources.insert("memory".to_owned(), format!("{}Mi", heap.saturating_add(rest)));
        overlay.properties.insert(DRIVER_MEMORY.to_owned(), format!("{heap}m"));
        overlay.properties.insert("spark.driver.memoryOverhead".to_owned(), format!("{rest}m"));
    }
    let ExecutorMemory { heap, overhead, others } = executors_of(manifest)?.memory;
    let executor = Memory { heap, rest: overhead.saturating_add(others) };
    if let Some(Memory { heap, rest }) = grown("executors", executor, failures, |failure| failure.executors, &growth)? {
        overlay.properties.insert("spark.executor.memory".to_owned(), format!("{heap}m"));
        let overhead = rest.saturating_sub(others);
        overlay.properties.insert("spark.executor.memoryOverhead".to_owned(), format!("{overhead}m"));
    }
    Ok(overlay)
}

/// Returns the memory that one of the two gets; `None` if it never ran out of it.
fn grown(
    whose: &str,
    memory: Memory,
    failures: &[MemoryFailure],
    full: impl Fn(&MemoryFailure) -> Option<FullMemory>,
    growth: &MemoryGrowth,
) -> Result<Option<Memory>, NoLaunch> {
    let (factor, max) = (growth.factor_or_default(), growth.max_mib);
    let all: Vec<FullMemory> = failures.iter().filter_map(&full).collect();
    let last = memory.grown(all[..all.len().saturating_sub(1)].iter().copied(), factor, max);
    let next = memory.grown(all.iter().copied(), factor, max);
    // What was full in the last attempt must grow.
    if next == last && failures.last().is_some_and(|failure| full(failure).is_some()) {
        let message = format!(
            "the {whose} ran out of memory with {} MiB, and may have no more: memoryGrowth.max is {} MiB",
            last.total(),
            max.unwrap_or_default()
        );
        return Err(NoLaunch { reason: MEMORY_MAX, message });
    }
    Ok((!all.is_empty()).then_some(next))
}

#[cfg(test)]
mod tests;
