//! Requests of Spark's protocol: bodies, paths, command lines, and files of properties.

use serde_json::Value;
use sparkgate_spark::{
    CreateSubmissionRequest, SparkVersion, expand_command_line, parse_properties,
    rest::{Target, parse_create, parse_partial, parse_path},
};

use super::input::text;

const VERSIONS: [SparkVersion; 2] = [SparkVersion::V3_5, SparkVersion::V4_3];
/// The class that stands for a command line in `appArgs`.
const SPARK_SUBMIT: &str = "org.apache.spark.deploy.SparkSubmit";

/// `POST /v1/submissions/create` of Spark's protocol, and the input of `sparkgate render`.
pub fn spark_request(data: &[u8]) {
    for version in VERSIONS {
        for parse in [parse_create, parse_partial] {
            match parse(data, version) {
                Ok((request, _)) => can_be_stored(&request),
                Err(error) => assert!(!error.to_string().is_empty(), "an error says why"),
            }
        }
    }
}

/// The path of a request of Spark's protocol.
pub fn path(data: &[u8]) {
    let Some(text) = text(data) else { return };
    for version in [SparkVersion::V3_5, SparkVersion::V4_0, SparkVersion::V4_3] {
        match parse_path(text, version) {
            Ok(Target::Action { id: Some(id), .. }) => {
                assert!(!id.is_empty() && !id.contains('\0'), "{id:?} is no segment");
                assert!(
                    version < SparkVersion::V4_2 || !id.contains(['/', '%', '\\']),
                    "{id:?} can be read in two ways"
                );
            }
            Ok(Target::Action { id: None, .. }) | Err(_) => {}
            Ok(Target::Nowhere { message, .. }) => assert!(!message.is_empty(), "an error says why"),
        }
    }
}

/// A command line in `appArgs`, one argument in each line.
pub fn command_line(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let request = CreateSubmissionRequest {
        main_class: SPARK_SUBMIT.to_owned(),
        app_args: text.split('\n').map(str::to_owned).collect(),
        spark_properties: [("spark.app.name".to_owned(), "name".to_owned())].into(),
        ..CreateSubmissionRequest::default()
    };
    for version in VERSIONS {
        if let Ok(expanded) = expand_command_line(request.clone(), version) {
            let again = expand_command_line(expanded.clone(), version);
            assert_eq!(again.as_ref(), Ok(&expanded), "an expanded request is expanded already");
        }
    }
}

/// A file of properties: `spark-defaults.conf`, and the properties of a driver.
pub fn properties(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let properties = parse_properties(text);
    let bytes: usize = properties.iter().map(|(key, value)| key.len() + value.len()).sum();
    // An escape `\uXXXX` has six bytes and stands for three at most.
    assert!(bytes <= text.len(), "properties hold more than their text");
}

/// Asserts that the database can store the request and read it again.
pub fn can_be_stored(request: &CreateSubmissionRequest) {
    let stored = serde_json::to_value(request).expect("a request can be written");
    assert!(!holds_nul(&stored), "Postgres refuses a NUL character");
    // Numbers of a template may lose their last digit, as in every JSON document.
    let without = |request: &CreateSubmissionRequest| CreateSubmissionRequest {
        driver_pod_template: None,
        executor_pod_template: None,
        ..request.clone()
    };
    let read: CreateSubmissionRequest =
        serde_json::from_str(&stored.to_string()).expect("a stored request can be read");
    assert_eq!(without(&read), without(request), "a request is read as it was stored");
}

fn holds_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(items) => items.iter().any(holds_nul),
        Value::Object(entries) => entries.iter().any(|(key, value)| key.contains('\0') || holds_nul(value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
