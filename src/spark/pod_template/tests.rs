//! What the comparison with spark-submit can't show: refusals of our own, bounds, and templates inside the request.

use chrono::DateTime;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::PodSpec;
use serde_json::json;
use uuid::Uuid;

use super::*;
use crate::spark::{
    CreateSubmissionRequest, DriverNames, DriverObjects, NameEntropy, Object, SparkVersion, SubmitContext,
    SubmitterFiles, build_driver,
};

const EXECUTOR_KEY: &str = "spark.kubernetes.executor.podTemplateFile";

fn request(driver: Option<Value>, properties: &[(&str, &str)]) -> CreateSubmissionRequest {
    let image = ("spark.kubernetes.container.image", "spark:test");
    let properties = [&image].into_iter().chain(properties);
    CreateSubmissionRequest {
        app_resource: "local:///app.jar".to_owned(),
        main_class: "org.example.Main".to_owned(),
        spark_properties: properties.map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        driver_pod_template: driver,
        ..Default::default()
    }
}

fn build(request: &CreateSubmissionRequest) -> Result<DriverObjects, Refusal> {
    let id = Uuid::nil();
    let names = DriverNames::for_request(request, SparkVersion::V4_3, 0, &NameEntropy::from_uuids(id, id, id, id))?;
    let file = b"spec:\n  nodeName: from-a-file\n  containers:\n  - name: main\n".to_vec();
    let submitter = SubmitterFiles { named: [("gpu.yaml".to_owned(), ByteString(file))].into(), ..Default::default() };
    let submitted_at = DateTime::from_timestamp_millis(0).unwrap();
    let context = SubmitContext { version: SparkVersion::V4_3, names, submitted_at, user: "u".to_owned(), submitter };
    build_driver(request, &context)
}

fn spec(request: &CreateSubmissionRequest) -> PodSpec {
    build(request).unwrap().pod.spec.unwrap()
}

/// The reason for which a template is refused, after Spark's sentence.
fn reason(template: impl Into<Value>) -> String {
    let refusal = build(&request(Some(template.into()), &[])).unwrap_err();
    assert_eq!(refusal.field, FIELD);
    refusal.reason.strip_prefix("Could not load pod from template file. ").unwrap().to_owned()
}

#[test]
fn a_refused_template_says_where_and_why() {
    assert_eq!(
        reason("spec: {containers: [{name: a, imag: b}]}"),
        "spec.containers[0].imag: Kubernetes knows no such field."
    );
    assert_eq!(reason("colour: red\nspec: {containers: [{}]}"), "colour: Kubernetes knows no such field.");
    assert_eq!(
        reason(json!({"spec": {"containers": [{"ports": [{"containerPort": "http"}]}]}})),
        "spec.containers[0].ports[0].containerPort: a whole number of 32 bits is wanted here, not `http`."
    );
    assert_eq!(
        reason("spec: {hostNetwork: yes, containers: [{}]}"),
        "spec.hostNetwork: true or false is wanted here, not `yes`."
    );
    assert_eq!(
        reason("spec: {tolerations: {key: a}, containers: [{}]}"),
        "spec.tolerations: a list is wanted here, not a map."
    );
    assert_eq!(reason("kind: Deployment\nspec: {}"), "Its kind is \"Deployment\", and must be Pod.");
    assert_eq!(reason("metadata: {name: a}"), "It has no `spec`.");
    assert!(reason("spec: {tolerations: []}").starts_with("It has no container."));
    assert!(reason(format!("{}: b", "long".repeat(200))).len() < 200);
    assert!(reason("- a").contains("is a map"));
    assert!(reason("").contains("is a map"));
    assert_eq!(
        reason("spec: {containers: [{}]}\n---\nspec: {}"),
        "Reading it failed: line 3: a second document begins; give one only."
    );
    assert!(reason("spec:\n\tcontainers: []").contains("line 2"));
}

