//! Feature steps where the gateway differs from spark-submit on purpose, or where Spark's answer can't be compared.

use k8s_openapi::ByteString;
use serde_json::json;

use super::*;
use crate::PodGroup;

const PACKAGE: &str = "org.apache.spark.deploy.k8s.features";
const USER_STEPS: &str = "spark.kubernetes.driver.pod.featureSteps";
const GROUP_JSON: &str = "spark.kubernetes.scheduler.volcano.podGroupTemplateJson";

/// Returns the refused property and the reason.
fn refused(properties: &[(&str, &str)], version: SparkVersion) -> (String, String) {
    let refusal = build(&request(properties), version).unwrap_err();
    let key = refusal.field.trim_start_matches("sparkProperties[\"").trim_end_matches("\"]");
    (key.to_owned(), refusal.reason)
}

fn pod_group(template: &str) -> Result<PodGroup, Refusal> {
    let step = format!("{PACKAGE}.VolcanoFeatureStep");
    let driver = build(&request(&[(USER_STEPS, &step), (GROUP_JSON, template)]), SparkVersion::V4_3)?;
    match &driver.pre_resources[..] {
        [Object::PodGroup(group)] => Ok(group.clone()),
        other => panic!("one PodGroup comes before the pod, not {other:?}"),
    }
}

#[test]
fn only_files_of_the_operator_can_be_named() {
    let key = "spark.kubernetes.authenticate.driver.caCertFile";
    let named = [("ca.crt".to_owned(), ByteString(b"CA".to_vec()))].into();
    let files = SubmitterFiles { named, ..SubmitterFiles::default() };
    let with = |value: &str| build_with(&request(&[(key, value)]), SparkVersion::V4_3, &files);
    assert!(with("ca.crt").is_ok());
    for value in ["/etc/passwd", "./ca.crt", "files/ca.crt", "file:///ca.crt", "Ca.crt", ""] {
        let refusal = with(value).unwrap_err();
        let sentence = format!("Driver CA cert file provided at {value} does not exist or is not a file.");
        assert!(refusal.reason.starts_with(&sentence), "{refusal}");
        assert!(refusal.reason.contains("never opens a path from a request"), "{refusal}");
        assert!(refusal.reason.contains("spark.kubernetes.authenticate.driver.mounted.caCertFile"), "{refusal}");
    }
}

#[test]
fn each_on_demand_claim_has_its_own_name() {
    let key =
        |name: &str, option: &str| format!("spark.kubernetes.driver.volumes.persistentVolumeClaim.{name}.{option}");
    let properties: Vec<(String, String)> = ["a", "b"]
        .iter()
        .flat_map(|name| {
            let options = [("options.claimName", "OnDemand"), ("options.storageClass", "fast")];
            let options = options.into_iter().chain([("options.sizeLimit", "1Gi"), ("mount.path", "/mnt/")]);
            options.map(move |(option, value)| {
                let place = if option == "mount.path" { *name } else { "" };
                (key(name, option), format!("{value}{place}"))
            })
        })
        .collect();
    let properties: Vec<(&str, &str)> = properties.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    let driver = build(&request(&properties), SparkVersion::V4_3).unwrap();
    let mounted: Vec<&str> = driver.pod.spec.as_ref().unwrap().volumes.as_ref().unwrap()[..2]
        .iter()
        .map(|volume| volume.persistent_volume_claim.as_ref().unwrap().claim_name.as_str())
        .collect();
    let made: Vec<&str> = driver
        .resources
        .iter()
        .filter_map(|object| match object {
            Object::PersistentVolumeClaim(claim) => claim.metadata.name.as_deref(),
            _ => None,
        })
        .collect();
    assert_eq!(made, mounted);
    assert!(made[0].ends_with("-driver-pvc-0") && made[1].ends_with("-driver-pvc-1"), "{made:?}");
}

#[test]
fn an_invalid_volume_is_refused_with_its_key() {
    let driver = "spark.kubernetes.driver.volumes.hostPath.h.mount.path";
    let executor = "spark.kubernetes.executor.volumes.emptyDir.e.options.sizeLimit";
    let (key, reason) = refused(&[(driver, "/v")], SparkVersion::V4_3);
    assert_eq!(key, "spark.kubernetes.driver.volumes.hostPath.h.options.path");
    assert_eq!(reason, "hostPath.h.options.path is required for hostPath");
    let place = ("spark.kubernetes.executor.volumes.emptyDir.e.mount.path", "/v");
    assert_eq!(refused(&[place, (executor, "12")], SparkVersion::V4_0).0, executor);
}

