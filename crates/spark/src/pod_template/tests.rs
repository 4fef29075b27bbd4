//! Tests of what the comparison with spark-submit can't show: our own refusals, limits, and templates inside the request.

use chrono::DateTime;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::PodSpec;
use serde_json::json;
use uuid::Uuid;

use super::*;
use crate::{
    CreateSubmissionRequest, DriverNames, DriverObjects, NameEntropy, NamedRequest, Object, SparkVersion,
    SubmitContext, SubmitterFiles, build_driver,
};

const EXECUTOR_KEY: &str = "spark.kubernetes.executor.podTemplateFile";
const CONTAINER_D: (&str, &str) = ("spark.kubernetes.driver.podTemplateContainerName", "d");

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
    let request = NamedRequest::new(request.clone(), SparkVersion::V4_3)?;
    let names = DriverNames::for_request(&request, 0, &NameEntropy::from_uuids(id, id, id, id));
    let file = b"spec:\n  nodeName: from-a-file\n  containers:\n  - name: main\n".to_vec();
    let submitter = &SubmitterFiles { named: [("gpu.yaml".to_owned(), ByteString(file))].into(), ..Default::default() };
    let submitted_at = DateTime::from_timestamp_millis(0).unwrap();
    let (version, names) = (SparkVersion::V4_3, &names);
    build_driver(&request, &SubmitContext { version, names, submitted_at, user: "u", submitter, properties: &[] })
}

fn spec(request: &CreateSubmissionRequest) -> PodSpec {
    build(request).unwrap().pod.spec.unwrap()
}

/// Returns the reason for which a template is refused, after Spark's message.
fn reason(template: impl Into<Value>) -> String {
    let refusal = build(&request(Some(template.into()), &[])).unwrap_err();
    assert_eq!(refusal.field, FIELD);
    refusal.reason.strip_prefix("Could not load pod from template file. ").unwrap().to_owned()
}

#[test]
fn a_refusal_of_a_template_names_the_field_and_the_reason() {
    assert_eq!(
        reason("spec: {containers: [{name: a, imag: b}]}"),
        "spec.containers[0].imag: Kubernetes knows no such field."
    );
    assert_eq!(reason("colour: red\nspec: {containers: [{}]}"), "colour: Kubernetes knows no such field.");
    assert_eq!(
        reason(json!({"spec": {"containers": [{"ports": [{"containerPort": "http"}]}]}})),
        "spec.containers[0].ports[0].containerPort: expected a 32-bit integer, not `http`."
    );
    assert_eq!(
        reason("spec: {hostNetwork: yes, containers: [{}]}"),
        "spec.hostNetwork: expected true or false, not `yes`."
    );
    assert_eq!(
        reason("spec: {tolerations: {key: a}, containers: [{}]}"),
        "spec.tolerations: expected a list, not a map."
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
    assert!(reason(lines.as_str()).contains("the maximum is 1048576"));
    assert!(
        reason(json!({"spec": {"containers": [{"args": ["x".repeat(1 << 20)]}]}})).contains("the maximum is 1048576")
    );
    let mut executor = request(None, &[]);
    executor.executor_pod_template = Some(lines.into());
    assert!(build(&executor).unwrap_err().reason.contains("the maximum is 1048576"));
}

#[test]
fn the_number_of_empty_list_entries_is_limited() {
    let volumes = |count| json!({"spec": {"containers": [{}], "volumes": vec![json!({}); count]}});
    assert_eq!(reason(volumes(8000)), "spec.volumes: 8000 entries are too many; the maximum is 1000.");
    assert_eq!(spec(&request(Some(volumes(1000)), &[])).volumes.unwrap().len(), 1002, "and those of the steps");
}

#[test]
fn an_inline_template_wins_over_a_named_one_and_its_property_is_removed() {
    let named = [(KEY, "gpu.yaml")];
    assert_eq!(spec(&request(None, &named)).node_name.as_deref(), Some("from-a-file"));
    let inline = request(Some(json!({"spec": {"nodeName": "inline", "containers": [{"name": "main"}]}})), &named);
    assert_eq!(spec(&inline).node_name.as_deref(), Some("inline"));
    let Some(Object::ConfigMap(map)) = build(&inline).unwrap().resources.pop() else { panic!("no ConfigMap") };
    assert!(!map.data.unwrap()["spark.properties"].contains("driver.podTemplateFile"));
}

#[test]
fn a_path_from_a_request_is_never_opened() {
    for (key, field) in [(KEY, FIELD), (EXECUTOR_KEY, "executorPodTemplate")] {
        for path in ["/etc/passwd", "../gpu.yaml", "file:///etc/passwd", "s3a://b/gpu.yaml", "gpu.yml", ""] {
            let refusal = build(&request(None, &[(key, path)])).unwrap_err();
            assert_eq!(refusal.field, Refusal::property_field(key));
            assert!(refusal.reason.contains("bare name") && refusal.reason.contains(field), "{refusal}");
        }
    }
}

#[test]
fn an_executor_template_is_shipped_unchanged() {
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
fn an_inline_executor_template_is_validated() {
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

#[test]
fn a_template_that_would_restart_the_driver_is_refused() {
    let template = json!({"spec": {"containers": [{"name": "a"}, {"name": "d", "restartPolicy": "OnFailure"}]}});
    let refusal = build(&request(Some(template.clone()), &[CONTAINER_D])).unwrap_err();
    assert_eq!(refusal.field, "driverPodTemplate");
    assert!(refusal.reason.contains("spec.containers[1].restartPolicy: a driver runs once"), "{}", refusal.reason);
    assert!(build(&request(Some(template), &[])).is_ok(), "the container is not the driver's");
}

#[test]
fn a_list_or_map_beyond_what_kubernetes_runs_is_refused_with_its_bound() {
    let names = |count: usize| (0..count).map(|at| json!({"name": format!("n{at}")})).collect::<Vec<_>>();
    let labels = |count: usize| (0..count).map(|at| (format!("l{at}"), json!("x"))).collect::<serde_json::Map<_, _>>();
    for (template, bound) in [
        (json!({"spec": {"containers": names(101)}}), "spec.containers: 101 entries are too many; the maximum is 100"),
        (
            json!({"spec": {"containers": [{"env": names(1001)}]}}),
            "env: 1001 entries are too many; the maximum is 1000",
        ),
        (
            json!({"metadata": {"labels": labels(1001)}, "spec": {"containers": [{}]}}),
            "metadata.labels: 1001 entries are too many; the maximum is 1000",
        ),
    ] {
        let reason = reason(template);
        assert!(reason.contains(bound), "{reason}");
    }
}
