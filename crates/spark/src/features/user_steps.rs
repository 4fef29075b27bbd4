//! Steps that a request adds by class name (`spark.kubernetes.driver.pod.featureSteps`). For Spark they are any code on its
//! class path; here only steps that are part of Spark itself are supported.

use super::{Made, PACKAGE, volcano::Volcano};
use crate::{driver::DriverConf, refusal::Refusal, version::SparkVersion};

const KEY: &str = "spark.kubernetes.driver.pod.featureSteps";
const VOLCANO: &str = "VolcanoFeatureStep";

/// Returns the steps that run after Spark's own, in the order in which they are named, with their classes.
///
/// # Errors
/// A [`Refusal`] for a class that isn't available, even if it is excluded.
pub(super) fn user_steps<'a>(conf: &'a DriverConf<'a>) -> Result<Vec<(&'static str, Made<'a>)>, Refusal> {
    let classes = conf.list(KEY);
    for class in &classes {
        refuse_unknown(class, conf.version)?;
    }
    // If the only supported step is named twice, it would only create the same group again.
    let volcano: Made<'a> = Box::new(|| Ok(Box::new(Volcano::new(conf)?)));
    Ok(if classes.is_empty() { Vec::new() } else { vec![(VOLCANO, volcano)] })
}

fn refuse_unknown(class: &str, version: SparkVersion) -> Result<(), Refusal> {
    let reason = match class.strip_prefix(PACKAGE) {
        Some(VOLCANO) if version >= SparkVersion::V4_2 => return Ok(()),
        Some(VOLCANO) => format!("Spark {version}, as it is published, has no {class}: it was added in 4.2."),
        Some(_) => format!(
            "{class} can't be added (it has no {class}.<init>()). Leave it out: Spark's own steps are always there."
        ),
        None => format!(
            "The feature step {class} can't be loaded: a step is code for a JVM, and there is none here. Of Spark's own, \
             {PACKAGE}{VOLCANO} can be named. A pod template can often do what a step does to the pod."
        ),
    };
    Err(Refusal::property(KEY, reason))
}
