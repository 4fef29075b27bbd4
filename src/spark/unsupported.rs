//! What Spark offers and this gateway doesn't yet. A key that asks for it is refused: ignoring it would start a driver
//! that isn't the one asked for. Keys that only travel on to the driver's process are not here.

use super::{Refusal, driver::DriverConf, features};

/// A key, or with a dot at its end a family of keys, that a feature step would read.
struct Missing {
    key: &'static str,
    step: &'static str,
}

const MISSING: [Missing; 3] = [
    Missing { key: "spark.kubernetes.driver.secrets.", step: "MountSecretsFeatureStep" },
    Missing { key: "spark.kubernetes.driver.secretKeyRef.", step: "EnvSecretsFeatureStep" },
    Missing { key: "spark.kubernetes.driver.volumes.", step: "MountVolumesFeatureStep" },
];

impl Missing {
    fn matches(&self, key: &str) -> bool {
        if self.key.ends_with('.') { key.starts_with(self.key) } else { key == self.key }
    }
}

/// Refuses the first key that asks for something missing, unless the request excludes that step itself.
pub(super) fn refuse(conf: &DriverConf<'_>) -> Result<(), Refusal> {
    for (key, _) in conf.iter() {
        let missing = MISSING.iter().find(|missing| missing.matches(key));
        if let Some(missing) = missing.filter(|missing| !features::is_excluded(conf, missing.step)) {
            return Err(Refusal::property(key, format!("Spark's {} is not supported yet.", missing.step)));
        }
    }
    let user_steps = "spark.kubernetes.driver.pod.featureSteps";
    match conf.list(user_steps).first() {
        Some(class) => Err(Refusal::property(
            user_steps,
            format!("The feature step {class} is not known here and can't be loaded."),
        )),
        None => Ok(()),
    }
}
