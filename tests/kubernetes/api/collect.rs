//! Garbage collection with an owner, and with the namespace.

use serde_json::{Value, json};

use crate::api::world::World;

fn owned_by(owner: &Value, name: &str) -> Value {
    let metadata = &owner["metadata"];
    json!({ "metadata": { "name": name, "ownerReferences": [
        { "apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"], "controller": true }] } })
}

pub(crate) async fn collects_objects_without_an_owner(world: &World) {
    let (maps, services) = (world.path("configmaps"), world.path("services"));
    let driver = world.pod("driver").await;
    world.post(&maps, owned_by(&driver, "conf")).await.expect(201);
    let mut service = owned_by(&driver, "svc");
    service["spec"] = json!({ "clusterIP": "None", "ports": [{ "port": 1 }] });
    world.post(&services, service).await.expect(201);
    let mut executor = crate::api::world::pod("executor");
    executor["metadata"] = owned_by(&driver, "executor")["metadata"].clone();
    let executor = world.post(&world.path("pods"), executor).await.expect(201);
    world.post(&maps, owned_by(&executor, "executor-conf")).await.expect(201);
    world.config_map("free", "x").await;
    let other = world.pod("other").await;
    let mut shared = owned_by(&driver, "shared");
    let reference = json!({ "apiVersion": "v1", "kind": "Pod", "name": "other", "uid": other["metadata"]["uid"] });
    shared["metadata"]["ownerReferences"].as_array_mut().unwrap().push(reference);
    world.post(&maps, shared).await.expect(201);

    world.delete(&world.path("pods/driver"), json!({ "propagationPolicy": "Background" })).await.expect(200);
    for gone in ["configmaps/conf", "services/svc", "pods/executor", "configmaps/executor-conf"] {
        world.until(&world.path(gone), 404).await;
    }
    for stays in ["configmaps/free", "configmaps/shared", "pods/other"] {
        world.get(&world.path(stays)).await.expect(200);
    }
    // An owner that was deleted before its dependant was created.
    world.post(&maps, owned_by(&driver, "late")).await.expect(201);
    world.until(&world.path("configmaps/late"), 404).await;
}

pub(crate) async fn ends_namespaces(world: &World) {
    let own = format!("/api/v1/namespaces/{}", world.namespace);
    let default = world.delete("/api/v1/namespaces/default", json!({})).await;
    default.refused(403, "Forbidden", "this namespace may not be deleted");
    let held = json!({ "metadata": { "name": "held", "finalizers": ["test/hold"] } });
    world.post(&world.path("configmaps"), held).await.expect(201);
    world.config_map("free", "x").await;
    let ending = world.delete(&own, json!({})).await.expect(200);
    assert_eq!(ending["status"]["phase"], "Terminating");
    let late = world.post(&world.path("configmaps"), json!({ "metadata": { "name": "late" } })).await;
    late.refused(403, "Forbidden", "because it is being terminated");
    world.until(&world.path("configmaps/free"), 404).await;
    world.get(&own).await.expect(200);
    let release = json!({ "metadata": { "finalizers": [] } });
    world.patch(&world.path("configmaps/held"), "merge-patch+json", release).await.expect(200);
    world.until(&own, 404).await;
}
