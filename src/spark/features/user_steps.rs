//! Steps that a request adds by class name (`spark.kubernetes.driver.pod.featureSteps`). To Spark they are any code on
//! its class path; here only those are possible that Spark brings along itself.

use super::{PACKAGE, Step, is_excluded, volcano::Volcano};
use crate::spark::{Refusal, SparkVersion, driver::DriverConf};

const KEY: &str = "spark.kubernetes.driver.pod.featureSteps";
const VOLCANO: &str = "VolcanoFeatureStep";

/// The steps that come after Spark's own, in the order of their names.
///
/// # Errors
/// A [`Refusal`] for a class that isn't there, excluded or not.
pub(super) fn user_steps<'a>(conf: &'a DriverConf<'a>) -> Result<Vec<Step<'a>>, Refusal> {
    let mut steps: Vec<Step<'a>> = Vec::new();
    for class in conf.list(KEY) {
        refuse_unknown(&class, conf.version)?;
        // Only at work does the step read its templates.
        if !is_excluded(conf, VOLCANO) {
            steps.push(Box::new(Volcano::new(conf)?));
        }
    }
    Ok(steps)
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
