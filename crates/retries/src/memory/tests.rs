use serde_json::json;

use super::*;

/// Returns a driver with these properties beside those of the feature.
fn manifest(properties: &str) -> Manifest {
    let resources = json!({"requests": {"memory": "1408Mi"}, "limits": {"memory": "1408Mi"}});
    let pod = json!({"kind": "Pod", "spec": {"containers": [{"name": "d", "resources": resources}]}});
    let text = format!("spark.sparkgate.memoryGrowth.retries=2\n{properties}");
    let map = json!({"kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"spark.properties": text}});
    serde_json::from_value(json!({"before": [], "pod": pod, "beside": [map]})).unwrap()
}

fn failed(memory: MemoryFailure) -> EarlierAttempt {
    EarlierAttempt { code: None, memory: Some(memory) }
}

fn of_driver(full: FullMemory) -> EarlierAttempt {
    failed(MemoryFailure { driver: Some(full), executors: None })
}

fn of_executors(full: FullMemory) -> EarlierAttempt {
    failed(MemoryFailure { driver: None, executors: Some(full) })
}

fn properties(overlay: &Overlay) -> Vec<(&str, &str)> {
    overlay.properties.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect()
}

#[test]
fn a_driver_gets_more_in_its_container_and_in_its_properties() {
    let grown = overlay(&[of_driver(FullMemory::Container)], &manifest("")).unwrap();
    assert_eq!(grown.driver_resources["memory"], "2112Mi");
    assert_eq!(properties(&grown), [(DRIVER_MEMORY, "1024m"), ("spark.driver.memoryOverhead", "1088m")]);
    let twice = [of_driver(FullMemory::Heap), of_driver(FullMemory::Heap)];
    let grown = overlay(&twice, &manifest("spark.sparkgate.memoryGrowth.factor=2\n")).unwrap();
    assert_eq!(grown.driver_resources["memory"], "4480Mi");
    assert_eq!(properties(&grown), [(DRIVER_MEMORY, "4096m"), ("spark.driver.memoryOverhead", "384m")]);
}

#[test]
fn executors_get_more_by_properties() {
    let off_heap = "spark.memory.offHeap.enabled=true\nspark.memory.offHeap.size=1g\n";
    let grown = overlay(&[of_executors(FullMemory::Container)], &manifest(off_heap)).unwrap();
    assert!(grown.driver_resources.is_empty());
    // Of 2432 MiB, half as much again are outside the heap.
    assert_eq!(properties(&grown), [("spark.executor.memory", "1024m"), ("spark.executor.memoryOverhead", "1600m")]);
    let grown = overlay(&[of_executors(FullMemory::Heap)], &manifest("spark.executor.memory=2g\n")).unwrap();
    assert_eq!(properties(&grown), [("spark.executor.memory", "3072m"), ("spark.executor.memoryOverhead", "384m")]);
}

#[test]
fn what_grew_once_stays_and_other_failures_change_nothing() {
    let both = [of_driver(FullMemory::Container), of_executors(FullMemory::Heap)];
    let grown = overlay(&both, &manifest("")).unwrap();
    assert_eq!(grown.driver_resources["memory"], "2112Mi");
    assert_eq!(grown.properties["spark.executor.memory"], "1536m");
    assert!(overlay(&[], &manifest("")).unwrap().is_empty());
}

#[test]
fn an_attempt_that_may_have_no_more_is_refused() {
    let max = manifest("spark.sparkgate.memoryGrowth.max=2g\n");
    let full = of_driver(FullMemory::Container);
    assert_eq!(overlay(std::slice::from_ref(&full), &max).unwrap().driver_resources["memory"], "2048Mi");
    let refused = overlay(&[full.clone(), full.clone()], &max).unwrap_err();
    assert_eq!(refused.reason, "MemoryMax");
    assert_eq!(
        refused.message,
        "the driver ran out of memory with 2048 MiB, and may have no more: memoryGrowth.max is 2048 MiB"
    );
    assert!(overlay(&[full.clone(), full, of_executors(FullMemory::Heap)], &max).is_ok(), "the driver isn't full now");
}
