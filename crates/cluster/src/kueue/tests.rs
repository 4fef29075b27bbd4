use std::collections::BTreeMap;

use kube::api::DynamicObject;
use serde_json::{Value, json};
use sparkgate_submission::{Installation, SubmissionId};
use uuid::Uuid;

use super::{api::ApiVersion, *};
use crate::Placement;

fn installation() -> Installation {
    Installation::new(Uuid::nil(), vec![7; 32])
}

fn id() -> SubmissionId {
    "driver-20260101000000-0001".parse().unwrap()
}

/// Returns the object that is created for a driver with up to four executors.
fn object(version: ApiVersion, priority_class: Option<(&str, i32)>) -> Value {
    let pod = |name: &str| {
        json!({"metadata": {"annotations": {"secret": "x"}}, "spec": {
            "containers": [{"name": name, "image": "spark", "env": [{"name": "TOKEN", "value": "x"}],
                "resources": {"requests": {"cpu": "1", "memory": "1408Mi"}}}],
            "nodeSelector": {"disk": "ssd"}, "volumes": [{"name": "v"}], "tolerations": null}})
    };
    let (id, driver, installation) = (id(), pod("driver"), installation());
    let executors = Some(Executors { pod: pod("executor"), count: 4, min_count: Some(1) });
    let (namespace, name, local_queue) = ("jobs", "pi-driver", "team");
    let request = WorkloadRequest {
        id: &id,
        attempt: 2,
        namespace,
        name,
        local_queue,
        priority_class,
        driver: &driver,
        executors,
    };
    request.object(version, &installation)
}

/// Returns a workload with this status, as it is read.
fn read(status: &Value, change: impl FnOnce(&mut Value)) -> Option<Workload> {
    let mut object = object(ApiVersion::V1Beta1, None);
    object["metadata"]["uid"] = "u".into();
    object["status"] = status.clone();
    change(&mut object);
    let object: DynamicObject = serde_json::from_value(object).unwrap();
    Workload::read(object, &installation()).unwrap()
}

fn state(status: &Value) -> WorkloadState {
    read(status, |_| {}).unwrap().state
}

fn condition(type_: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({"type": type_, "status": status, "reason": reason, "message": message})
}

