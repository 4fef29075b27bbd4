//! Drivers: templates, whole requests, and the policies that judge them.

use std::{collections::BTreeMap, sync::LazyLock};

use chrono::DateTime;
use serde_json::{Value, json};
use sparkgate_policy::{Judged, Policy, PolicyDocument};
use sparkgate_spark::{
    CreateSubmissionRequest, DriverNames, DriverObjects, NameEntropy, NamedRequest, SparkVersion, SubmitContext,
    SubmitterFiles, build_driver, expand_command_line, parse_properties, rest::parse_partial,
};
use uuid::Uuid;

use super::input::text;

const VERSION: SparkVersion = SparkVersion::V4_3;
const SUBMITTED_AT: i64 = 1_767_323_045;
const NAMESPACE: &str = "spark.kubernetes.namespace";
/// The file of the executors' pod template in its `ConfigMap`.
const TEMPLATE: &str = "podspec-configmap-key";

/// Policies of the two stricter levels.
static POLICIES: LazyLock<[Policy; 2]> = LazyLock::new(|| {
    ["baseline", "restricted"].map(|level| {
        let document = json!({"podSecurity": level, "inlineSecrets": "forbid", "limits": {"executors": 10}});
        let document: PolicyDocument = serde_json::from_value(document).expect("the document is valid");
        Policy::compile(document, &[]).expect("the document has no fault")
    })
});

/// A pod template, as text, for the driver and for executors.
pub fn template(data: &[u8]) {
    let Some(text) = text(data) else { return };
    for version in [SparkVersion::V3_5, SparkVersion::V4_3] {
        let request = |driver: Option<&str>, executor: Option<&str>| CreateSubmissionRequest {
            app_resource: "local:///app.jar".to_owned(),
            main_class: "org.example.Main".to_owned(),
            spark_properties: [("spark.kubernetes.container.image".to_owned(), "spark".to_owned())].into(),
            driver_pod_template: driver.map(Value::from),
            executor_pod_template: executor.map(Value::from),
            ..CreateSubmissionRequest::default()
        };
        build(request(Some(text), None), version);
        build(request(None, Some(text)), version);
    }
}

/// Builds the driver of a request, and checks what holds for every driver.
fn build(request: CreateSubmissionRequest, version: SparkVersion) -> Option<DriverObjects> {
    let submitted_at = DateTime::from_timestamp(SUBMITTED_AT, 0).expect("a time");
    let entropy = NameEntropy::from_uuids(Uuid::nil(), Uuid::nil(), Uuid::nil(), Uuid::nil());
    let request = NamedRequest::new(request, version).ok()?;
    let names = DriverNames::for_request(&request, submitted_at.timestamp_millis(), &entropy);
    let submitter = &SubmitterFiles::default();
    let context = SubmitContext { version, names: &names, submitted_at, user: "spark", submitter, properties: &[] };
    let mut driver = build_driver(&request, &context).ok()?;
    is_ours(&mut driver, &names);
    Some(driver)
}

/// Asserts what holds for each driver, whatever its request says.
fn is_ours(driver: &mut DriverObjects, names: &DriverNames) {
    let metadata = &driver.pod.metadata;
    assert_eq!(metadata.name.as_deref(), Some(names.driver_pod.as_str()), "a kill finds the pod by this name");
    let role = metadata.labels.as_ref().and_then(|labels| labels.get("spark-role"));
    assert_eq!(role.map(String::as_str), Some("driver"), "the watch finds the pod by this label");
    let restarts = driver.pod.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref());
    assert_eq!(restarts, Some("Never"), "an attempt runs once");
    let list = driver.to_list().expect("objects can be written");
    let is_shipped = list["items"].as_array().into_iter().flatten().any(|object| !object["data"][TEMPLATE].is_null());
    let judged = driver.executor_template();
    assert_eq!(judged.is_some(), is_shipped, "a template that is shipped is judged");
    if let Some(judged) = judged {
        driver.set_executor_template(&judged);
        assert_eq!(driver.executor_template(), Some(judged), "what is judged is what the driver reads");
    }
}

