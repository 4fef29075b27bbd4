//! The real spark-submit as oracle: what Spark 3.5.9, 4.1.4 and 4.3.0 sent to a Kubernetes API, compared with what is
//! built here for the same requests.
//!
//! `render/requests.json` holds the requests by name, `render/spark-<version>.json` Spark's objects for them, and
//! `render/refused.json` requests that Spark 4.3.0 refuses, with its sentence. Random names, the time and the user are
//! replaced by those below, the lines of `spark.properties` and custom variables are sorted (Spark's order is that of a
//! hash map), and every object tells the namespace that it was created in.
#![expect(clippy::unwrap_used, reason = "a test may")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use chrono::{DateTime, Utc};
use serde_json::Value;
use sparkgate::{
    app::render,
    service::SparkSettings,
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
    let context =
        SubmitContext { version, names, submitted_at, user: "submitter".to_owned(), submitter: Default::default() };
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

/// Each place where two lists of objects differ, with both values.
fn different_leaves(built: &[Value], recorded: &[Value]) -> impl Iterator<Item = String> {
    let (mut ours, mut sparks) = (BTreeMap::new(), BTreeMap::new());
    for (leaves, objects) in [(&mut ours, built), (&mut sparks, recorded)] {
        for (index, object) in objects.iter().enumerate() {
            collect_leaves(object, format!("{index}"), leaves);
        }
    }
    let places: BTreeSet<String> = ours.keys().chain(sparks.keys()).cloned().collect();
    let show = |value: Option<&Value>| value.map_or_else(|| "nothing".to_owned(), Value::to_string);
    places.into_iter().filter_map(move |place| {
        let (ours, sparks) = (ours.get(&place), sparks.get(&place));
        (ours != sparks).then(|| format!("{place}: built {}, Spark {}", show(ours), show(sparks)))
    })
}

/// Scalars, and empty lists and objects, by their path.
fn collect_leaves(value: &Value, path: String, leaves: &mut BTreeMap<String, Value>) {
    match value {
        Value::Array(items) if !items.is_empty() => {
            items.iter().enumerate().for_each(|(index, item)| collect_leaves(item, format!("{path}/{index}"), leaves));
        }
        Value::Object(fields) if !fields.is_empty() => {
            fields.iter().for_each(|(name, field)| collect_leaves(field, format!("{path}/{name}"), leaves));
        }
        leaf => {
            leaves.insert(path, leaf.clone());
        }
    }
}

/// Compares all cases of one release, and shows every place where they differ.
fn assert_same(version: &str) {
    let requests = fixture("requests.json");
    let mut differences = Vec::new();
    for (name, recorded) in fixture(&format!("spark-{version}.json")) {
        let expected: Vec<Value> = recorded.as_array().unwrap().iter().cloned().map(comparable).collect();
        match build(&request(&requests[&name]), version.parse().unwrap()) {
            Ok(built) => differences.extend(different_leaves(&built, &expected).map(|leaf| format!("{name}: {leaf}"))),
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

fn settings() -> SparkSettings {
    let nothing = Default::default();
    SparkSettings { version: SparkVersion::V4_3, defaults: nothing, submitter: Default::default(), user: "me".into() }
}

#[test]
fn the_command_writes_a_list_in_the_order_of_creation() {
    let request = r#"{"appResource": "local:///app.py", "sparkProperties": {
        "spark.kubernetes.container.image": "spark:test", "spark.driver.cores": 2}}"#;
    let mut output = Vec::new();
    render::run(request.as_bytes(), &mut output, std::io::sink(), &settings()).unwrap();
    let list: Value = serde_json::from_slice(&output).unwrap();
    let kinds: Vec<&str> =
        list["items"].as_array().unwrap().iter().map(|item| item["kind"].as_str().unwrap()).collect();
    assert_eq!((list["apiVersion"].as_str(), list["kind"].as_str()), (Some("v1"), Some("List")));
    assert_eq!(kinds, ["Pod", "Service", "NetworkPolicy", "ConfigMap"]);
}

#[test]
fn the_command_says_what_is_wrong_with_a_request() {
    let error = |request: &str| render::render(request.as_bytes(), &settings()).unwrap_err().to_string();
    assert!(error("{}").starts_with("appResource: Missing application resource."));
    assert_eq!(error("["), "the request on standard input can't be read");
    let supervise = r#"{"sparkProperties": {"spark.driver.supervise": "maybe"}}"#;
    assert_eq!(error(supervise), "the request on standard input can't be read", "as over HTTP");
}