/// Returns the reason for which a workload isn't admitted.
fn pending(reason: &str, message: &str, change: impl FnOnce(&mut Value)) -> PendingReason {
    let status = json!({"conditions": [condition("QuotaReserved", "False", reason, message)]});
    match read(&status, change).unwrap().state {
        WorkloadState::Pending { reason, message: told } => {
            assert_eq!(told, message);
            reason
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_workload_has_the_pods_without_what_may_be_secret() {
    let object = object(ApiVersion::V1Beta1, None);
    assert_eq!((&object["apiVersion"], &object["kind"]), (&json!("kueue.x-k8s.io/v1beta1"), &json!("Workload")));
    assert_eq!(object["spec"]["queueName"], "team");
    let sets = &object["spec"]["podSets"];
    assert_eq!((&sets[0]["name"], &sets[0]["count"]), (&json!("driver"), &json!(1)));
    let container = json!({"name": "driver", "resources": {"requests": {"cpu": "1", "memory": "1408Mi"}}});
    let spec = json!({"containers": [container], "nodeSelector": {"disk": "ssd"}});
    assert_eq!(sets[0]["template"], json!({"spec": spec}));
    assert_eq!((&sets[1]["name"], &sets[1]["count"], &sets[1]["minCount"]), (&json!("executor"), &json!(4), &json!(1)));
    assert!(object["spec"].get("priority").is_none());
}

#[test]
fn each_version_names_a_priority_class_in_its_way() {
    let old = object(ApiVersion::V1Beta1, Some(("urgent", 7)));
    assert_eq!((&old["spec"]["priorityClassName"], &old["spec"]["priority"]), (&json!("urgent"), &json!(7)));
    assert_eq!(old["spec"]["priorityClassSource"], "kueue.x-k8s.io/workloadpriorityclass");
    let new = object(ApiVersion::V1Beta2, Some(("urgent", 7)));
    let class = json!({"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": "urgent"});
    assert_eq!((&new["spec"]["priorityClassRef"], &new["spec"]["priority"]), (&class, &json!(7)));
    assert_eq!(new["apiVersion"], "kueue.x-k8s.io/v1beta2");
}

#[test]
fn the_identity_of_a_workload_is_that_of_its_attempt_and_of_no_pod() {
    let workload = read(&json!({}), |_| {}).unwrap();
    assert_eq!((workload.submission, workload.attempt, workload.uid.as_str()), (id(), 2, "u"));
    let identity = object(ApiVersion::V1Beta1, None)["metadata"]["annotations"]["sparkgate.dev/identity"].clone();
    assert_eq!(installation().verify(identity.as_str().unwrap(), "jobs", "pi-driver"), None);
    let forged = |key: &'static str, value: Value| read(&json!({}), |object| object["metadata"][key] = value);
    assert_eq!(forged("name", json!("other-driver")), None);
    assert_eq!(forged("annotations", json!({})), None);
    let of_pod = installation().identity(&id(), 2, "jobs", "pi-driver");
    assert_eq!(forged("annotations", json!({ "sparkgate.dev/identity": of_pod })), None);
}

#[test]
fn an_admitted_workload_has_flavors_counts_and_changes_of_checks() {
    let sets = json!([{"name": "driver", "flavors": {"cpu": "spot", "memory": "spot"}, "count": 1},
        {"name": "executor", "flavors": {"cpu": "gpu", "memory": "spot"}, "count": 3}]);
    let update = json!({"name": "executor", "labels": {"a": "b"}, "nodeSelector": {"zone": "x"}});
    let status = json!({
        "conditions": [condition("QuotaReserved", "True", "QuotaReserved", ""), condition("Admitted", "True", "Admitted", ""),
            condition("PodsReady", "True", "Started", "")],
        "admission": {"clusterQueue": "all", "podSetAssignments": sets},
        "admissionChecks": [{"name": "nodes", "state": "Ready", "message": "", "podSetUpdates": [update]}]});
    let workload = read(&status, |_| {}).unwrap();
    assert!(workload.is_ready);
    let WorkloadState::Admitted(admission) = workload.state else { panic!("{:?}", workload.state) };
    assert_eq!((admission.executors(), admission.cluster_queue.as_str()), (Some(3), "all"));
    assert_eq!(admission.flavors(), ["gpu", "spot"].into());

    let labels = |key: &str, value: &str| BTreeMap::from([(key.to_owned(), value.to_owned())]);
    let flavor = |node_labels| Flavor { node_labels, tolerations: Vec::new() };
    let flavors =
        |gpu| BTreeMap::from([("spot".to_owned(), flavor(labels("pool", "spot"))), ("gpu".to_owned(), flavor(gpu))]);
    let overlay = placements(&admission, &flavors(labels("card", "gpu"))).unwrap();
    assert_eq!(overlay.driver, Placement { node_selector: labels("pool", "spot"), ..Placement::default() });
    let selector =
        [("card", "gpu"), ("pool", "spot"), ("zone", "x")].map(|(key, value)| (key.to_owned(), value.to_owned()));
    assert_eq!(overlay.executor.node_selector, selector.into());
    assert_eq!(overlay.executor.labels, labels("a", "b"));

    let contradiction = placements(&admission, &flavors(labels("pool", "gpu"))).unwrap_err();
    assert_eq!(contradiction.to_string(), "the executor's node selector pool is gpu, and would have to be spot");
    let missing = placements(&admission, &BTreeMap::new()).unwrap_err();
    assert_eq!(missing.to_string(), "the ResourceFlavor spot doesn't exist");
}

#[test]
fn a_workload_that_kueue_has_not_judged_is_unseen() {
    let expected = WorkloadState::Pending { reason: PendingReason::Unseen, message: String::new() };
    assert_eq!(state(&json!({})), expected);
}

#[test]
fn a_reservation_without_its_checks_is_no_admission() {
    let check = json!({"name": "nodes", "state": "Pending", "message": "asking for nodes"});
    let status = json!({"conditions": [condition("QuotaReserved", "True", "QuotaReserved", "")], "admissionChecks": [check],
        "admission": {"clusterQueue": "all", "podSetAssignments": []}});
    let message = "quota is reserved; admission checks: nodes (Pending) asking for nodes".to_owned();
    assert_eq!(state(&status), WorkloadState::Pending { reason: PendingReason::AdmissionChecks, message });
}

#[test]
fn the_words_of_later_releases_are_taken_as_they_are() {
    for reason in [
        PendingReason::WaitingForQuota,
        PendingReason::ExceedsMaxQuota,
        PendingReason::NoMatchingFlavor,
        PendingReason::WaitingForPreemptedWorkloads,
        PendingReason::Misconfigured,
        PendingReason::Suspended,
        PendingReason::WaitingForPodsReady,
    ] {
        assert_eq!(pending(reason.as_str(), "any", |_| {}), reason);
    }
    assert_eq!(pending("Unheard", "of", |_| {}), PendingReason::Other);
}

#[test]
fn the_sentences_of_0_14_are_understood() {
    const SET: &str = "couldn't assign flavors to pod set";
    let unused = "insufficient unused quota for cpu in flavor default, 2 more needed";
    let beyond = "insufficient quota for cpu in flavor spot, request > maximum capacity (9 > 4)";
    let affinity = "flavor gpu doesn't match node affinity";
    for (reason, message, expected) in [
        ("Inadmissible", "LocalQueue a doesn't exist".to_owned(), PendingReason::Misconfigured),
        ("Inadmissible", "LocalQueue a is inactive".to_owned(), PendingReason::Suspended),
        ("Inadmissible", "ClusterQueue a is stopped".to_owned(), PendingReason::Suspended),
        ("Inadmissible", "ClusterQueue a is terminating or missing".to_owned(), PendingReason::Misconfigured),
        ("Pending", "ClusterQueue a is inactive".to_owned(), PendingReason::Suspended),
        ("Pending", "Workload namespace doesn't match ClusterQueue selector".to_owned(), PendingReason::Misconfigured),
        ("Pending", format!("{SET} driver: {unused}"), PendingReason::WaitingForQuota),
        ("Pending", format!("{SET} driver: {beyond}"), PendingReason::ExceedsMaxQuota),
        ("Pending", format!("{SET} driver: {affinity}"), PendingReason::NoMatchingFlavor),
        ("Pending", format!("{SET} driver: {affinity}, {beyond}"), PendingReason::ExceedsMaxQuota),
        ("Pending", format!("{SET} driver: {beyond}, {unused}"), PendingReason::WaitingForQuota),
        ("Pending", format!("{SET} driver: {unused}; {SET} executor: {beyond}"), PendingReason::WaitingForQuota),
        (
            "Pending",
            format!("{SET} driver: resource nvidia.com/gpu unavailable in ClusterQueue"),
            PendingReason::Misconfigured,
        ),
        (
            "Pending",
            format!("{SET} driver: {unused}. Pending the preemption of 2 workload(s)"),
            PendingReason::WaitingForPreemptedWorkloads,
        ),
    ] {
        assert_eq!(pending(reason, &message, |_| {}), expected, "{message}");
    }
}

/// Kueue names the request of all executors, and would admit fewer.
#[test]
fn executors_exceed_the_quota_only_if_their_minimum_does() {
    let excess = |request: &str| {
        format!(
            "couldn't assign flavors to pod set executor: insufficient quota for cpu in flavor default, request > maximum capacity ({request} > 2)"
        )
    };
    // Four executors of one core each, one of which is enough.
    let computed = |cores: &'static str| {
        move |object: &mut Value| {
            object["status"]["resourceRequests"] = json!([{"name": "executor", "resources": {"cpu": cores}}]);
        }
    };
    assert_eq!(pending("Pending", &excess("5"), computed("4")), PendingReason::WaitingForQuota);
    assert_eq!(pending("Pending", &excess("5500m"), computed("4")), PendingReason::ExceedsMaxQuota);
    assert_eq!(pending("Pending", &excess("5500m"), |_| {}), PendingReason::WaitingForQuota, "the amounts are unknown");
    let all = |object: &mut Value| drop(object["spec"]["podSets"][1].as_object_mut().unwrap().remove("minCount"));
    assert_eq!(pending("Pending", &excess("5"), all), PendingReason::ExceedsMaxQuota, "Kueue has no partial admission");
}

#[test]
fn an_eviction_comes_before_the_admission_that_it_ends() {
    let admitted = condition("Admitted", "True", "Admitted", "");
    let evicted = |reason: &str| {
        json!({"conditions": [admitted.clone(), condition("Evicted", "True", reason, "why")],
            "admission": {"clusterQueue": "all", "podSetAssignments": []},
            "requeueState": {"count": 1, "requeueAt": "2026-01-01T00:01:00Z"}})
    };
    let requeue_at = Some("2026-01-01T00:01:00Z".parse().unwrap());
    for (word, reason) in [
        ("Preempted", EvictionReason::Preempted),
        ("PodsReadyTimeout", EvictionReason::PodsReadyTimeout),
        ("AdmissionCheck", EvictionReason::AdmissionCheck),
        ("ClusterQueueStopped", EvictionReason::ClusterQueueStopped),
        ("LocalQueueStopped", EvictionReason::LocalQueueStopped),
        ("NodeFailures", EvictionReason::NodeFailures),
        ("Unheard", EvictionReason::Other("Unheard".to_owned())),
    ] {
        assert_eq!(reason.as_str(), word);
        assert_eq!(state(&evicted(word)), WorkloadState::Evicted { reason, message: "why".to_owned(), requeue_at });
    }
    let deactivated = read(&evicted("Deactivated"), |object| object["spec"]["active"] = false.into()).unwrap();
    assert_eq!(deactivated.state, WorkloadState::Deactivated { message: "why".to_owned() });
    let finished = json!({"conditions": [admitted, condition("Finished", "True", "Succeeded", "done")]});
    assert_eq!(state(&finished), WorkloadState::Finished { message: "done".to_owned() });
    // A workload that was requeued keeps the condition.
    let again = json!({"conditions": [condition("Evicted", "False", "QuotaReserved", ""), condition("QuotaReserved", "False", "Pending", "")]});
    assert!(matches!(state(&again), WorkloadState::Pending { reason: PendingReason::Other, .. }));
}
