//! Deletion: SIGTERM, the grace period, SIGKILL, and no process left.

use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;

use crate::sandbox_node::world::{World, end, job, poll, processes_end};

/// Returns a command with two processes: the container's own, and an orphan in a session of its own.
fn with_stray(file: &std::path::Path, then: &str) -> String {
    let file = file.display();
    format!(
        "(setsid sleep 300 & echo $! >> {file}.part); echo $BASHPID >> {file}.part; mv {file}.part {file}; echo up; {then}"
    )
}

#[tokio::test]
async fn a_deleted_pod_takes_all_its_processes_with_it() {
    let mut world = World::new().await;
    world.start_node();
    let ids = world.dir.path().join("ids");
    let pod: Pod = world.create(job("driver", &with_stray(&ids, "exec sleep 300"))).await;
    world.wait_phase("driver", "Running").await;
    follow_until_up(&world, "driver").await;
    world.pods().delete("driver", &DeleteParams::default()).await.unwrap();
    world.wait_gone(&pod).await;
    processes_end(&ids).await;
    let dir = world.state().join("pods").join(pod.metadata.uid.unwrap());
    poll("the pod's directory is removed", async || !dir.exists()).await;
}

#[tokio::test]
async fn a_normal_end_leaves_no_process_either() {
    let mut world = World::new().await;
    world.start_node();
    let ids = world.dir.path().join("ids");
    world.create::<Pod>(job("driver", &with_stray(&ids, "exit 0"))).await;
    world.wait_phase("driver", "Succeeded").await;
    processes_end(&ids).await;
}

#[tokio::test]
async fn a_finalizer_keeps_the_outcome_readable() {
    let mut world = World::new().await;
    world.start_node();
    let mut pod = job("driver", "echo up; trap 'echo bye; exit 9' TERM; while :; do sleep 0.05; done");
    pod["metadata"]["finalizers"] = json!(["example.org/outcome"]);
    let pod: Pod = world.create(pod).await;
    follow_until_up(&world, "driver").await;
    world.pods().delete("driver", &DeleteParams::default()).await.unwrap();
    let ended = world.wait_phase("driver", "Failed").await;
    assert_eq!(end(&ended).exit_code, 9);
    assert_eq!(world.log("driver").await, "up\nbye\n");
    let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    world.pods().patch("driver", &PatchParams::default(), &patch).await.unwrap();
    world.wait_gone(&pod).await;
}

#[tokio::test]
async fn a_process_that_ignores_sigterm_is_killed_after_the_grace_period() {
    let mut world = World::new().await;
    world.start_node();
    let mut pod = job("driver", "trap '' TERM; echo up; while :; do sleep 0.05; done");
    pod["metadata"]["finalizers"] = json!(["example.org/outcome"]);
    world.create::<Pod>(pod).await;
    follow_until_up(&world, "driver").await;
    world.pods().delete("driver", &DeleteParams::default().grace_period(1)).await.unwrap();
    let ended = world.wait_phase("driver", "Failed").await;
    assert_eq!((end(&ended).exit_code, end(&ended).reason.as_deref()), (137, Some("Error")));
}

#[tokio::test]
async fn a_pod_that_never_started_goes_at_once() {
    let mut world = World::new().await;
    world.start_node();
    let mut pod = job("driver", "true");
    pod["spec"]["containers"][0]["volumeMounts"] = json!([{"name": "v", "mountPath": "/v"}]);
    pod["spec"]["volumes"] = json!([{"name": "v", "configMap": {"name": "never"}}]);
    let pod: Pod = world.create(pod).await;
    world.wait("driver", "waiting", |pod| crate::sandbox_node::world::waiting(pod).is_some()).await;
    world.pods().delete("driver", &DeleteParams::default()).await.unwrap();
    world.wait_gone(&pod).await;
}

/// Returns when the job has printed `up`: from then on its traps are set.
async fn follow_until_up(world: &World, name: &str) {
    use futures::{AsyncBufReadExt, TryStreamExt};
    world.wait_phase(name, "Running").await;
    let follow = kube::api::LogParams { follow: true, ..Default::default() };
    let mut lines = world.pods().log_stream(name, &follow).await.unwrap().lines();
    assert_eq!(lines.try_next().await.unwrap().as_deref(), Some("up"));
}