#[test]
fn properties_of_an_excluded_step_are_not_checked() {
    let cases = [
        ("spark.kubernetes.driver.secretKeyRef.A", "no-colon", "EnvSecretsFeatureStep"),
        ("spark.kubernetes.driver.volumes.nfs.n.mount.path", "/n", "MountVolumesFeatureStep"),
    ];
    for (key, value, step) in cases {
        let excluded = format!("{PACKAGE}.{step}");
        let properties = [(key, value), ("spark.kubernetes.driver.pod.excludedFeatureSteps", excluded.as_str())];
        assert!(build(&request(&properties), SparkVersion::V4_1).is_ok(), "{step}");
        // 4.0 doesn't know exclusions.
        assert!(build(&request(&properties), SparkVersion::V4_0).is_err(), "{step}");
    }
}

#[test]
fn a_step_that_needs_a_jvm_is_refused_with_the_reason() {
    let volcano = format!("{PACKAGE}.VolcanoFeatureStep");
    let cases = [
        ("org.example.Step", SparkVersion::V4_3, "code for a JVM"),
        (volcano.as_str(), SparkVersion::V4_1, "it was added in 4.2"),
        ("org.apache.spark.deploy.k8s.features.LocalDirsFeatureStep", SparkVersion::V4_3, "always there"),
    ];
    for (class, version, words) in cases {
        let (key, reason) = refused(&[(USER_STEPS, class)], version);
        assert_eq!(key, USER_STEPS);
        assert!(reason.contains(class) && reason.contains(words), "{reason}");
    }
}

#[test]
fn a_pod_group_keeps_the_fields_of_its_template() {
    let group = pod_group(
        r#"{"kind": "PodGroup", "metadata": {"name": "ignored", "labels": {"n": 1}}, "status": {"phase": "Running"},
            "spec": {"minMember": "2", "minResources": {"cpu": 1}, "queue": "q", "networkTopology": {"mode": "hard"}}}"#,
    )
    .unwrap();
    let written = serde_json::to_value(&group).unwrap();
    assert_eq!(
        written,
        json!({
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "PodGroup",
            "metadata": {
                "name": format!("spark-{}-podgroup", Uuid::nil().simple()), "namespace": "default", "labels": {"n": "1"},
            },
            "spec": {
                "minMember": 2, "minResources": {"cpu": "1"}, "queue": "q", "networkTopology": {"mode": "hard"},
            },
        })
    );
}

#[test]
fn a_pod_group_template_of_another_kind_is_refused() {
    let cases = [
        (r#"{"kind": "Pod"}"#, "kind: only PodGroup"),
        (r#"{"apiVersion": "v1"}"#, "apiVersion: only scheduling.volcano.sh/v1beta1"),
        (r#"{"specs": {}}"#, "specs: a PodGroup has no such field"),
        (r#"{"spec": {"minMember": "few"}}"#, "spec.minMember: "),
        (r#"{"metadata": {"labels": "a"}}"#, "metadata.labels: "),
        ("spec: [a, b]", "spec: expected a map"),
        ("{", "The template of the PodGroup can't be read"),
        ("", "a map with a `spec`"),
    ];
    for (template, words) in cases {
        let refusal = pod_group(template).unwrap_err();
        assert_eq!(refusal.field, format!("sparkProperties[\"{GROUP_JSON}\"]"));
        assert!(refusal.reason.contains(words), "{refusal}");
    }
}

#[test]
fn a_step_that_is_named_twice_creates_one_pod_group() {
    let step = format!("{PACKAGE}.VolcanoFeatureStep");
    let twice = format!("{step},{step}");
    let driver = build(&request(&[(USER_STEPS, &twice)]), SparkVersion::V4_3).unwrap();
    assert_eq!(driver.pre_resources.len(), 1);
}

#[test]
fn the_number_of_local_directories_is_limited() {
    let (key, _) = refused(&[("spark.local.dir", &"a,".repeat(10_001))], SparkVersion::V4_3);
    assert_eq!(key, "spark.local.dir");
    let mut request = request(&[]);
    request.environment_variables.insert("SPARK_LOCAL_DIRS".to_owned(), "a,".repeat(10_001));
    let refusal = build(&request, SparkVersion::V4_3).unwrap_err();
    assert_eq!(refusal.field, "environmentVariables[\"SPARK_LOCAL_DIRS\"]");
}