#[test]
fn a_template_that_is_too_large_is_refused_before_it_is_read() {
    let lines = "a: b\n".repeat(2 << 20);
    assert!(reason(lines.as_str()).contains("1048576 are the most"));
    assert!(
        reason(json!({"spec": {"containers": [{"args": ["x".repeat(1 << 20)]}]}})).contains("1048576 are the most")
    );
    let mut executor = request(None, &[]);
    executor.executor_pod_template = Some(lines.into());
    assert!(build(&executor).unwrap_err().reason.contains("1048576 are the most"));
}

#[test]
fn a_list_of_entries_that_say_nothing_has_an_end() {
    let volumes = |count| json!({"spec": {"containers": [{}], "volumes": vec![json!({}); count]}});
    assert_eq!(reason(volumes(10_001)), "spec.volumes: 10001 entries are too many, 10000 the most.");
    assert_eq!(spec(&request(Some(volumes(10_000)), &[])).volumes.unwrap().len(), 10_002, "and those of the steps");
}

#[test]
fn an_inline_template_wins_over_a_named_one_and_the_driver_hears_of_none() {
    let named = [(KEY, "gpu.yaml")];
    assert_eq!(spec(&request(None, &named)).node_name.as_deref(), Some("from-a-file"));
    let inline = request(Some(json!({"spec": {"nodeName": "inline", "containers": [{"name": "main"}]}})), &named);
    assert_eq!(spec(&inline).node_name.as_deref(), Some("inline"));
    let Some(Object::ConfigMap(map)) = build(&inline).unwrap().resources.pop() else { panic!("no ConfigMap") };
    assert!(!map.data.unwrap()["spark.properties"].contains("driver.podTemplateFile"));
}

#[test]
fn no_path_of_a_request_is_opened() {
    for (key, field) in [(KEY, FIELD), (EXECUTOR_KEY, "executorPodTemplate")] {
        for path in ["/etc/passwd", "../gpu.yaml", "file:///etc/passwd", "s3a://b/gpu.yaml", "gpu.yml", ""] {
            let refusal = build(&request(None, &[(key, path)])).unwrap_err();
            assert_eq!(refusal.field, Refusal::property_field(key));
            assert!(refusal.reason.contains("bare name") && refusal.reason.contains(field), "{refusal}");
        }
    }
}

#[test]
fn an_executor_template_travels_as_it_was_written() {
    let text = "# mine\nspec: {containers: [{name: e, stdin: true}]}\n";
    let object = json!({"spec": {"containers": [{"name": "e"}]}});
    let written_object = object.to_string();
    for (template, written) in [(json!(text), text), (object, written_object.as_str())] {
        let mut request = request(None, &[]);
        request.executor_pod_template = Some(template);
        let resources = build(&request).unwrap().resources;
        let data = resources.iter().filter_map(|object| match object {
            Object::ConfigMap(map) => map.data.as_ref()?.get("podspec-configmap-key"),
            _ => None,
        });
        assert_eq!(data.collect::<Vec<_>>(), [written]);
    }
    for never in ["", "a\n---\nb", "- a", "a: [", "{a: 1}"] {
        let mut request = request(None, &[]);
        request.executor_pod_template = Some(never.into());
        let refusal = build(&request).unwrap_err();
        assert_eq!(refusal.field, "executorPodTemplate");
        assert!(refusal.reason.starts_with("No driver could read this template: "), "{refusal}");
    }
}

#[test]
fn an_executors_template_of_the_request_is_looked_at_too() {
    let refused = |template: Value| {
        let request = CreateSubmissionRequest { executor_pod_template: Some(template), ..request(None, &[]) };
        let refusal = build(&request).unwrap_err();
        assert_eq!(refusal.field, "executorPodTemplate");
        refusal.reason
    };
    assert_eq!(refused("kind: Deployment\nspec: {}".into()), "Its kind is \"Deployment\", and must be Pod.");
    assert_eq!(
        refused(json!({"spec": {"containers": [{"imag": "b"}]}})),
        "spec.containers[0].imag: Kubernetes knows no such field."
    );
}
