//! PUT and PATCH.

use serde_json::{Value, json};

use crate::api::world::{World, pod};

pub(crate) async fn put(world: &World) {
    let made = world.config_map("a", "x").await;
    let path = world.path("configmaps/a");
    let mut next = made.clone();
    next["data"] = json!({ "key": "2" });
    let second = world.put(&path, next.clone()).await.expect(200);
    assert_ne!(second["metadata"]["resourceVersion"], made["metadata"]["resourceVersion"]);
    assert_eq!(second["metadata"]["uid"], made["metadata"]["uid"]);
    world.put(&path, next).await.refused(409, "Conflict", "the object has been modified; please apply your changes");
    // Without a version the last writer wins, and an equal object gets no new version.
    let third = world.put(&path, json!({ "metadata": { "name": "a" }, "data": { "key": "3" } })).await.expect(200);
    let same = world.put(&path, third.clone()).await.expect(200);
    assert_eq!(same["metadata"]["resourceVersion"], third["metadata"]["resourceVersion"]);
    let other = world.put(&path, json!({ "metadata": { "name": "b" } })).await;
    other.refused(400, "BadRequest", "the name of the object (b) does not match the name on the URL (a)");
    let uid = world.put(&path, json!({ "metadata": { "name": "a", "uid": "other" } })).await;
    uid.refused(409, "Conflict", "Precondition failed: UID in precondition: other");
    let none = world.put(&world.path("configmaps/b"), json!({ "metadata": { "name": "b" } })).await;
    none.refused(404, "NotFound", "configmaps \"b\" not found");

    world.pod("p").await;
    let mut pod = pod("p");
    pod["spec"]["containers"][0]["args"] = json!(["x"]);
    let frozen = world.put(&world.path("pods/p"), pod).await;
    frozen.refused(422, "Invalid", "spec: Forbidden: pod updates may not change fields other than");
}

pub(crate) async fn patches(world: &World) {
    let made = world.config_map("a", "x").await;
    let path = world.path("configmaps/a");
    let merged = json!({ "metadata": { "labels": { "group": null, "new": "1" } }, "data": { "more": "2" } });
    let merged = world.patch(&path, "merge-patch+json", merged).await.expect(200);
    assert_eq!(merged["metadata"]["labels"], json!({ "new": "1" }));
    assert_eq!(merged["data"], json!({ "key": "1", "more": "2" }));
    let operations =
        json!([{ "op": "test", "path": "/data/key", "value": "1" }, { "op": "remove", "path": "/data/key" }]);
    let patched = world.patch(&path, "json-patch+json", operations.clone()).await.expect(200);
    assert_eq!(patched["data"], json!({ "more": "2" }));
    assert_eq!(world.patch(&path, "json-patch+json", operations).await.code, 422);

    let old = json!({ "metadata": { "resourceVersion": made["metadata"]["resourceVersion"] }, "data": { "x": "" } });
    world.patch(&path, "merge-patch+json", old).await.refused(409, "Conflict", "the object has been modified");
    world.patch(&path, "gossip", json!({})).await.refused(415, "UnsupportedMediaType", "");
    let none = world.patch(&world.path("configmaps/b"), "merge-patch+json", json!({})).await;
    none.refused(404, "NotFound", "configmaps \"b\" not found");
    let renamed = world.patch(&path, "merge-patch+json", json!({ "metadata": { "name": "b" } })).await;
    renamed.refused(400, "BadRequest", "the name of the object (b) does not match the name on the URL (a)");

    // Lists of named items: the strategic patch merges them by name.
    world.pod("p").await;
    let finalizers = json!({ "metadata": { "finalizers": ["test/a"] } });
    world.patch(&world.path("pods/p"), "strategic-merge-patch+json", finalizers).await.expect(200);
    let strategic = json!({ "metadata": { "finalizers": ["test/b"], "annotations": { "n": "1" } },
        "spec": { "containers": [{ "name": "main", "image": "image:2" }] } });
    let pod = world.patch(&world.path("pods/p"), "strategic-merge-patch+json", strategic).await.expect(200);
    let mut finalizers: Vec<&str> =
        pod["metadata"]["finalizers"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    finalizers.sort_unstable();
    assert_eq!(finalizers, ["test/a", "test/b"]);
    assert_eq!(pod["spec"]["containers"][0]["image"], "image:2");
    assert_eq!(pod["spec"]["containers"][0]["terminationMessagePath"], "/dev/termination-log");
}

pub(crate) async fn applies(world: &World) {
    let path = world.path("configmaps/a?fieldManager=test&force=true");
    let body = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" }, "data": { "k": "1" } });
    let made = world.patch(&path, "apply-patch+yaml", body.clone()).await.expect(201);
    let same = world.patch(&path, "apply-patch+yaml", body.clone()).await.expect(200);
    assert_eq!(same["metadata"]["resourceVersion"], made["metadata"]["resourceVersion"]);
    let more = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a", "labels": { "l": "1" } },
        "data": { "k": "2" } });
    let more = world.patch(&path, "apply-patch+yaml", more).await.expect(200);
    assert_eq!((&more["data"]["k"], &more["metadata"]["labels"]["l"]), (&json!("2"), &json!("1")));
    assert_eq!(more["metadata"]["uid"], made["metadata"]["uid"]);

    let unnamed = world.patch(&world.path("configmaps/a"), "apply-patch+yaml", body.clone()).await;
    unnamed.refused(422, "Invalid", "fieldManager: Required value: is required for apply patch");
    let untyped = world.patch(&path, "apply-patch+yaml", json!({ "metadata": { "name": "a" } })).await;
    untyped.refused(400, "BadRequest", "invalid object type");
    let nameless = world.patch(&path, "apply-patch+yaml", json!({ "apiVersion": "v1", "kind": "ConfigMap" })).await;
    nameless.refused(400, "BadRequest", "name must be provided");
    let nowhere = "/api/v1/namespaces/nowhere/configmaps/a?fieldManager=test";
    world.patch(nowhere, "apply-patch+yaml", body).await.refused(404, "NotFound", "namespaces \"nowhere\" not found");
}

