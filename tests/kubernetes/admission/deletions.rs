//! Deletions by a driver: what a pod owns ends with it.

use serde_json::{Value, json};

use crate::admission::{
    PODS, executor, judge, running,
    world::{Caller, Change, world},
};

#[tokio::test]
async fn a_driver_leaves_no_pod_without_an_owner() {
    let world = world().await;
    let own = running(world, "orphans-1").await;
    world.call(&own.caller, &Change::post(PODS.to_owned(), executor("orphans-e", &own.pod))).await.unwrap();
    let pod = |name: &str| format!("{PODS}/{name}");
    let with_options = |path: String, key: &str, value: Value| {
        let body = json!({ "apiVersion": "v1", "kind": "DeleteOptions", "dryRun": ["All"], key: value });
        Change { body, ..Change::delete(path) }
    };
    let all = |rest: &str| Change::delete(format!("{PODS}?fieldSelector=metadata.name%3Dorphans-e{rest}"));
    let refused = Some("deletes a pod together with what the pod owns");
    let orphan = || json!("Orphan");
    judge(
        world,
        &own.caller,
        vec![
            ("itself", Change::delete(pod("orphans-1")), None),
            (
                "itself in the background",
                with_options(pod("orphans-1"), "propagationPolicy", json!("Background")),
                None,
            ),
            (
                "itself in the foreground",
                with_options(pod("orphans-1"), "propagationPolicy", json!("Foreground")),
                None,
            ),
            ("itself with all", with_options(pod("orphans-1"), "orphanDependents", json!(false)), None),
            ("itself alone", with_options(pod("orphans-1"), "propagationPolicy", orphan()), refused),
            (
                "itself alone, by the older field",
                with_options(pod("orphans-1"), "orphanDependents", json!(true)),
                refused,
            ),
            ("itself alone, by the address", Change::delete(pod("orphans-1") + "?propagationPolicy=Orphan"), refused),
            ("its executor alone", with_options(pod("orphans-e"), "propagationPolicy", orphan()), refused),
            ("its executors", all(""), None),
            ("its executors alone", all("&propagationPolicy=Orphan"), refused),
            ("its executors alone, by the older field", all("&orphanDependents=true"), refused),
        ],
    )
    .await;
    // An orphan would have been given away by now.
    let left = world.get(&Caller::Admin, &pod("orphans-e")).await.unwrap();
    assert_eq!(left["metadata"]["ownerReferences"][0]["uid"], own.pod["metadata"]["uid"]);
}
