//! Tests of what recordings of spark-submit can't show: our own refusals and extensions, and releases without recordings.

use chrono::DateTime;
use k8s_openapi::api::core::v1::Container;
use uuid::Uuid;

use super::*;
use crate::{CreateSubmissionRequest, DriverNames, NameEntropy, Object, SparkVersion, SubmitterFiles};

mod steps;

const IMAGE: (&str, &str) = ("spark.kubernetes.container.image", "spark:test");

fn request(properties: &[(&str, &str)]) -> CreateSubmissionRequest {
    let properties =
        [&IMAGE].into_iter().chain(properties).map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    CreateSubmissionRequest {
        app_resource: "local:///app.jar".to_owned(),
        main_class: "org.example.Main".to_owned(),
        spark_properties: properties.collect(),
        ..Default::default()
    }
}

fn build(request: &CreateSubmissionRequest, version: SparkVersion) -> Result<DriverObjects, Refusal> {
    build_with(request, version, &SubmitterFiles::default())
}

fn build_with(
    request: &CreateSubmissionRequest,
    version: SparkVersion,
    submitter: &SubmitterFiles,
) -> Result<DriverObjects, Refusal> {
    let id = Uuid::nil();
    let request = NamedRequest::new(request.clone(), version)?;
    let names = &DriverNames::for_request(&request, 0, &NameEntropy::from_uuids(id, id, id, id));
    let submitted_at = DateTime::from_timestamp_millis(0).unwrap();
    build_driver(&request, &SubmitContext { version, names, submitted_at, user: "gateway", submitter, properties: &[] })
}

fn refusal(properties: &[(&str, &str)]) -> Refusal {
    build(&request(properties), SparkVersion::V4_3).unwrap_err()
}

fn container(driver: &DriverObjects) -> &Container {
    &driver.pod.spec.as_ref().unwrap().containers[0]
}

fn properties_file(driver: &DriverObjects) -> &str {
    match driver.resources.last() {
        Some(Object::ConfigMap(map)) => &map.data.as_ref().unwrap()["spark.properties"],
        other => panic!("the main ConfigMap comes last, not {other:?}"),
    }
}

#[test]
fn properties_for_the_driver_process_pass_through() {
    let passing = [
        ("spark.kubernetes.executor.volumes.emptyDir.v.mount.path", "/v"),
        ("spark.kubernetes.executor.secrets.s", "/s"),
        ("spark.kubernetes.executor.pod.featureSteps", "org.example.Step"),
        ("spark.kerberos.renewal.credentials", "keytab"),
    ];
    let driver = build(&request(&passing), SparkVersion::V4_3).unwrap();
    for (key, value) in passing {
        assert!(properties_file(&driver).contains(&format!("\n{key}={value}\n")), "{key}");
    }
}

#[test]
fn files_of_the_client_are_refused_with_an_alternative() {
    let sentence = "Please specify spark.kubernetes.file.upload.path property.";
    for value in ["/a.txt", "a.txt", "file:///a.txt", "local:///ok,file:/a"] {
        let refusal = refusal(&[("spark.files", value)]);
        assert!(refusal.reason.starts_with(sentence) && refusal.reason.contains("local://"), "{refusal}");
    }
    let with_path = refusal(&[("spark.files", "/a.txt"), ("spark.kubernetes.file.upload.path", "s3a://b")]);
    assert!(with_path.reason.starts_with("Nothing here can upload `/a.txt`"), "{with_path}");
}

#[test]
fn a_jar_that_the_client_listed_already_is_not_listed_twice() {
    let driver = build(&request(&[("spark.jars", "local:///app.jar,local:///b.jar")]), SparkVersion::V4_3).unwrap();
    assert!(properties_file(&driver).contains("\nspark.jars=local\\:///app.jar,local\\:///b.jar\n"));
}

#[test]
fn every_object_carries_the_namespace() {
    let request =
        request(&[("spark.kubernetes.namespace", "jobs"), ("spark.kubernetes.authenticate.driver.oauthToken", "t")]);
    let driver = build(&request, SparkVersion::V4_3).unwrap();
    assert_eq!(driver.namespace, "jobs");
    assert_eq!(driver.pod.metadata.namespace.as_deref(), Some("jobs"));
    let namespaces = driver.resources.iter().map(|object| match object {
        Object::Service(service) => service.metadata.namespace.as_deref(),
        Object::NetworkPolicy(policy) => policy.metadata.namespace.as_deref(),
        Object::Secret(secret) => secret.metadata.namespace.as_deref(),
        Object::ConfigMap(map) => map.metadata.namespace.as_deref(),
        Object::PersistentVolumeClaim(claim) => claim.metadata.namespace.as_deref(),
        Object::PodGroup(group) => group.metadata.namespace.as_deref(),
    });
    assert_eq!(namespaces.collect::<Vec<_>>(), [Some("jobs"); 4]);
}

#[test]
fn releases_between_the_recorded_ones_differ_where_spark_changed() {
    let request = CreateSubmissionRequest {
        proxy_user: Some("alice".to_owned()),
        environment_variables: [("SPARK_USER".to_owned(), "carol".to_owned())].into(),
        ..request(&[
            ("spark.kubernetes.driver.label.id", "{{APP_ID}}"),
            ("spark.kubernetes.container.image", "s:{{SPARK_VERSION}}"),
        ])
    };
    let seen = [SparkVersion::V4_0, SparkVersion::V4_2].map(|version| {
        let driver = build(&request, version).unwrap();
        let container = container(&driver);
        let user = container.env.as_ref().unwrap()[0].value.clone().unwrap();
        let label = driver.pod.metadata.labels.as_ref().unwrap()["id"].starts_with("spark-");
        let ports = container.ports.as_ref().unwrap().len();
        let policy = driver.resources.iter().any(|object| matches!(object, Object::NetworkPolicy(_)));
        (container.image.clone().unwrap(), user, label, ports, policy, container.security_context.is_some())
    });
    assert_eq!(seen[0], ("s:{{SPARK_VERSION}}".to_owned(), "carol".to_owned(), true, 3, false, false));
    assert_eq!(seen[1], ("s:4.2.0".to_owned(), "carol".to_owned(), true, 4, true, false));
}

#[test]
fn a_nul_character_is_refused_with_its_field() {
    let cases = [
        ("appArgs[1]", CreateSubmissionRequest { app_args: vec!["a".into(), "b\0".into()], ..request(&[]) }),
        ("sparkProperties[\"spark.x\"]", request(&[("spark.x", "\0")])),
    ];
    for (field, request) in cases {
        assert_eq!(build(&request, SparkVersion::V4_3).unwrap_err().field, field);
    }
}
