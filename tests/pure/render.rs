//! `sparkgate render`. `tests/parity` compares its objects with those of spark-submit.

use serde_json::Value;
use sparkgate::{
    app::render,
    policy::{Policy, PolicyDocument},
    service::SparkSettings,
    spark::SparkVersion,
};

fn settings() -> SparkSettings {
    let nothing = Default::default();
    SparkSettings::new(SparkVersion::V4_3, nothing, Default::default(), "me".into())
}

#[test]
fn the_command_writes_a_list_in_the_order_of_creation() {
    let request = r#"{"appResource": "local:///app.py", "sparkProperties": {
        "spark.kubernetes.container.image": "spark:test", "spark.driver.cores": 2}}"#;
    let mut output = Vec::new();
    render::run(request.as_bytes(), &mut output, std::io::sink(), &settings(), None).unwrap();
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

#[test]
fn the_command_says_which_rules_of_a_policy_the_driver_breaks() {
    let document: PolicyDocument = serde_saphyr::from_str("images: [\"registry.example.org/**\"]").unwrap();
    let policy = Policy::compile(document, &[]).unwrap();
    let rendered = |image: &str| {
        let request = format!(
            r#"{{"appResource": "local:///app.py", "sparkProperties": {{"spark.kubernetes.container.image": "{image}"}}}}"#
        );
        let mut notes = Vec::new();
        let run = render::run(request.as_bytes(), std::io::sink(), &mut notes, &settings(), Some(&policy));
        (run.map_err(|error| error.to_string()), String::from_utf8(notes).unwrap())
    };
    assert_eq!(rendered("registry.example.org/spark:4.3.0"), (Ok(()), String::new()));
    let (refused, notes) = rendered("spark:4.3.0");
    assert!(refused.unwrap_err().starts_with("the policy refuses the driver"));
    assert!(notes.contains("sparkgate: policy: images: Pod/spec/containers/0/image"), "{notes}");
}
