//! The memory of the driver's pod: the JVM's heap plus the overhead.

use crate::{
    conf::double_text, driver::DriverConf, refusal::Refusal, sizes::DEFAULT_HEAP_MIB, submit::MainAppResource,
    version::SparkVersion,
};

const FACTOR: &str = "spark.kubernetes.memoryOverheadFactor";
const JVM_FACTOR: f64 = 0.1;
/// Higher, because Python and R run in separate processes beside the JVM.
const NON_JVM_FACTOR: f64 = 0.4;
const MIN_OVERHEAD_MIB: i64 = 384;

pub(super) struct DriverMemory {
    /// Request and limit of the pod.
    pub(super) total_mib: i64,
    /// The factor that executors inherit, as Java writes it. A factor that is set only for the driver isn't passed on.
    pub(super) default_factor: String,
}

impl DriverMemory {
    pub(super) fn new(conf: &DriverConf<'_>) -> Result<Self, Refusal> {
        let heap_mib = conf.mib("spark.driver.memory")?.unwrap_or(DEFAULT_HEAP_MIB);
        let common = conf.factor(FACTOR, |factor| factor >= 0.0, "Ensure that memory overhead is non-negative")?;
        let default_factor = common.unwrap_or(match conf.app.resource {
            MainAppResource::Java(_) => JVM_FACTOR,
            MainAppResource::Python(_) | MainAppResource::R(_) => NON_JVM_FACTOR,
        });
        let rule = "Ensure that memory overhead is a double greater than 0";
        let factor = conf.factor("spark.driver.memoryOverheadFactor", |factor| factor > 0.0, rule)?;
        let factor = factor.unwrap_or(default_factor);
        let least_mib = match conf.version >= SparkVersion::V4_0 {
            true => conf.mib("spark.driver.minMemoryOverhead")?.unwrap_or(MIN_OVERHEAD_MIB),
            false => MIN_OVERHEAD_MIB,
        };
        let overhead_mib = match conf.mib("spark.driver.memoryOverhead")? {
            Some(overhead) => overhead,
            // Truncated to 32 bits as in Scala's `toInt`.
            None => i64::from((factor * heap_mib as f64) as i32).max(least_mib),
        };
        // A sum beyond 64 bits wraps to a negative number, as on the JVM; Kubernetes refuses it.
        Ok(Self { total_mib: heap_mib.wrapping_add(overhead_mib), default_factor: double_text(default_factor) })
    }
}
