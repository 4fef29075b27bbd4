//! Single rules against the JVM's own answers (`recorded/vectors.json`).

use std::{collections::BTreeMap, fs};

use sparkgate::spark::DriverNames;

use crate::{
    answer::{Answer, Leaves},
    case::{VERSIONS, Written},
    ours::{self, ENTROPY, SUBMITTED_AT_MS},
    recorded,
    vectors::{RULES, Vectors},
};

/// Returns the driver with one property, if it can be built.
fn driver(version: &str, key: &str, value: &str) -> Option<Leaves> {
    let mut written = Written::default();
    let properties: BTreeMap<&str, &str> = [(key, value)].into();
    written.request.insert("sparkProperties".into(), serde_json::to_value(properties).unwrap());
    match ours::answer(&written.case("rule"), version) {
        Answer::Objects(leaves) => Some(leaves),
        Answer::Refused(_) => None,
    }
}

fn leaf(leaves: &Leaves, path: &str) -> String {
    serde_json::from_str(&leaves[path]).unwrap()
}

/// Fails with each input for which `ours` differs from the answer of a release's JVM.
fn assert_rule(rule: &str, ours: impl Fn(&str, &str) -> Option<String>, sparks: impl Fn(&str) -> Option<String>) {
    let vectors: Vectors = serde_json::from_str(&fs::read_to_string(recorded::path("vectors.json")).unwrap()).unwrap();
    assert!(RULES.iter().all(|(rule, ..)| vectors.contains_key(*rule)), "run `make parity`");
    let mut wrong = Vec::new();
    for version in VERSIONS {
        let mut answers = vectors[rule].clone();
        answers.extend(vectors.get(&format!("{rule} {version}")).cloned().unwrap_or_default());
        for (input, answer) in &answers {
            let expected = answer.as_deref().and_then(&sparks);
            let answer = ours(version, input);
            if answer != expected {
                wrong.push(format!("{version} {input:?}: ours {answer:?}, the JVM {expected:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

fn same(answer: &str) -> Option<String> {
    Some(answer.to_owned())
}

#[test]
fn property_keys_are_escaped_as_java_does() {
    let line = |version: &str, input: &str| {
        let leaves = driver(version, &format!("spark.{input}"), "v")?;
        let own = leaves.keys().filter(|path| path.starts_with("Properties[spark."));
        let path = own.max_by_key(|path| leaves[*path] == "\"v\"")?;
        let key = path.strip_prefix("Properties[spark.")?.strip_suffix(']')?;
        Some(serde_json::from_str::<String>(&format!("\"{key}\"")).unwrap() + "=")
    };
    // A NUL is refused: no environment variable and no argument can contain it.
    assert_rule("escapeKey", line, |answer| (!answer.contains('\0')).then(|| answer.to_owned()));
}

#[test]
fn property_values_are_escaped_as_java_does() {
    let path = "Properties[spark.test]";
    let line = |version: &str, input: &str| {
        driver(version, "spark.test", input).map(|leaves| format!("k={}", leaf(&leaves, path)))
    };
    assert_rule("escapeValue", line, |answer| (!answer.contains('\0')).then(|| answer.to_owned()));
}

#[test]
fn names_are_made_as_spark_makes_them() {
    let prefix = |_: &str, input: &str| {
        let prefix = DriverNames::generate(input, None, SUBMITTED_AT_MS, &ENTROPY).resource_prefix;
        Some(format!("{}{{id}}", &prefix[..prefix.len() - 16]))
    };
    assert_rule("prefix", prefix, same);
    let label = |version: &str, input: &str| {
        Some(leaf(&driver(version, "spark.app.name", input)?, "Pod.metadata.labels[spark-app-name]"))
    };
    assert_rule("label", label, same);
}

#[test]
fn sizes_are_read_as_spark_reads_them() {
    let overhead = |version: &str, input: &str| {
        let leaves = driver(version, "spark.driver.memoryOverhead", input)?;
        let memory = leaf(&leaves, "Driver.resources.requests.memory");
        let mebibytes: i64 = memory.strip_suffix("Mi")?.parse().unwrap();
        Some(mebibytes.wrapping_sub(1024).to_string())
    };
    assert_rule("mebibytes", overhead, same);
}

#[test]
fn numbers_are_written_as_java_writes_them() {
    let key = "spark.kubernetes.memoryOverheadFactor";
    let factor = |version: &str, input: &str| Some(leaf(&driver(version, key, input)?, &format!("Properties[{key}]")));
    assert_rule("double", factor, same);
}

#[test]
fn quantities_are_passed_on_as_sparks_client_writes_them() {
    let limit = |version: &str, input: &str| {
        let leaves = driver(version, "spark.kubernetes.driver.limit.cores", input)?;
        Some(leaf(&leaves, "Driver.resources.limits.cpu"))
    };
    assert_rule("quantity", limit, same);
}