pub(crate) async fn separates_status(world: &World) {
    world.pod("p").await;
    let (main, status) = (world.path("pods/p"), world.path("pods/p/status"));
    let ignored = world.patch(&main, "merge-patch+json", json!({ "status": { "phase": "Running" } })).await.expect(200);
    assert_eq!(ignored["status"]["phase"], "Pending");
    let state = json!({ "name": "main", "ready": true, "restartCount": 0, "image": "image:1", "imageID": "" });
    let patch = json!({ "metadata": { "labels": { "seen": "yes" } }, "spec": { "hostname": "ignored" },
        "status": { "phase": "Running", "podIP": "127.0.0.9", "podIPs": [{ "ip": "127.0.0.9" }], "containerStatuses": [state],
            "conditions": [{ "type": "Ready", "status": "True" }] } });
    let pod = world.patch(&status, "strategic-merge-patch+json", patch).await.expect(200);
    assert_eq!((&pod["status"]["phase"], &pod["status"]["podIP"]), (&json!("Running"), &json!("127.0.0.9")));
    assert!(pod["spec"]["hostname"].is_null());
    assert_eq!(pod["metadata"]["labels"]["seen"], "yes");
    let more = json!({ "status": { "conditions": [{ "type": "ContainersReady", "status": "True" }] } });
    let pod = world.patch(&status, "strategic-merge-patch+json", more).await.expect(200);
    assert_eq!(pod["status"]["conditions"].as_array().unwrap().len(), 2);
    let mut put = pod.clone();
    put["status"]["phase"] = "Succeeded".into();
    put["spec"]["hostname"] = "ignored".into();
    let pod = world.put(&status, put).await.expect(200);
    assert_eq!((&pod["status"]["phase"], pod["spec"]["hostname"].is_null()), (&json!("Succeeded"), true));
    assert_eq!(world.get(&status).await.expect(200)["status"]["phase"], "Succeeded");
}

pub(crate) async fn immutable_data(world: &World) {
    for plural in ["configmaps", "secrets"] {
        let body = json!({ "metadata": { "name": "a" }, "immutable": true, "data": { "k": "YQ==" } });
        world.post(&world.path(plural), body).await.expect(201);
        let path = world.path(&format!("{plural}/a"));
        let data = world.patch(&path, "merge-patch+json", json!({ "data": { "k": "Yg==" } })).await;
        data.refused(422, "Invalid", "data: Forbidden: field is immutable when `immutable` is set");
        let thaw = world.patch(&path, "merge-patch+json", json!({ "immutable": false })).await;
        thaw.refused(422, "Invalid", "immutable: Forbidden: field is immutable when `immutable` is set");
        let label = json!({ "metadata": { "labels": { "a": "b" } } });
        world.patch(&path, "merge-patch+json", label).await.expect(200);
    }
}
