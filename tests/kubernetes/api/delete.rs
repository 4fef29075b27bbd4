//! DELETE.

use serde_json::json;

use crate::api::world::{World, names};

pub(crate) async fn finalizers_hold(world: &World) {
    let path = world.path("pods/p");
    world.pod("p").await;
    let finalizers = |list: &[&str]| json!({ "metadata": { "finalizers": list } });
    world.patch(&path, "merge-patch+json", finalizers(&["test/hold"])).await.expect(200);
    world.bind("p", "node-1").await.expect(201);
    let ending = world.delete(&path, json!({})).await.expect(200);
    assert_eq!(ending["metadata"]["deletionGracePeriodSeconds"], 30);
    let held = world.delete(&path, json!({ "gracePeriodSeconds": 0 })).await.expect(200);
    assert_eq!(held["metadata"]["deletionGracePeriodSeconds"], 0);
    world.get(&path).await.expect(200);
    let more = world.patch(&path, "merge-patch+json", finalizers(&["test/hold", "test/late"])).await;
    more.refused(422, "Invalid", "no new finalizers can be added if the object is being deleted");
    let status = json!({ "status": { "phase": "Failed" } });
    world.patch(&world.path("pods/p/status"), "merge-patch+json", status).await.expect(200);
    world.patch(&path, "merge-patch+json", finalizers(&[])).await.expect(200);
    assert_eq!(world.get(&path).await.code, 404);

    // A pod whose finalizer is removed before its node has finished stays until then.
    world.pod("p").await;
    world.patch(&path, "merge-patch+json", finalizers(&["test/hold"])).await.expect(200);
    world.bind("p", "node-1").await.expect(201);
    world.delete(&path, json!({})).await.expect(200);
    world.patch(&path, "merge-patch+json", finalizers(&[])).await.expect(200);
    world.get(&path).await.expect(200);
    world.delete(&path, json!({ "gracePeriodSeconds": 0 })).await.expect(200);
    assert_eq!(world.get(&path).await.code, 404);
}

pub(crate) async fn preconditions(world: &World) {
    let made = world.config_map("a", "x").await;
    let path = world.path("configmaps/a");
    let other = world.delete(&path, json!({ "preconditions": { "uid": "other" } })).await;
    other.refused(409, "Conflict", "the UID in the precondition (other) does not match the UID in record");
    let own = json!({ "preconditions": { "uid": made["metadata"]["uid"] } });
    let status = world.delete(&path, own).await.expect(200);
    assert_eq!((&status["kind"], &status["status"]), (&json!("Status"), &json!("Success")));
    assert_eq!(status["details"], json!({ "name": "a", "kind": "configmaps", "uid": made["metadata"]["uid"] }));
    world.delete(&path, json!({})).await.refused(404, "NotFound", "configmaps \"a\" not found");
}

pub(crate) async fn collections(world: &World) {
    for (name, group) in [("a", "x"), ("b", "y"), ("c", "x")] {
        world.config_map(name, group).await;
    }
    let deleted = world.delete(&world.path("configmaps?labelSelector=group%3Dx"), json!({})).await.expect(200);
    assert_eq!((names(&deleted), &deleted["kind"]), (vec!["a", "c"], &json!("ConfigMapList")));
    assert_eq!(names(&world.get(&world.path("configmaps")).await.expect(200)), ["b"]);
    // Running pods are only marked for deletion.
    world.pod("p").await;
    world.bind("p", "node-1").await.expect(201);
    world.pod("q").await;
    world.delete(&world.path("pods"), json!({ "gracePeriodSeconds": 7 })).await.expect(200);
    let left = world.get(&world.path("pods")).await.expect(200);
    assert_eq!(names(&left), ["p"]);
    assert_eq!(left["items"][0]["metadata"]["deletionGracePeriodSeconds"], 7);
}
