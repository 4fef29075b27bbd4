//! Steps that a request adds by class name (`spark.kubernetes.driver.pod.featureSteps`). To Spark they are any code on
//! its class path; here only those are possible that Spark brings along itself.

use super::{Made, PACKAGE, volcano::Volcano};
use crate::spark::{Refusal, SparkVersion, driver::DriverConf};

const KEY: &str = "spark.kubernetes.driver.pod.featureSteps";
const VOLCANO: &str = "VolcanoFeatureStep";

/// The steps that come after Spark's own, in the order of their names, with their classes.
///
/// # Errors
/// A [`Refusal`] for a class that isn't there, excluded or not.
pub(super) fn user_steps<'a>(conf: &'a DriverConf<'a>) -> Result<Vec<(&'static str, Made<'a>)>, Refusal> {
    let classes = conf.list(KEY);
    for class in &classes {
        refuse_unknown(class, conf.version)?;
    }
    // Named again, the one possible step would only make the same group again.
    let volcano: Made<'a> = Box::new(|| Ok(Box::new(Volcano::new(conf)?)));
    Ok(if classes.is_empty() { Vec::new() } else { vec![(VOLCANO, volcano)] })
}

fn refuse_unknown(class: &str, version: SparkVersion) -> Result<(), Refusal> {
    let reason = match class.strip_prefix(PACKAGE) {
        Some(VOLCANO) if version >= SparkVersion::V4_2 => return Ok(()),
        Some(VOLCANO) => format!("Spark {version}, as it is published, has no {class}: it came with 4.2."),
        Some(_) => format!(
            "{class} is no step to add (it has no {class}.<init>()). Leave it out: Spark's own steps are always there."
        ),
        None => format!(
            "The feature step {class} can't be loaded: a step is code for a JVM, and there is none here. Of Spark's own, \
             {PACKAGE}{VOLCANO} can be named; what a step does to the pod, a pod template can often do too."
        ),
    };
    Err(Refusal::property(KEY, reason))
}
