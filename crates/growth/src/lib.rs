//! More memory for the attempt after one that ran out of it, where a submission asks for it by `memoryGrowth`.
//!
//! The stored objects of an attempt are those that were accepted. What an attempt gets beyond them follows from how all earlier ones
//! ended, and is recorded before anything is created, so each try of its launch makes the same change.

mod rule;

use std::sync::Arc;

use futures::FutureExt;

use sparkgate_cluster::{Manifest, Overlay};
use sparkgate_common::error::Error;
use sparkgate_core::{
    judgement::{executors_of, refusal_of_changed},
    ports::{Attachment, Attempt, LaunchChange, NoLaunch, Resolution, Step},
};
use sparkgate_policy::ExecutorMemory;
use sparkgate_requests::options::again::{MemoryGrowth, RETRIES};
use sparkgate_spark::{SparkVersion, sizes};
use sparkgate_store::{FullMemory, MemoryFailure, Store};
use sparkgate_submission::MEMORY_MAX;
use sparkgate_tenancy::access_file::AccessFile;

use rule::Memory;

/// The feature, in the record of a launch.
const NAME: &str = "memoryGrowth";
const MIB: i64 = 1 << 20;
/// The heap of a driver without `spark.driver.memory`.
const DEFAULT_HEAP: i64 = 1024;
const DRIVER_MEMORY: &str = "spark.driver.memory";

/// The feature.
pub struct Growth {
    store: Store,
    access: Arc<AccessFile>,
}

impl Attachment for Growth {
    fn resolve<'a>(&'a self, attempt: &'a Attempt<'a>, manifest: &'a mut Manifest) -> Step<'a, Resolution> {
        // The properties of the driver are in the last object.
        let asks = |manifest: &Manifest| manifest.beside.last().is_some_and(|object| object.get().contains(RETRIES));
        if attempt.number < 2 || !asks(manifest) {
            return None;
        }
        Some(self.grow(attempt, manifest).boxed())
    }
}

impl Growth {
    pub fn new(store: Store, access: Arc<AccessFile>) -> Self {
        Self { store, access }
    }

    async fn grow(&self, attempt: &Attempt<'_>, manifest: &mut Manifest) -> Result<Resolution, Error> {
        let (failures, recorded) = self.store.memory_failures(attempt.id, attempt.number).await?;
        let recorded = recorded.as_ref().and_then(|changes| {
            let change = changes.as_array()?.iter().find(|change| change["by"] == NAME)?;
            let mut overlay = change.as_object()?.clone();
            overlay.remove("by");
            serde_json::from_value(overlay.into()).ok()
        });
        let overlay = match recorded {
            Some(overlay) => overlay,
            // Its objects exist without a change.
            None if attempt.is_begun => return Ok(Resolution::Ready),
            None => match overlay(&failures, manifest) {
                Ok(overlay) => overlay,
                Err(why) => return Ok(Resolution::Refused(why)),
            },
        };
        if overlay.is_empty() {
            return Ok(Resolution::Ready);
        }
        let changed = match manifest.with_overlay(&overlay) {
            Ok(changed) => changed,
            Err(error) => return Ok(Resolution::Refused(error.into())),
        };
        if !attempt.is_begun
            && let Some(refusal) = refusal_of_changed(&self.access, attempt.namespace, &changed)
        {
            return Ok(refusal);
        }
        tracing::info!(submission = %attempt.id, attempt = attempt.number, ?overlay, "the attempt gets more memory");
        *manifest = changed;
        Ok(Resolution::Changed(Box::new(LaunchChange { by: NAME, overlay })))
    }
}

/// Returns what an attempt gets beyond its stored objects, after these failures.
///
/// # Errors
/// What ran out of memory last can't have more.
fn overlay(failures: &[MemoryFailure], manifest: &Manifest) -> Result<Overlay, NoLaunch> {
    let properties = manifest.properties()?;
    let growth = MemoryGrowth::of_driver(&properties);
    let mut overlay = Overlay::default();
    let total = manifest.driver_request("memory")?.map(|memory| memory.units() / MIB);
    let heap = properties.get(DRIVER_MEMORY).and_then(|text| sizes::mib(text, SparkVersion::V4_3));
    let heap = heap.unwrap_or(DEFAULT_HEAP);
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
