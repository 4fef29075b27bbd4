use serde_json::{Value, json};

use super::*;

fn good() -> Value {
    json!({
        "action": "CreateSubmissionRequest", "clientSparkVersion": "4.3.0", "appResource": "local:///a.jar",
        "mainClass": "Pi", "appArgs": ["1"], "environmentVariables": {}, "sparkProperties": {"spark.app.name": "Pi"},
    })
}

fn with(field: &str, value: Value) -> Value {
    let mut body = good();
    body[field] = value;
    body
}

fn parse(body: &Value) -> Result<(CreateSubmissionRequest, Vec<String>), RequestError> {
    parse_create(body.to_string().as_bytes(), SparkVersion::V4_3)
}

fn refusal(body: &Value) -> String {
    parse(body).expect_err("refused").to_string()
}

#[test]
fn scalars_become_strings_as_they_were_written() {
    let body = r#"{"action": "CreateSubmissionRequest", "clientSparkVersion": 4.30, "appResource": true,
        "mainClass": -0, "appArgs": [1e3, 2.50, 100000000000000000000000, false, "\u00e9"],
        "sparkProperties": {"spark.a": 1E+2, "spark.a": 7}} trailing"#;
    let (request, unknown) = parse_create(body.as_bytes(), SparkVersion::V4_3).unwrap();
    assert_eq!(request.app_args, ["1e3", "2.50", "100000000000000000000000", "false", "é"]);
    assert_eq!((&*request.client_spark_version, &*request.app_resource, &*request.main_class), ("4.30", "true", "-0"));
    assert_eq!(request.spark_properties["spark.a"], "7");
    assert_eq!(unknown, ["sparkProperties"]);
}

