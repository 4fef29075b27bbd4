//! The real spark-submit as oracle: what Spark 3.5.9, 4.1.4 and 4.3.0 sent to a Kubernetes API, compared with what is
//! built here for the same requests.
//!
//! `render/requests.json` holds the requests by name, `render/spark-<version>.json` Spark's objects for them, and
//! `render/refused.json` requests that Spark 4.3.0 refuses, with its sentence. Random names, the time and the user are
//! replaced by those below, the lines of `spark.properties` and custom variables are sorted (Spark's order is that of a
//! hash map), and every object tells the namespace that it was created in.
#![expect(clippy::unwrap_used, reason = "a test may")]

use std::{collections::BTreeMap, fs, path::Path};

use chrono::{DateTime, Utc};
use serde_json::Value;
use sparkgate::{
    app::render,
    spark::{CreateSubmissionRequest, DriverNames, NameEntropy, Refusal, SparkVersion, SubmitContext, build_driver},
};
use uuid::Uuid;

/// Friday, 2026-01-02 03:04:05.678 UTC.
const SUBMITTED_AT_MS: i64 = 1_767_323_045_678;
const ENTROPY: NameEntropy = NameEntropy {
    app_id: Uuid::from_u128(0xaaaa_aaaa_aaaa_4aaa_8aaa_aaaa_aaaa_aaaa),
    local_dir: Uuid::from_u128(0xdddd_dddd_dddd_4ddd_8ddd_dddd_dddd_dddd),
    resource_prefix: [0x1a, 0x2b, 0x3c],
    config_map: [0x4d, 0x5e, 0x6f],
    driver_service: [0x70, 0x81, 0x92],
};

fn fixture(name: &str) -> BTreeMap<String, Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/render").join(name);
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

fn request(json: &Value) -> CreateSubmissionRequest {
    let mut json = json.clone();
    let defaults = [("sparkProperties", Value::Object(Default::default()))];
    for (field, value) in defaults {
        json.as_object_mut().unwrap().entry(field).or_insert(value);
    }
    serde_json::from_value(json).unwrap()
}

fn build(request: &CreateSubmissionRequest, version: SparkVersion) -> Result<Vec<Value>, Refusal> {
    let names = DriverNames::for_request(request, SUBMITTED_AT_MS, &ENTROPY)?;
    let submitted_at: DateTime<Utc> = DateTime::from_timestamp_millis(SUBMITTED_AT_MS).unwrap();
    let context = SubmitContext { version, names, submitted_at, user: "submitter".to_owned() };
    let mut list = render::list(&build_driver(request, &context)?).unwrap();
    Ok(list["items"].as_array_mut().unwrap().drain(..).map(comparable).collect())
}

/// Properties by line, so that a difference shows as one line, and the order of lines doesn't matter.
fn comparable(mut object: Value) -> Value {
    if let Some(text) = object.pointer_mut("/data/spark.properties") {
        let mut lines: Vec<String> = text.as_str().unwrap().split('\n').map(str::to_owned).collect();
        lines[2..].sort();
        *text = lines.into();
    }
    object
}

/// Compares all cases of one release, and shows both sides of those that differ.
fn assert_same(version: &str) {
    let requests = fixture("requests.json");
    let mut differences = Vec::new();
    for (name, recorded) in fixture(&format!("spark-{version}.json")) {
        let expected: Vec<Value> = recorded.as_array().unwrap().iter().cloned().map(comparable).collect();
        match build(&request(&requests[&name]), version.parse().unwrap()) {
            Ok(built) if built == expected => {}
            Ok(built) => {
                let kinds = |items: &[Value]| items.iter().map(|item| item["kind"].to_string()).collect::<Vec<_>>();
                differences.push(format!("{name}: built {:?}, Spark {:?}", kinds(&built), kinds(&expected)));
                for (ours, theirs) in built.iter().zip(&expected).filter(|(ours, theirs)| ours != theirs) {
                    differences.push(format!("  ours  {ours}\n  Spark {theirs}"));
                }
            }
            Err(refusal) => differences.push(format!("{name}: refused, but Spark takes it: {refusal}")),
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn drivers_equal_those_of_spark_3_5() {
    assert_same("3.5.9");
}

#[test]
fn drivers_equal_those_of_spark_4_1() {
    assert_same("4.1.4");
}

#[test]
fn drivers_equal_those_of_spark_4_3() {
    assert_same("4.3.0");
}

#[test]
fn what_spark_refuses_is_refused_in_its_words() {
    for (name, case) in fixture("refused.json") {
        let refusal = build(&request(&case["request"]), SparkVersion::V4_3).expect_err(&name);
        let sentence = case["spark"].as_str().unwrap();
        assert!(refusal.reason.contains(sentence), "{name}:\n  ours  {refusal}\n  Spark {sentence}");
    }
}
