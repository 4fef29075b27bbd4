//! GET of lists.

use serde_json::json;

use crate::api::world::{World, names};

pub(crate) async fn selects(world: &World) {
    for (name, group) in [("a", "x"), ("b", "y"), ("c", "z")] {
        world.config_map(name, group).await;
    }
    world.post(&world.path("configmaps"), json!({ "metadata": { "name": "plain" } })).await.expect(201);
    for (query, expected) in [
        ("", vec!["a", "b", "c", "plain"]),
        ("labelSelector=group%3Dx", vec!["a"]),
        ("labelSelector=group%21%3Dx", vec!["b", "c", "plain"]),
        ("labelSelector=group%20in%20(x,z)", vec!["a", "c"]),
        ("labelSelector=group%20notin%20(x),group", vec!["b", "c"]),
        ("labelSelector=%21group", vec!["plain"]),
        ("fieldSelector=metadata.name%3Db", vec!["b"]),
        ("fieldSelector=metadata.name%21%3Db,metadata.name%21%3Dplain", vec!["a", "c"]),
        ("labelSelector=group&fieldSelector=metadata.name%3Dplain", vec![]),
    ] {
        let list = world.get(&world.path(&format!("configmaps?{query}"))).await.expect(200);
        assert_eq!(names(&list), expected, "{query}");
        assert_eq!(list["kind"], "ConfigMapList");
    }
    world.pod("p").await;
    world.bind("p", "selected-node").await.expect(201);
    world.pod("q").await;
    for (query, expected) in [
        ("spec.nodeName%3Dselected-node", vec!["p"]),
        ("spec.nodeName%3D", vec!["q"]),
        ("status.phase%3DPending", vec!["p", "q"]),
    ] {
        let list = world.get(&world.path(&format!("pods?fieldSelector={query}"))).await.expect(200);
        assert_eq!(names(&list), expected, "{query}");
    }
    let broken = world.get(&world.path("configmaps?labelSelector=a%20b")).await;
    broken.refused(400, "BadRequest", "unable to parse requirement: found 'b'");
    let unknown = world.get(&world.path("configmaps?fieldSelector=data.a%3Db")).await;
    unknown.refused(400, "BadRequest", "\"data.a\" is not a known field selector");
}

pub(crate) async fn pages_show_one_moment(world: &World) {
    for name in ["a", "b", "c", "d", "e"] {
        world.config_map(name, "x").await;
    }
    let first = world.get(&world.path("configmaps?limit=2")).await.expect(200);
    assert_eq!(names(&first), ["a", "b"]);
    assert_eq!(first["metadata"]["remainingItemCount"], 3);
    // Changes between the pages aren't in them.
    world.delete(&world.path("configmaps/d"), json!({})).await.expect(200);
    world.config_map("f", "x").await;
    let token = first["metadata"]["continue"].as_str().unwrap();
    let second = world.get(&world.path(&format!("configmaps?limit=2&continue={token}"))).await.expect(200);
    assert_eq!(names(&second), ["c", "d"]);
    assert_eq!(second["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
    let token = second["metadata"]["continue"].as_str().unwrap();
    let third = world.get(&world.path(&format!("configmaps?limit=2&continue={token}"))).await.expect(200);
    assert_eq!(names(&third), ["e"]);
    assert!(third["metadata"]["continue"].is_null());
    let broken = world.get(&world.path("configmaps?limit=2&continue=zz")).await;
    broken.refused(400, "BadRequest", "invalid continue token: continue key is not valid");
}

pub(crate) async fn versions(world: &World) {
    let first = world.config_map("a", "x").await;
    let version: u64 = first["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
    let second = world.config_map("b", "x").await;
    let later: u64 = second["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
    assert!(later > version);
    let exact = format!("configmaps?resourceVersion={version}&resourceVersionMatch=Exact");
    let then = world.get(&world.path(&exact)).await.expect(200);
    assert_eq!((names(&then), &then["metadata"]["resourceVersion"]), (vec!["a"], &json!(version.to_string())));
    let recent = world.get(&world.path(&format!("configmaps?resourceVersion={later}"))).await.expect(200);
    assert_eq!(names(&recent), ["a", "b"]);
    let future = world.get(&world.path(&format!("configmaps?resourceVersion={}", later + 1_000_000_000))).await;
    future.refused(504, "Timeout", "Too large resource version");
    let nonsense = world.get(&world.path("configmaps?resourceVersion=abc")).await;
    nonsense.refused(400, "BadRequest", "Invalid value: \"abc\"");
}
