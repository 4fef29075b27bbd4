//! GET with `watch`.

use serde_json::{Value, json};

use crate::api::world::World;

pub(crate) async fn reports_changes_in_order(world: &World) {
    let version = world.version().await;
    let mut watch = world.watch(&world.path(&format!("configmaps?watch=true&resourceVersion={version}"))).await;
    let made = world.config_map("a", "x").await;
    let changed = world.patch(&world.path("configmaps/a"), "merge-patch+json", json!({ "data": { "key": "2" } })).await;
    let changed = changed.expect(200);
    world.delete(&world.path("configmaps/a"), json!({})).await.expect(200);
    let mut versions: Vec<u64> = Vec::new();
    for (kind, data) in [("ADDED", "1"), ("MODIFIED", "2"), ("DELETED", "2")] {
        let event = watch.next().await.unwrap();
        assert_eq!((&event["type"], &event["object"]["data"]["key"]), (&json!(kind), &json!(data)));
        assert_eq!(event["object"]["metadata"]["uid"], made["metadata"]["uid"]);
        versions.push(event["object"]["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap());
    }
    assert!(versions.is_sorted_by(|a, b| a < b), "{versions:?}");
    // A second watch from the middle reports the rest.
    let from = changed["metadata"]["resourceVersion"].as_str().unwrap();
    let mut rest = world.watch(&world.path(&format!("configmaps?watch=true&resourceVersion={from}"))).await;
    rest.expect("DELETED", "a").await;
}

pub(crate) async fn follows_the_selector(world: &World) {
    let version = world.version().await;
    let path = format!("configmaps?watch=true&labelSelector=group%3Dx&resourceVersion={version}");
    let mut watch = world.watch(&world.path(&path)).await;
    world.config_map("other", "y").await;
    let label = |value: &str| json!({ "metadata": { "labels": { "group": value } } });
    for value in ["x", "y", "z"] {
        world.patch(&world.path("configmaps/other"), "merge-patch+json", label(value)).await.expect(200);
    }
    world.config_map("own", "x").await;
    watch.expect("ADDED", "other").await;
    let left = watch.next().await.unwrap();
    assert_eq!((&left["type"], &left["object"]["metadata"]["labels"]["group"]), (&json!("DELETED"), &json!("x")));
    watch.expect("ADDED", "own").await;
}

pub(crate) async fn begins_with_existing_objects(world: &World) {
    world.config_map("a", "x").await;
    let mut watch = world.watch(&world.path("configmaps?watch=1")).await;
    watch.expect("ADDED", "a").await;
    world.config_map("b", "x").await;
    watch.expect("ADDED", "b").await;
    // One object, by its name in a field selector, as clients follow a single pod.
    let mut one = world.watch(&world.path("configmaps?watch=1&fieldSelector=metadata.name%3Db")).await;
    one.expect("ADDED", "b").await;
    // The streaming form of a list.
    let query = "configmaps?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut list = world.watch(&world.path(query)).await;
    list.expect("ADDED", "a").await;
    list.expect("ADDED", "b").await;
    let end = list.next().await.unwrap();
    assert_eq!(end["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true", "{end}");
}

pub(crate) async fn bookmarks(world: &World) {
    let made = world.config_map("a", "x").await;
    let version = made["metadata"]["resourceVersion"].as_str().unwrap();
    let path = format!("configmaps?watch=true&allowWatchBookmarks=true&timeoutSeconds=6&resourceVersion={version}");
    let mut watch = world.watch(&world.path(&path)).await;
    let bookmark = watch.next().await.unwrap();
    assert_eq!((&bookmark["type"], &bookmark["object"]["kind"]), (&json!("BOOKMARK"), &json!("ConfigMap")));
    let seen: u64 = bookmark["object"]["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
    assert!(seen >= version.parse().unwrap());
    while let Some(event) = watch.next().await {
        assert_eq!(event["type"], "BOOKMARK");
    }
}

pub(crate) async fn expires(world: &World) {
    // Events, because the real server reads them from etcd, which can be compacted.
    let event = |name: &str| {
        json!({ "metadata": { "name": name }, "reason": "Test",
            "involvedObject": { "kind": "Pod", "namespace": world.namespace, "name": "p" } })
    };
    let first: Value = world.post(&world.path("events"), event("a")).await.expect(201);
    world.post(&world.path("events"), event("b")).await.expect(201);
    let page = world.get(&world.path("events?limit=1")).await.expect(200);
    world.post(&world.path("events"), event("c")).await.expect(201);
    world.compact().await;

    let token = page["metadata"]["continue"].as_str().unwrap();
    let rest = world.get(&world.path(&format!("events?limit=1&continue={token}"))).await;
    rest.refused(410, "Expired", "The provided continue parameter is too old");
    let version = first["metadata"]["resourceVersion"].as_str().unwrap();
    let mut watch = world.watch(&world.path(&format!("events?watch=true&resourceVersion={version}"))).await;
    let event = watch.next().await.unwrap();
    assert_eq!((&event["type"], &event["object"]["code"]), (&json!("ERROR"), &json!(410)), "{event}");
    assert_eq!(event["object"]["reason"], "Expired");
    assert_eq!(watch.next().await, None);
}