#[test]
fn unknown_fields_keep_the_order_of_the_request() {
    let body = good().to_string().replacen('{', r#"{"zebra": 1, "apple": {"a": [1]}, "zebra": 2, "message": null,"#, 1);
    let body = body.trim_end_matches('}').to_owned() + r#"}, "proxyUser": "ann", "appArgs": ["2"]}"#;
    let (request, unknown) = parse_create(body.as_bytes(), SparkVersion::V4_3).unwrap();
    assert_eq!(unknown, ["zebra", "apple", "message", "appArgs"]);
    assert_eq!((request.proxy_user.as_deref(), &*request.app_args), (Some("ann"), &["2".to_owned()][..]));
}

#[test]
fn a_failed_validation_names_the_field() {
    let begin = "Malformed request: org.apache.spark.deploy.rest.SubmitRestProtocolException: \
                 Validation of message CreateSubmissionRequest failed!\nCaused by: ";
    let name = |key: &str, value: Value| with("sparkProperties", json!({"spark.app.name": "Pi", key: value}));
    for (body, cause) in [
        (with("appResource", Value::Null), "'appResource' is missing in message CreateSubmissionRequest."),
        (name("spark.driver.supervise", json!("yes")), "Property 'spark.driver.supervise' expected boolean value"),
        (
            name("spark.driver.cores", json!("two")),
            "Property 'spark.driver.cores' expected numeric value: actual was 'two'.",
        ),
        (name("spark.driver.memory", json!("1.5g")), "Property 'spark.driver.memory' expected memory value"),
        (name("spark.driver.cores", json!(1.5)), "sparkProperties[\"spark.driver.cores\"]: a whole number"),
        (name("spark.x", Value::Null), "sparkProperties[\"spark.x\"]: the value is null"),
        (name("spark.x", json!("a\0")), "sparkProperties[\"spark.x\"]: the text holds a NUL"),
        (name("a\0b", json!("")), "sparkProperties[\"a\\0b\"]: the key holds a NUL"),
        (with("appArgs", json!(["a", null])), "appArgs[1]: the value is null"),
        (with("environmentVariables", json!({"A": null})), "environmentVariables[\"A\"]: the value is null"),
        (with("mainClass", json!("\0")), "mainClass: the text holds a NUL"),
        (with("driverPodTemplate", json!({"a": ["x\0"]})), "driverPodTemplate: the template holds a NUL"),
    ] {
        let text = refusal(&body);
        assert!(text.starts_with(begin) && text.contains(cause), "{text}");
    }
    assert!(parse(&with("driverPodTemplate", json!({"a": "\\u0000"}))).is_ok());
}

#[test]
fn a_type_mismatch_names_the_path() {
    for (field, value, place) in [
        ("sparkProperties", json!({"spark.a": {"b": 1}}), "[\"sparkProperties\"][\"spark.a\"]"),
        ("sparkProperties", json!(["a"]), "[\"sparkProperties\"]"),
        ("appArgs", json!("a"), "[\"appArgs\"]"),
        ("appArgs", json!(["a", ["b"]]), "[\"appArgs\"][1]"),
        ("mainClass", json!({}), "[\"mainClass\"]"),
    ] {
        let text = refusal(&with(field, value));
        assert!(text.contains("MismatchedInputException: Cannot deserialize value of type"), "{text}");
        assert!(text.ends_with(&format!("org.apache.spark.deploy.rest.CreateSubmissionRequest{place})")), "{text}");
    }
}

#[test]
fn spark_3_5_requires_more_fields() {
    let v3_5 = SparkVersion::V3_5;
    assert!(parse_create(good().to_string().as_bytes(), v3_5).is_ok());
    for field in ["appArgs", "environmentVariables", "spark.app.name"] {
        let body = match field {
            "spark.app.name" => with("sparkProperties", json!({})),
            _ => with(field, Value::Null),
        };
        let error = parse_create(body.to_string().as_bytes(), v3_5).expect_err(field);
        assert!(error.to_string().contains(&format!("'{field}' is missing")), "{error}");
        assert!(parse(&body).is_ok(), "{field}");
    }
}

#[test]
fn a_refusal_quotes_no_secret() {
    for key in ["spark.driver.memory", "spark.driver.cores", "spark.driver.supervise"] {
        let refusal = refusal(&with("sparkProperties", json!({"spark.app.name": "Pi", key: "password=hunter2"})));
        assert!(refusal.contains(key) && !refusal.contains("hunter2"), "{refusal}");
    }
    let error = parse(&json!({"sparkProperties": {"spark.ssl.keyPassword": "hunter2"}})).unwrap_err();
    assert_eq!(error, RequestError::NoAction { json: REDACTED.to_owned() });
    let error = parse(&json!({"sparkProperties": {"spark.app.name": "Pi"}})).unwrap_err();
    assert!(error.to_string().contains("Pi"), "{error}");
}

#[test]
fn deep_nesting_and_invalid_bytes_are_refused() {
    let deep = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
    let template = |n| good().to_string().replacen('{', &format!("{{\"driverPodTemplate\": {},", deep(n)), 1);
    let of = |body: String| parse_create(body.as_bytes(), SparkVersion::V4_3);
    assert_eq!(of(deep(100_000)), Err(RequestError::TooDeep { depth: 1001 }));
    assert!(matches!(of(template(900)), Err(RequestError::Mismatch { path, .. }) if path == "[\"driverPodTemplate\"]"));
    assert!(of(template(20)).is_ok());
    assert_eq!(of("\n ".to_owned()), Err(RequestError::Empty));
    assert!(matches!(parse_create(b"{\"action\": \"\xff\"}", SparkVersion::V4_3), Err(RequestError::Syntax(_))));
    assert!(matches!(of(r#"{"action": "\ud800"}"#.to_owned()), Err(RequestError::Mismatch { .. })));
    match of(format!("[\"{}\"]", "é".repeat(100_000))) {
        Err(RequestError::NoAction { json }) => assert!(json.len() < 10_000 && json.ends_with('…')),
        other => panic!("{other:?}"),
    }
}

proptest::proptest! {
    #[test]
    fn any_bytes_have_an_answer(body: Vec<u8>, cut in 0_usize..200) {
        _ = parse_create(&body, SparkVersion::V4_3);
        let good = good().to_string();
        _ = parse_create(&good.as_bytes()[..cut.min(good.len())], SparkVersion::V3_5);
    }
}

#[test]
fn an_oversized_template_is_refused_before_it_is_parsed() {
    for template in [json!(vec![0; 2 << 20]), json!("x".repeat(2 << 20))] {
        let refusal = refusal(&with("executorPodTemplate", template));
        assert!(refusal.contains("executorPodTemplate: the template has"), "{refusal}");
    }
    let (request, _) = parse(&with("driverPodTemplate", json!("\n".repeat(1 << 19)))).unwrap();
    assert!(request.driver_pod_template.is_some());
}
