//! A container from its start to its end.

use futures::{AsyncBufReadExt, TryStreamExt};
use kube::api::LogParams;
use serde_json::json;

use crate::sandbox_node::world::{World, end, job, phase};

#[tokio::test]
async fn a_job_succeeds_and_its_log_stays() {
    let mut world = World::new().await;
    world.start_node();
    world.create::<k8s_openapi::api::core::v1::Pod>(job("pi", "echo Pi is roughly 3; echo oh >&2")).await;
    let pod = world.wait_phase("pi", "Succeeded").await;
    let end = end(&pod);
    assert_eq!((end.exit_code, end.reason.as_deref()), (0, Some("Completed")));
    assert!(end.started_at.is_some() && end.finished_at.is_some());
    let status = pod.status.as_ref().unwrap();
    assert!(status.pod_ip.as_ref().unwrap().starts_with("127."), "{status:?}");
    assert_eq!(pod.spec.as_ref().unwrap().node_name.as_deref(), Some("sandbox"));
    assert_eq!(world.log("pi").await, "Pi is roughly 3\noh\n");
}

#[tokio::test]
async fn exit_codes_are_reported() {
    let mut world = World::new().await;
    world.start_node();
    for (name, command, code) in
        [("three", "exit 3", 3), ("killed", "kill -KILL $BASHPID", 137), ("term", "kill -TERM $BASHPID", 143)]
    {
        world.create::<k8s_openapi::api::core::v1::Pod>(job(name, command)).await;
        let pod = world.wait_phase(name, "Failed").await;
        assert_eq!((end(&pod).exit_code, end(&pod).reason.as_deref()), (code, Some("Error")), "{name}");
    }
}

#[tokio::test]
async fn a_running_driver_is_ready_and_its_log_can_be_followed() {
    let mut world = World::new().await;
    world.start_node();
    let go = world.dir.path().join("go");
    let command = format!("echo one; until [ -e {} ]; do sleep 0.05; done; echo two; exit 4", go.display());
    world.create::<k8s_openapi::api::core::v1::Pod>(job("driver", &command)).await;
    let ready = kube::runtime::wait::conditions::is_pod_running();
    world
        .wait("driver", "ready", |pod| {
            let conditions = pod.status.as_ref().and_then(|status| status.conditions.clone()).unwrap_or_default();
            kube::runtime::wait::Condition::matches_object(&ready, Some(pod))
                && conditions.iter().any(|c| c.type_ == "Ready" && c.status == "True")
        })
        .await;
    let follow = LogParams { follow: true, ..LogParams::default() };
    let mut lines = world.pods().log_stream("driver", &follow).await.unwrap().lines();
    assert_eq!(lines.try_next().await.unwrap().as_deref(), Some("one"));
    std::fs::write(go, "").unwrap();
    assert_eq!(lines.try_next().await.unwrap().as_deref(), Some("two"));
    assert_eq!(lines.try_next().await.unwrap(), None);
    assert_eq!(end(&world.wait_phase("driver", "Failed").await).exit_code, 4);
}

#[tokio::test]
async fn pods_have_addresses_of_their_own() {
    let mut world = World::new().await;
    world.start_node();
    let mut addresses = std::collections::HashSet::new();
    for name in ["a", "b", "c"] {
        world.create::<k8s_openapi::api::core::v1::Pod>(job(name, "sleep 300")).await;
    }
    for name in ["a", "b", "c"] {
        let pod = world.wait_phase(name, "Running").await;
        addresses.insert(pod.status.unwrap().pod_ip.unwrap());
    }
    assert_eq!(addresses.len(), 3);
}

#[tokio::test]
async fn a_deadline_ends_the_pod() {
    let mut world = World::new().await;
    world.start_node();
    let mut pod = job("late", "exec sleep 300");
    pod["spec"]["activeDeadlineSeconds"] = json!(1);
    world.create::<k8s_openapi::api::core::v1::Pod>(pod).await;
    let pod = world.wait_phase("late", "Failed").await;
    assert_eq!(pod.status.as_ref().unwrap().reason.as_deref(), Some("DeadlineExceeded"));
    assert_eq!(end(&pod).exit_code, 143);
}

#[tokio::test]
async fn without_a_spark_the_job_is_played_and_says_so() {
    let mut world = World::without_spark().await;
    world.start_node();
    world.create::<k8s_openapi::api::core::v1::Pod>(job("played", "exit 1")).await;
    world.wait_phase("played", "Running").await;
    let pod = world.wait("played", "at its end", |pod| phase(pod) != "Running").await;
    assert_eq!((phase(&pod), end(&pod).exit_code), ("Succeeded", 0));
    assert!(world.log("played").await.contains("no Spark was found"));
}
