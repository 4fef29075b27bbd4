//! Sizes and numbers of properties, as Spark reads them.

pub use crate::conf::{bytes, double, mib};

/// The heap of a driver or an executor without `spark.driver.memory` or `spark.executor.memory`, in MiB (`DRIVER_MEMORY`,
/// `EXECUTOR_MEMORY`).
pub const DEFAULT_HEAP_MIB: i64 = 1024;

/// The smallest heap with which a driver starts, and that it accepts for its executors, in MiB: 1.5 times
/// `RESERVED_SYSTEM_MEMORY_BYTES` (`UnifiedMemoryManager.getMaxMemory`).
pub const LEAST_HEAP_MIB: i64 = 450;
