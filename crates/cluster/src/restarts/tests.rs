use serde_json::{Value, json};

use super::*;
use crate::observe::observation;

/// Each way in which a pod can have its driver started again, and the field that is named. The driver is the first container.
fn ways() -> Vec<(Value, &'static str)> {
    let with = |driver: Value, other: Value, init: Value| {
        let named = |name: &str, fields: Value| {
            let mut container = json!({"name": name});
            container.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
            container
        };
        json!({"restartPolicy": "Never", "containers": [named("d", driver), named("other", other)],
            "initContainers": [named("init", init)]})
    };
    let none = || json!({});
    let rule = |action: &str| json!([{"action": action, "exitCodes": {"operator": "In", "values": [42]}}]);
    vec![
        (with(json!({"restartPolicy": "OnFailure"}), none(), none()), "spec.containers[0].restartPolicy: OnFailure"),
        (with(json!({"restartPolicy": "Always"}), none(), none()), "spec.containers[0].restartPolicy: Always"),
        (
            with(json!({"restartPolicy": "Never", "restartPolicyRules": rule("Restart")}), none(), none()),
            "spec.containers[0].restartPolicyRules",
        ),
        (
            with(none(), json!({"restartPolicy": "Never", "restartPolicyRules": rule(ALL_CONTAINERS)}), none()),
            "spec.containers[1].restartPolicyRules with RestartAllContainers",
        ),
        (
            with(none(), none(), json!({"restartPolicy": "Never", "restartPolicyRules": rule(ALL_CONTAINERS)})),
            "spec.initContainers[0].restartPolicyRules with RestartAllContainers",
        ),
        (
            json!({"restartPolicy": "OnFailure", "containers": [{"name": "d"}, {"name": "other"}]}),
            "spec.restartPolicy: OnFailure",
        ),
    ]
}

fn pod(spec: &Value, status: &Value) -> Value {
    let labels =
        json!({labels::ROLE: "driver", labels::SUBMISSION_ID: "driver-20260101000000-0001", labels::ATTEMPT: "1"});
    json!({"metadata": {"uid": "u", "labels": labels, "annotations": {labels::DRIVER_CONTAINER: "d"}}, "spec": spec,
        "status": status})
}

fn shown(pod: Value) -> sparkgate_submission::PodObservation {
    observation(&serde_json::from_value(pod).unwrap(), false, None).unwrap()
}

#[test]
fn every_field_by_which_a_driver_is_started_again_is_found_and_removed() {
    for (spec, field) in ways() {
        let pod = pod(&spec, &json!({}));
        assert_eq!(shown(pod.clone()).restarted_by.as_deref(), Some(field));

        let mut typed: PodSpec = serde_json::from_value(spec).unwrap();
        never_restart(&mut typed, "d");
        let clean = serde_json::to_value(typed).unwrap();
        assert_eq!(shown(super::tests::pod(&clean, &json!({}))).restarted_by, None, "{field}");
        // A policy of the pod itself was never stored as another one.
        if field.contains("containers") || field.contains("initContainers") {
            let text = without_restarts(&pod.to_string()).unwrap().expect("it is changed");
            assert_eq!(shown(serde_json::from_str(&text).unwrap()).restarted_by, None, "{field}");
        }
    }
}

#[test]
fn restarts_of_other_containers_are_kept() {
    let spec = json!({"restartPolicy": "Never", "containers": [{"name": "d"}, {"name": "logger", "restartPolicy": "Always"}],
        "initContainers": [{"name": "proxy", "restartPolicy": "Always"}]});
    assert_eq!(shown(pod(&spec, &json!({}))).restarted_by, None);
    let mut typed: PodSpec = serde_json::from_value(spec.clone()).unwrap();
    never_restart(&mut typed, "d");
    assert_eq!(serde_json::to_value(typed).unwrap(), spec);
    let plain = pod(&json!({"restartPolicy": "Never", "containers": [{"name": "d"}]}), &json!({}));
    assert_eq!(without_restarts(&plain.to_string()).unwrap(), None, "it isn't written again");
}

#[test]
fn a_driver_that_was_started_again_is_shown_with_its_first_end() {
    let spec = json!({"restartPolicy": "Never", "containers": [{"name": "d"}]});
    let first = json!({"terminated": {"exitCode": 3, "reason": "Error", "finishedAt": "2026-01-01T00:00:05Z"}});
    let seen = |state: &Value, last: &Value, count: i32| {
        let status = json!({"phase": "Running", "containerStatuses": [{"name": "d", "image": "", "imageID": "", "ready": true,
            "restartCount": count, "state": state, "lastState": last}]});
        let seen = shown(pod(&spec, &status));
        (seen.rerun, seen.may_run_again(), seen.container)
    };
    let running = json!({"running": {}});
    let (rerun, again, container) = seen(&running, &first, 1);
    assert_eq!((rerun, again), (Some(Rerun::Live), true));
    assert!(matches!(container, Container::Terminated { exit_code: 3, .. }), "{container:?}");

    let second = json!({"terminated": {"exitCode": 0, "reason": "Completed"}});
    let (rerun, again, container) = seen(&second, &first, 1);
    assert_eq!((rerun, again), (Some(Rerun::Over), false), "the kubelet starts it no third time");
    assert!(matches!(container, Container::Terminated { exit_code: 3, .. }), "{container:?}");

    let (rerun, _, container) = seen(&running, &json!({}), 1);
    assert_eq!(rerun, Some(Rerun::Live));
    assert!(matches!(&container, Container::Terminated { reason: Some(why), .. } if why == LOST), "{container:?}");

    let never_started = json!({"waiting": {"reason": "ContainerCreating"}});
    assert_eq!(seen(&running, &never_started, 1), (None, false, Container::Running { started_at: None }));
    assert_eq!(seen(&running, &json!({}), 0).0, None);
}
