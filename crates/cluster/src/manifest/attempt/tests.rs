use chrono::{DateTime, Utc};
use serde_json::json;
use uuid::Uuid;

use super::*;
use crate::{OwnershipLabels, is_executor_property};
use sparkgate_spark::{
    CreateSubmissionRequest, DriverObjects, NameEntropy, NamedRequest, SubmitContext, SubmitterFiles, build_driver,
};
use sparkgate_submission::Installation;

const NOW: &str = "2026-01-01T00:00:00Z";

fn entropy(seed: u8) -> NameEntropy {
    let random = |n: u8| Uuid::from_bytes([seed.wrapping_mul(37).wrapping_add(n); 16]);
    NameEntropy::from_uuids(random(1), random(2), random(3), random(4))
}

fn installation() -> Installation {
    Installation::new(Uuid::nil(), vec![7; 32])
}

fn ownership(installation: &Installation, attempt: i32) -> OwnershipLabels<'_> {
    OwnershipLabels {
        submission: "driver-20260101000000-0001".parse().unwrap(),
        attempt,
        installation,
        finalizer: true,
    }
}

/// Returns a driver with these names before it is marked.
fn driver(names: &DriverNames, ownership: &OwnershipLabels<'_>) -> DriverObjects {
    let submitted_at: DateTime<Utc> = NOW.parse().unwrap();
    let mut request = CreateSubmissionRequest {
        app_resource: "local:///opt/app.jar".to_owned(),
        main_class: "org.example.Main".to_owned(),
        app_args: vec!["attempt=1".to_owned(), "sparkgate.dev/attempt=1".to_owned()],
        ..CreateSubmissionRequest::default()
    };
    let volume = "spark.kubernetes.driver.volumes.persistentVolumeClaim.data";
    for (key, value) in [
        ("spark.app.name", "Pi"),
        ("spark.kubernetes.container.image", "spark:4.3.0"),
        ("spark.kubernetes.driver.pod.featureSteps", "org.apache.spark.deploy.k8s.features.VolcanoFeatureStep"),
        ("spark.kubernetes.scheduler.name", "volcano"),
        (&format!("{volume}.mount.path"), "/data"),
        (&format!("{volume}.options.claimName"), "OnDemand"),
        (&format!("{volume}.options.storageClass"), "fast"),
        (&format!("{volume}.options.sizeLimit"), "10Gi"),
        ("spark.eventLog.dir", "s3a://logs/{{APP_ID}}"),
    ] {
        request.spark_properties.insert(key.to_owned(), value.to_owned());
    }
    let version = "4.3.0".parse().unwrap();
    let request = NamedRequest::new(request, version).unwrap();
    let context = SubmitContext {
        version,
        names,
        submitted_at,
        user: "tester",
        submitter: &SubmitterFiles::default(),
        properties: &ownership.executor_properties(),
    };
    build_driver(&request, &context).unwrap()
}

/// Returns the text of the manifest that the service builds for an attempt with these names.
fn text(names: &DriverNames, attempt: i32) -> String {
    let installation = installation();
    let ownership = ownership(&installation, attempt);
    let mut driver = driver(names, &ownership);
    ownership.put_on(&mut driver, &names.driver_pod);
    Manifest::text_of(&driver, Some(&json!({"by": "a policy"}))).unwrap()
}

fn built(names: &DriverNames, attempt: i32) -> Manifest<Value> {
    serde_json::from_str(&text(names, attempt)).unwrap()
}

fn identity(names: &DriverNames, attempt: i32) -> String {
    installation().identity(&"driver-20260101000000-0001".parse().unwrap(), attempt, "default", &names.driver_pod)
}

fn names(seed: u8) -> DriverNames {
    DriverNames::generate("Pi", None, 1_795_235_752_539 + i64::from(seed), &entropy(seed))
}

#[test]
fn the_manifest_of_a_later_attempt_equals_one_that_is_built_for_it() {
    let (first, second, third) = (names(1), names(2), names(3));
    let manifest = built(&first, 1);
    assert!(!manifest.before.is_empty() && manifest.beside.len() >= 3, "every kind of object is there");
    let again = manifest.for_attempt(2, &first, &second, &identity(&second, 2)).unwrap();
    assert_eq!(again, built(&second, 2));
    assert_eq!(again.clone().for_attempt(3, &second, &third, &identity(&third, 3)).unwrap(), built(&third, 3));

    let text = serde_json::to_string(&again).unwrap();
    let DriverNames { app_id, resource_prefix, driver_service, config_map, local_dir, .. } = &first;
    for old in [app_id, resource_prefix, driver_service, config_map, &local_dir.to_string()] {
        assert!(!text.contains(old.as_str()), "{old}");
    }
    assert!(text.contains("\"attempt=1\"") && text.contains("\"sparkgate.dev/attempt=1\""), "arguments are the user's");
}

#[test]
fn objects_without_their_marks_are_those_that_were_judged() {
    let (names, installation) = (names(1), installation());
    let ownership = ownership(&installation, 1);
    let judged = driver(&names, &ownership).to_list().unwrap();
    let manifest: Manifest = serde_json::from_str(&text(&names, 1)).unwrap();
    assert_eq!(Value::from(manifest.unmarked().unwrap()), judged["items"]);
    assert!(ownership.executor_properties().iter().all(|(key, _)| is_executor_property(key)));
    assert!(!is_executor_property("spark.kubernetes.executor.label.sparkgate.dev/other"));
}

#[test]
fn objects_without_our_labels_make_no_later_attempt() {
    let (first, second) = (names(1), names(2));
    let without = |spoil: fn(&mut Manifest<Value>)| {
        let mut manifest = built(&first, 1);
        spoil(&mut manifest);
        manifest.for_attempt(2, &first, &second, &identity(&second, 2)).unwrap_err()
    };
    assert!(without(|manifest| manifest.pod["metadata"]["labels"] = json!({})).contains("the pod"));
    assert!(without(|manifest| drop(manifest.beside.pop())).contains("no main ConfigMap"));
    let spoil = |manifest: &mut Manifest<Value>| {
        manifest.beside.last_mut().unwrap()["data"]["spark.properties"] = "spark.app.name=Pi\n".into();
    };
    assert!(without(spoil).contains("executors"));
}
