//! Single rules against the JVM's own answers (`recorded/vectors.json`).

use std::{collections::BTreeMap, fs};

use sparkgate::spark::DriverNames;

use crate::{
    answer::{Answer, Leaves},
    case::Written,
    ours::{self, ENTROPY, SUBMITTED_AT_MS},
    recorded,
    vectors::{RULES, Vectors},
};

/// The driver of Spark 4.3.0 with one property, if there is one.
fn driver(key: &str, value: &str) -> Option<Leaves> {
    let mut written = Written::default();
    let properties: BTreeMap<&str, &str> = [(key, value)].into();
    written.request.insert("sparkProperties".into(), serde_json::to_value(properties).unwrap());
    match ours::answer(&written.case("rule"), "4.3.0") {
        Answer::Objects(leaves) => Some(leaves),
        Answer::Refused(_) => None,
    }
}

fn leaf(leaves: &Leaves, path: &str) -> String {
    serde_json::from_str(&leaves[path]).unwrap()
}

/// Each input of a rule for which `ours` isn't what the JVM says.
fn assert_rule(rule: &str, ours: impl Fn(&str) -> Option<String>, sparks: impl Fn(&str) -> Option<String>) {
    let vectors: Vectors = serde_json::from_str(&fs::read_to_string(recorded::path("vectors.json")).unwrap()).unwrap();
    assert_eq!(vectors.len(), RULES.len(), "run `make parity`");
    let mut wrong = Vec::new();
    for (input, answer) in &vectors[rule] {
        let expected = answer.as_deref().and_then(&sparks);
        let answer = ours(input);
        if answer != expected {
            wrong.push(format!("{input:?}: ours {answer:?}, the JVM {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), vectors[rule].len(), wrong.join("\n"));
}

fn same(answer: &str) -> Option<String> {
    Some(answer.to_owned())
}

#[test]
fn property_keys_are_escaped_as_java_does() {
    let line = |input: &str| {
        let leaves = driver(&format!("spark.{input}"), "v")?;
        let own = leaves.keys().filter(|path| path.starts_with("Config.data[spark.properties][spark."));
        let path = own.max_by_key(|path| leaves[*path] == "\"v\"")?;
        let key = path.strip_prefix("Config.data[spark.properties][spark.")?.strip_suffix(']')?;
        Some(serde_json::from_str::<String>(&format!("\"{key}\"")).unwrap() + "=")
    };
    // A NUL is refused: no environment variable and no argument can hold it.
    assert_rule("escapeKey", line, |answer| (!answer.contains('\0')).then(|| answer.to_owned()));
}

#[test]
fn property_values_are_escaped_as_java_does() {
    let path = "Config.data[spark.properties][spark.test]";
    let line = |input: &str| driver("spark.test", input).map(|leaves| format!("k={}", leaf(&leaves, path)));
    assert_rule("escapeValue", line, |answer| (!answer.contains('\0')).then(|| answer.to_owned()));
}

#[test]
fn names_are_made_as_spark_makes_them() {
    let prefix = |input: &str| {
        let prefix = DriverNames::generate(input, None, SUBMITTED_AT_MS, &ENTROPY).resource_prefix;
        Some(format!("{}{{id}}", &prefix[..prefix.len() - 16]))
    };
    assert_rule("prefix", prefix, same);
    let label = |input: &str| Some(leaf(&driver("spark.app.name", input)?, "Pod.metadata.labels[spark-app-name]"));
    assert_rule("label", label, same);
}

#[test]
fn sizes_are_read_as_spark_reads_them() {
    let overhead = |input: &str| {
        let leaves = driver("spark.driver.memoryOverhead", input)?;
        let memory = leaf(&leaves, "Pod.spec.containers[spark-kubernetes-driver].resources.requests.memory");
        let mebibytes: i64 = memory.strip_suffix("Mi")?.parse().unwrap();
        Some((mebibytes - 1024).to_string())
    };
    assert_rule("mebibytes", overhead, same);
}

#[test]
fn numbers_are_written_as_java_writes_them() {
    let key = "spark.kubernetes.memoryOverheadFactor";
    let factor = |input: &str| Some(leaf(&driver(key, input)?, &format!("Config.data[spark.properties][{key}]")));
    // The factor has to lie in [0, 1).
    let allowed = |answer: &str| answer.parse().is_ok_and(|number: f64| (0.0..1.0).contains(&number));
    assert_rule("double", factor, |answer| allowed(answer).then(|| answer.to_owned()));
}
