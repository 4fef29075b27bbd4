//! Addresses of the application and its dependencies.

use sparkgate_spark::{REDACTED, is_secret};

use crate::{judgement::Judgement, node::shortened, uri};

const RULE: &str = "resources";

/// Properties that are lists of addresses, or one address.
const KEYS: [&str; 7] = [
    "spark.archives",
    "spark.eventLog.dir",
    "spark.files",
    "spark.jars",
    "spark.jars.ivySettings",
    "spark.jars.repositories",
    "spark.submit.pyFiles",
];

/// Names of applications that are no address (`SparkSubmit`).
const INTERNAL: [&str; 1] = ["spark-internal"];

pub(super) fn judge(judgement: &mut Judgement<'_>) {
    if judgement.rules.resources.is_none() {
        return;
    }
    let judged = judgement.judged;
    for (name, addresses) in judged.resources {
        if !KEYS.contains(name) {
            judge_list(judgement, name, addresses);
        }
    }
    for key in KEYS {
        if let (Some(addresses), false) = (judged.property(key), judged.origins.contains_key(key)) {
            judge_list(judgement, key, addresses);
        }
    }
    for (key, addresses) in judged.resources {
        // Those that the caller passes in place of properties.
        if KEYS.contains(key) && judged.property(key).is_none() {
            judge_list(judgement, key, addresses);
        }
    }
}

fn judge_list(judgement: &mut Judgement<'_>, name: &str, addresses: &str) {
    let Some(permitted) = &judgement.rules.resources else { return };
    for address in addresses.split(',').map(str::trim).filter(|address| !address.is_empty()) {
        let reason = match uri::normal(address) {
            _ if name == "appResource" && INTERNAL.contains(&address) => continue,
            // A file in the image of the driver.
            _ if name == "spark.jars.ivySettings" && address.starts_with('/') => continue,
            Ok(normal) if permitted.matches(&normal) => continue,
            Ok(_) => format!("it must be one of {}", permitted.describe()),
            Err(reason) => reason,
        };
        let shown = if is_secret("", address) { REDACTED.to_owned() } else { shortened(address) };
        let message = format!("`{shown}` is not permitted: {reason}");
        match name.starts_with("spark.") {
            true => judgement.report_property(RULE, name, message),
            false => judgement.report_at(RULE, name, message),
        }
    }
}
