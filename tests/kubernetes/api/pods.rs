//! Pods and the node that runs them.

use http::Method;
use serde_json::json;

use crate::api::world::{Watch, World};

pub(crate) async fn binds_once(world: &World) {
    world.pod("p").await;
    let status = world.bind("p", "node-1").await.expect(201);
    assert_eq!((&status["kind"], &status["status"]), (&json!("Status"), &json!("Success")));
    let pod = world.get(&world.path("pods/p")).await.expect(200);
    assert_eq!(pod["spec"]["nodeName"], "node-1");
    assert_eq!(pod["status"]["conditions"][0]["type"], "PodScheduled");
    world.bind("p", "node-2").await.refused(409, "Conflict", "pod p is already assigned to node \"node-1\"");
    world.bind("none", "node-1").await.refused(404, "NotFound", "\"none\" not found");
    let other = json!({ "metadata": { "name": "q" }, "target": { "name": "node-1" } });
    let other = world.post(&world.path("pods/p/binding"), other).await;
    other.refused(400, "BadRequest", "name in URL does not match name in Binding object");
}

pub(crate) async fn waits_for_the_kubelet(world: &World) {
    let path = world.path("pods/p");
    world.pod("p").await;
    world.bind("p", "node-1").await.expect(201);
    let ending = world.delete(&path, json!({ "propagationPolicy": "Background" })).await.expect(200);
    assert_eq!((&ending["kind"], &ending["metadata"]["deletionGracePeriodSeconds"]), (&json!("Pod"), &json!(30)));
    assert_eq!(ending["metadata"]["generation"], 2);
    // A second request may shorten the grace period but not lengthen it.
    let longer = world.delete(&path, json!({ "gracePeriodSeconds": 60 })).await.expect(200);
    assert_eq!(longer["metadata"]["resourceVersion"], ending["metadata"]["resourceVersion"]);
    let shorter = world.send(Method::DELETE, &format!("{path}?gracePeriodSeconds=5"), "application/json", "").await;
    let shorter = shorter.expect(200);
    assert_eq!(shorter["metadata"]["deletionGracePeriodSeconds"], 5);
    assert!(shorter["metadata"]["deletionTimestamp"].as_str() < ending["metadata"]["deletionTimestamp"].as_str());
    let version = shorter["metadata"]["resourceVersion"].as_str().unwrap();
    let mut watch = world.watch(&world.path(&format!("pods?watch=true&resourceVersion={version}"))).await;
    // The kubelet reports how the pod ended, then deletes it.
    let status = json!({ "status": { "phase": "Failed", "reason": "Killed" } });
    world.patch(&world.path("pods/p/status"), "strategic-merge-patch+json", status).await.expect(200);
    let gone = world.delete(&path, json!({ "gracePeriodSeconds": 0 })).await.expect(200);
    assert_eq!((&gone["kind"], &gone["status"]["phase"]), (&json!("Pod"), &json!("Failed")));
    assert_eq!(world.get(&path).await.code, 404);
    watch.expect("MODIFIED", "p").await;
    ends(&mut watch, "Failed").await;
}

/// Checks that a pod is first marked as having no grace period left, and then deleted.
async fn ends(watch: &mut Watch, phase: &str) {
    for kind in ["MODIFIED", "DELETED"] {
        let event = watch.next().await.unwrap();
        let (metadata, status) = (&event["object"]["metadata"], &event["object"]["status"]);
        assert_eq!((&event["type"], &status["phase"]), (&json!(kind), &json!(phase)));
        assert_eq!(metadata["deletionGracePeriodSeconds"], 0);
    }
}

pub(crate) async fn goes_at_once_without_a_node(world: &World) {
    let made = world.pod("unbound").await;
    let version = made["metadata"]["resourceVersion"].as_str().unwrap();
    let mut watch = world.watch(&world.path(&format!("pods?watch=true&resourceVersion={version}"))).await;
    world.delete(&world.path("pods/unbound"), json!({})).await.expect(200);
    assert_eq!(world.get(&world.path("pods/unbound")).await.code, 404);
    ends(&mut watch, "Pending").await;
    // A pod that has ended is deleted at once, too.
    world.pod("ended").await;
    world.bind("ended", "node-1").await.expect(201);
    let status = json!({ "status": { "phase": "Succeeded" } });
    world.patch(&world.path("pods/ended/status"), "merge-patch+json", status).await.expect(200);
    world.delete(&world.path("pods/ended"), json!({})).await.expect(200);
    assert_eq!(world.get(&world.path("pods/ended")).await.code, 404);
}

pub(crate) async fn logs_of_a_pod_without_a_node(world: &World) {
    world.pod("p").await;
    assert_eq!(world.get(&world.path("pods/p/log")).await.code, 204);
    let wrong = world.get(&world.path("pods/p/log?container=side")).await;
    wrong.refused(400, "BadRequest", "container side is not valid for pod p");
    world.get(&world.path("pods/none/log")).await.refused(404, "NotFound", "pods \"none\" not found");
}
