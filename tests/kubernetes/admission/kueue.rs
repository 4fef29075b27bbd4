//! What Kueue's webhook adds to a pod, for a tenant whose policy names Kueue and for one whose policy doesn't.

use serde_json::{Value, json};

use super::{
    PODS, driver, executor, judge, labels,
    world::{Change, world},
};

const QUEUED: &str = "/api/v1/namespaces/queued/pods";

/// Returns a pod as Kueue's webhook leaves it.
fn held(mut pod: Value) -> Value {
    pod["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = json!("team-a");
    pod["metadata"]["labels"]["kueue.x-k8s.io/managed"] = json!("true");
    pod["metadata"]["annotations"]["kueue.x-k8s.io/role-hash"] = json!("0123abcd");
    let finalizers = pod["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
    pod["metadata"]["finalizers"] = finalizers.into_iter().chain([json!("kueue.x-k8s.io/managed")]).collect();
    pod["spec"]["schedulingGates"] =
        json!([{ "name": "kueue.x-k8s.io/admission" }, { "name": "kueue.x-k8s.io/topology" }]);
    pod
}

fn without_managed(mut pod: Value) -> Value {
    pod["metadata"]["labels"].as_object_mut().unwrap().remove("kueue.x-k8s.io/managed");
    pod
}

fn with(mut pod: Value, pointer: &str, more: Value) -> Value {
    match pod.pointer_mut(pointer).unwrap() {
        Value::Array(list) => list.push(more),
        other => other.as_object_mut().unwrap().extend(more.as_object().unwrap().clone()),
    }
    pod
}

#[tokio::test]
async fn a_driver_is_held_by_kueue_only_where_the_policy_names_it() {
    let world = world().await;
    let create = |path: &str, pod: Value| Change::post(path.to_owned(), pod);
    let marked = |labels: Value| with(held(driver("d")), "/metadata/labels", labels);
    let cases = vec![
        ("held", create(QUEUED, held(driver("d"))), None),
        ("not held", create(QUEUED, driver("d")), None),
        ("in another tenant", create(PODS, held(driver("d"))), Some("denied request")),
        (
            "a queue of others",
            create(QUEUED, marked(json!({ "kueue.x-k8s.io/queue-name": "other" }))),
            Some("the queue of Kueue"),
        ),
        (
            "a class of the system",
            create(QUEUED, marked(json!({ "kueue.x-k8s.io/priority-class": "system-node-critical" }))),
            Some("the priority class in it"),
        ),
        (
            "a gate of others",
            create(QUEUED, with(held(driver("d")), "/spec/schedulingGates", json!({ "name": "a/b" }))),
            Some("no scheduling gates but Kueue's"),
        ),
        (
            "a finalizer of others",
            create(QUEUED, with(held(driver("d")), "/metadata/finalizers", json!("a/b"))),
            Some("no finalizers but the gateway's and Kueue's"),
        ),
        ("held without its label", create(QUEUED, without_managed(held(driver("d")))), Some("denied request")),
    ];
    judge(world, &world.gateway().await, cases).await;
}

#[tokio::test]
async fn an_executor_is_held_by_kueue_only_where_the_policy_names_it() {
    let world = world().await;
    let gateway = world.gateway().await;
    let pod = world.call(&gateway, &Change::post(QUEUED.to_owned(), driver("held-executors"))).await.unwrap();
    let caller = world.account("queued", "spark", Some(&pod)).await;
    let create = |pod: Value| Change::post(QUEUED.to_owned(), pod);
    let mut own = executor("e", &pod);
    own["metadata"]["annotations"] = json!({ "kueue.x-k8s.io/pod-suspending-parent": "spark" });
    let finalizer = with(held(own.clone()), "/metadata/finalizers", json!("a/b"));
    let cases = vec![
        ("held", create(held(own.clone())), None),
        ("a finalizer of others", create(finalizer), Some("no finalizers but Kueue's")),
        ("held without its label", create(without_managed(held(own.clone()))), Some("denied request")),
        (
            "the driver joins a queue later",
            Change::patch(format!("{QUEUED}/held-executors"), labels("kueue.x-k8s.io/queue-name", json!("team-b"))),
            None,
        ),
    ];
    judge(world, &caller, cases).await;
}