/// A request as `sparkgate render` reads it: built, and judged by two policies.
pub fn driver(data: &[u8]) {
    let Some(request) =
        parse_partial(data, VERSION).ok().and_then(|(request, _)| expand_command_line(request, VERSION).ok())
    else {
        return;
    };
    let namespace = request.spark_properties.get(NAMESPACE).map_or("default", |name| name.trim()).to_owned();
    let Some(driver) = build(with_image(request.clone()), VERSION) else { return };
    let (objects, properties) = judged(&driver);
    let template = driver.executor_template();
    for policy in &*POLICIES {
        let violations = policy.judge(&Judged {
            objects: &objects,
            properties: &properties,
            origins: &BTreeMap::new(),
            driver_template: request.driver_pod_template.as_ref(),
            executor_template: template.as_ref(),
            resources: &[("appResource", &request.app_resource)],
            of_operator: false,
        });
        if violations.is_empty() {
            is_within(&objects, &namespace);
        }
    }
}

fn with_image(mut request: CreateSubmissionRequest) -> CreateSubmissionRequest {
    request.spark_properties.entry("spark.kubernetes.container.image".to_owned()).or_insert_with(|| "spark".to_owned());
    request
}

/// Returns the objects of a driver as JSON, and the properties that its process gets.
fn judged(driver: &DriverObjects) -> (Vec<Value>, BTreeMap<String, String>) {
    let list = driver.to_list().expect("objects can be written");
    let objects = list["items"].as_array().cloned().unwrap_or_default();
    let mut texts = objects.iter().filter_map(|object| object["data"]["spark.properties"].as_str());
    let properties = texts.next_back().map(parse_properties).unwrap_or_default();
    (objects, properties)
}

/// Asserts of objects without violations what a node has to be protected from, by another reading than that of the rules.
fn is_within(objects: &[Value], namespace: &str) {
    for object in objects {
        let of = object.pointer("/metadata/namespace").and_then(Value::as_str);
        assert!(of.is_none_or(|of| of == namespace), "{of:?} is not {namespace}");
        each(object, "", &mut |path, key, value| {
            let is_on = value == &Value::Bool(true);
            let forbidden = match key {
                "hostNetwork" | "hostPID" | "hostIPC" | "privileged" | "hostProcess" => is_on,
                "hostPath" => value.is_object(),
                "hostPort" => value.as_i64().is_some_and(|port| port != 0),
                _ => false,
            };
            // Labels and the like may have any key.
            let is_field = ["labels", "annotations", "data", "nodeSelector", "matchLabels"]
                .iter()
                .all(|map| !path.split('/').any(|part| part == *map));
            assert!(!(forbidden && is_field), "{path}/{key} is {value}");
        });
    }
}

fn each(value: &Value, path: &str, visit: &mut impl FnMut(&str, &str, &Value)) {
    match value {
        Value::Object(entries) => {
            for (key, value) in entries {
                visit(path, key, value);
                each(value, &format!("{path}/{key}"), visit);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| each(item, path, visit)),
        _ => {}
    }
}

/// A usual driver: its objects, and its properties.
static USUAL: LazyLock<(Vec<Value>, BTreeMap<String, String>)> = LazyLock::new(|| {
    let body = br#"{"appResource": "local:///app.jar", "mainClass": "A", "sparkProperties": {"spark.executor.instances": "3"}}"#;
    let (request, _) = parse_partial(body, VERSION).expect("the request is valid");
    judged(&build(with_image(request), VERSION).expect("it can be built"))
});

/// The policy of a tenant, which judges a usual driver.
pub fn policy(data: &[u8]) {
    let Ok(document) = serde_json::from_slice::<PolicyDocument>(data) else { return };
    let policy = match Policy::compile(document, &["spark".to_owned()]) {
        Ok(policy) => policy,
        Err(faults) => return assert!(!faults.is_empty(), "an error says why"),
    };
    let (objects, properties) = &*USUAL;
    let violations = policy.judge(&Judged {
        objects,
        properties,
        origins: &BTreeMap::new(),
        driver_template: None,
        executor_template: None,
        resources: &[("appResource", "local:///app.jar")],
        of_operator: false,
    });
    assert!(violations.iter().all(|violation| !violation.rule.is_empty()), "a violation names its rule");
    let _ = (policy.images(), policy.forbidden_volumes().count(), policy.host_paths(), policy.quota(3));
}
