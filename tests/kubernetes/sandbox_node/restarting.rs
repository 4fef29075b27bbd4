//! A node that stops or crashes, and its successor.

use std::process::Command;

use k8s_openapi::api::core::v1::Pod;

use crate::sandbox_node::world::{World, end, job, poll};

#[tokio::test]
async fn a_crash_is_cleaned_up_by_the_next_node() {
    let mut world = World::new().await;
    world.start_node();
    let pod: Pod = world.create(job("driver", "echo up; exec sleep 300")).await;
    world.wait_phase("driver", "Running").await;
    poll("the log says up", async || world.log("driver").await.contains("up")).await;
    world.crash_node().await;

    // Within this process a crash can't leave children behind, so the test starts one: it carries the mark of the pod.
    let dir = world.state().join("pods").join(pod.metadata.uid.unwrap());
    let mut left = Command::new("sleep").arg("300").env("SPARKGATE_POD", &dir).spawn().unwrap();
    let elsewhere = world.dir.path().join("state-of-another-node");
    let mut other = Command::new("sleep").arg("300").env("SPARKGATE_POD", elsewhere.join("pods/x")).spawn().unwrap();
    world.start_node();
    let pod = world.wait_phase("driver", "Failed").await;
    assert_eq!(pod.status.as_ref().unwrap().reason.as_deref(), Some("NodeRestarted"));
    assert_eq!(end(&pod).exit_code, 137);
    assert_eq!(left.wait().unwrap().to_string(), "signal: 9 (SIGKILL)");
    assert_eq!(world.log("driver").await, "up\n");
    assert!(other.try_wait().unwrap().is_none(), "a process of another node is left alone");
    other.kill().unwrap();
    other.wait().unwrap();
}

#[tokio::test]
async fn directories_of_pods_that_went_meanwhile_are_removed() {
    let mut world = World::new().await;
    let stale = world.state().join("pods/00000000-0000-0000-0000-000000000000");
    std::fs::create_dir_all(stale.join("logs")).unwrap();
    world.start_node();
    world.create::<Pod>(job("driver", "true")).await;
    world.wait_phase("driver", "Succeeded").await;
    assert!(!stale.exists());
}

#[tokio::test]
async fn a_stopped_node_ends_its_pods_and_reports_them() {
    let mut world = World::new().await;
    world.start_node();
    world.create::<Pod>(job("driver", "exec sleep 300")).await;
    world.create::<Pod>(job("done", "true")).await;
    world.wait_phase("done", "Succeeded").await;
    world.wait_phase("driver", "Running").await;
    world.stop_node().await;
    let pod = world.pods().get("driver").await.unwrap();
    assert_eq!(pod.status.as_ref().unwrap().reason.as_deref(), Some("NodeShutdown"));
    assert_eq!(end(&pod).exit_code, 143);
    let done = world.pods().get("done").await.unwrap();
    assert_eq!(crate::sandbox_node::world::phase(&done), "Succeeded");
}

#[tokio::test]
async fn a_finished_pod_is_not_run_again() {
    let mut world = World::new().await;
    world.start_node();
    world.create::<Pod>(job("driver", "echo once")).await;
    world.wait_phase("driver", "Succeeded").await;
    world.stop_node().await;
    world.start_node();
    world.create::<Pod>(job("next", "true")).await;
    world.wait_phase("next", "Succeeded").await;
    assert_eq!(world.log("driver").await, "once\n");
}
