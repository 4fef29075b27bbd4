//! Selects the files of `SPARK_CONF_DIR` that are shipped to the driver (`KubernetesClientUtils.loadSparkConfDirFiles`): text
//! files that fit, the smallest first. Other files are left out without an error, because the client couldn't change them.

use std::collections::BTreeMap;

use super::DriverConf;
use crate::refusal::Refusal;

const MAX_SIZE: &str = "spark.kubernetes.configMap.maxSize";
/// Kubernetes' limit for a `ConfigMap`, and Spark's default.
const LIMIT: i64 = 1 << 20;

/// Returns the names and texts of the files. `spark.properties` isn't one of them, and doesn't count against the limit.
pub(super) fn files(conf: &DriverConf<'_>) -> Result<BTreeMap<String, String>, Refusal> {
    let limit = conf.long(MAX_SIZE, |size| size <= LIMIT, "Must have at most 1048576 bytes")?.unwrap_or(LIMIT);
    let fits = |length: usize| i64::try_from(length).is_ok_and(|length| length <= limit);
    let mut candidates: Vec<(usize, &str, &[u8])> = Vec::new();
    for (name, content) in &conf.context.submitter.spark_conf_dir {
        let size = content.0.len();
        if !is_skipped(name) && fits(size + java_length(name)) {
            candidates.push((size, name, &content.0));
        }
    }
    candidates.sort_unstable();
    let (mut taken, mut files) = (0, BTreeMap::new());
    for (_, name, content) in candidates {
        let Ok(text) = std::str::from_utf8(content) else { continue };
        let length = taken + java_length(name) + java_length(text);
        if fits(length + 1) {
            taken = length;
            files.insert(name.to_owned(), text.to_owned());
        }
    }
    Ok(files)
}

/// Returns whether a file is never shipped: Spark's own configuration files are read instead, and templates and archives are of
/// no use to the driver.
fn is_skipped(name: &str) -> bool {
    let own = name.starts_with("spark") && (name.ends_with("conf") || name.ends_with("properties"));
    own || [".template", ".gz", ".zip", ".jar", ".tar"].iter().any(|ending| name.ends_with(ending))
}

/// Returns the length of a text in UTF-16 code units, in which Spark counts.
fn java_length(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}
