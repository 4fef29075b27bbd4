//! What Spark offers and this gateway doesn't. It is refused: ignoring it would start a driver that isn't the one asked
//! for. Keys that only travel on to the driver's process are not here.

use super::{Refusal, driver::DriverConf};

/// Refuses feature steps of the user: code that only a JVM could load.
pub(super) fn refuse(conf: &DriverConf<'_>) -> Result<(), Refusal> {
    let user_steps = "spark.kubernetes.driver.pod.featureSteps";
    match conf.list(user_steps).first() {
        Some(class) => Err(Refusal::property(
            user_steps,
            format!("The feature step {class} is not known here and can't be loaded."),
        )),
        None => Ok(()),
    }
}
