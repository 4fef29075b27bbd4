//! `spark.driver.resource.<name>.*`: devices such as GPUs, with the resource names of Kubernetes' device plugins.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use crate::{driver::DriverConf, refusal::Refusal};

const PREFIX: &str = "spark.driver.resource.";

/// Returns the limits `<vendor>/<name>`. An amount of zero adds no limit.
pub(super) fn limits(conf: &DriverConf<'_>) -> Result<BTreeMap<String, Quantity>, Refusal> {
    let keys = conf.with_prefix(PREFIX);
    let mut names = BTreeSet::new();
    for key in keys.keys() {
        let Some((name, _)) = key.split_once('.') else {
            let reason = format!("You must specify an amount config for resource: {key} config: {PREFIX}{key}");
            return Err(Refusal::property(&format!("{PREFIX}{key}"), reason));
        };
        names.insert(name);
    }
    let mut limits = BTreeMap::new();
    for name in names {
        let key = format!("{PREFIX}{name}.amount");
        let amount: i32 = match conf.get(&key) {
            // Not a typed entry of Spark, hence no blanks are accepted and the message differs.
            Some(text) => text.parse().map_err(|_| Refusal::property(&key, unreadable(text)))?,
            None => return Err(Refusal::property(&key, format!("You must specify an amount for {name}"))),
        };
        if amount > 0 {
            let vendor = keys.get(&format!("{name}.vendor")).ok_or_else(|| {
                let reason = format!("Resource: {name} was requested, but vendor was not specified.");
                Refusal::property(&format!("{PREFIX}{name}.vendor"), reason)
            })?;
            limits.insert(format!("{vendor}/{name}"), Quantity(amount.to_string()));
        }
    }
    Ok(limits)
}

fn unreadable(text: &str) -> String {
    format!("For input string: \"{text}\". An amount is a whole number.")
}
