//! Every key has a case.

use std::{collections::BTreeSet, fs};

use serde_json::{Map, Value};

use sparkgate::spark::keys::KEYS;

use crate::{
    case::{self, VERSIONS},
    recorded,
};

/// Prefixes of keys that Spark reads.
const FAMILIES: [&str; 24] = [
    "spark.kubernetes.driver.label.",
    "spark.kubernetes.driver.annotation.",
    "spark.kubernetes.driver.service.label.",
    "spark.kubernetes.driver.service.annotation.",
    "spark.kubernetes.driverEnv.",
    "spark.kubernetes.driver.secrets.",
    "spark.kubernetes.driver.secretKeyRef.",
    "spark.kubernetes.driver.volumes.",
    "spark.kubernetes.node.selector.",
    "spark.kubernetes.driver.node.selector.",
    "spark.kubernetes.executor.label.",
    "spark.kubernetes.executor.annotation.",
    "spark.kubernetes.executor.node.selector.",
    "spark.kubernetes.executor.secrets.",
    "spark.kubernetes.executor.secretKeyRef.",
    "spark.kubernetes.executor.volumes.",
    "spark.executorEnv.",
    "spark.kubernetes.authenticate.submission.",
    "spark.kubernetes.authenticate.driver.mounted.",
    "spark.kubernetes.authenticate.driver.ca",
    "spark.kubernetes.authenticate.driver.client",
    "spark.kubernetes.authenticate.driver.oauth",
    "spark.kubernetes.authenticate.oauth",
    "spark.driver.resource.",
];

/// Keys that Spark reads without registering them, and core keys that affect the driver.
const PLAIN: [&str; 31] = [
    "spark.kubernetes.executor.hadoopConfigMapName",
    "spark.kubernetes.scheduler.volcano.podGroupTemplateFile",
    "spark.kubernetes.scheduler.volcano.podGroupTemplateJson",
    "spark.kubernetes.setSubmitTimeInDriver",
    "spark.connect.grpc.binding.port",
    "spark.kubernetes.jars.avoidDownloadSchemes",
    "spark.app.name",
    "spark.driver.cores",
    "spark.driver.memory",
    "spark.driver.memoryOverhead",
    "spark.driver.memoryOverheadFactor",
    "spark.driver.minMemoryOverhead",
    "spark.driver.port",
    "spark.driver.blockManager.port",
    "spark.blockManager.port",
    "spark.ui.port",
    "spark.driver.host",
    "spark.driver.bindAddress",
    "spark.local.dir",
    "spark.jars",
    "spark.files",
    "spark.archives",
    "spark.submit.pyFiles",
    "spark.pyspark.python",
    "spark.pyspark.driver.python",
    "spark.kerberos.keytab",
    "spark.kerberos.principal",
    "spark.submit.deployMode",
    "spark.submit.proxyUser.allowCustomClasspathInClusterMode",
    "spark.home",
    "spark.app.submitTime",
];

/// Returns the keys of all hand-written cases, wherever they are used.
fn used() -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    for case in case::hand_written().into_values().flatten() {
        keys.extend(case.request.spark_properties.into_keys());
        keys.extend(case.defaults.into_keys());
        let pairs = case.request.app_args.iter().filter_map(|arg| arg.split_once('='));
        keys.extend(pairs.map(|(key, value)| if key == "--conf" { value } else { key }.to_owned()));
    }
    keys
}

/// Returns the keys that Spark registers, with their defaults by release.
fn registered() -> Map<String, Value> {
    let keys: Map<String, Value> =
        serde_json::from_str(&fs::read_to_string(recorded::path("keys.json")).unwrap()).unwrap();
    assert!(keys.len() > 90, "keys.json has too few keys: {}", keys.len());
    keys
}

#[test]
fn every_registered_key_has_a_case() {
    let (registered, used) = (registered(), used());
    let missing: Vec<&String> = registered.keys().filter(|key| !used.contains(*key)).collect();
    assert!(missing.is_empty(), "no hand-written case has {missing:?}");
}

#[test]
fn every_other_key_and_family_has_a_case() {
    let used = used();
    let plain = PLAIN.into_iter().filter(|key| !used.contains(*key));
    let families = FAMILIES.into_iter().filter(|family| !used.iter().any(|key| key.starts_with(family)));
    let missing: Vec<&str> = plain.chain(families).collect();
    assert!(missing.is_empty(), "no hand-written case has {missing:?}");
}

#[test]
fn every_key_has_a_row_that_says_since_when() {
    for (key, defaults) in registered() {
        let row = KEYS.iter().flat_map(|section| section.keys).find(|row| row.key == key);
        let since = row.unwrap_or_else(|| panic!("crates/spark/src/keys has no row for {key}")).since;
        let numbers = |version: &str| -> Vec<u32> { version.split('.').map(|part| part.parse().unwrap()).collect() };
        let releases = defaults.as_array().unwrap().iter().flat_map(|entry| entry[0].as_array().unwrap());
        let known: Vec<&str> = releases.map(|release| release.as_str().unwrap()).collect();
        // Spark removed this key again in 4.1.
        for version in VERSIONS.into_iter().filter(|_| key != "spark.kubernetes.pyspark.pythonVersion") {
            assert_eq!(known.contains(&version), numbers(since) <= numbers(version), "{key}, since {since}: {version}");
        }
    }
    let rows: Vec<&str> = KEYS.iter().flat_map(|section| section.keys).map(|row| row.key).collect();
    for key in PLAIN {
        assert!(rows.contains(&key), "crates/spark/src/keys has no row for {key}");
    }
    for family in FAMILIES {
        assert!(rows.iter().any(|row| row.starts_with(family) || family.starts_with(row)), "no row for {family}*");
    }
}
