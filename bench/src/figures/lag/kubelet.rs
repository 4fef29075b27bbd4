//! Reports what a kubelet would report.

use serde_json::{Value, json};
use tokio::{sync::oneshot, time::Instant};

use crate::{load::kubernetes::Client, servers::rows};

pub(super) const PODS: &str = "/api/v1/namespaces/default/pods";
/// The time that the kubelet reports; no measurement uses it.
const NOON: &str = "2026-11-21T12:00:00Z";

/// A state that a kubelet reports for a driver.
#[derive(Debug)]
pub(super) enum Change {
    Begins {
        number: usize,
        tell: oneshot::Sender<()>,
    },
    /// The driver ends with success.
    Ends {
        number: usize,
        runs: oneshot::Receiver<()>,
    },
}

impl Change {
    /// Returns the id of the submission and its state after the change.
    pub(super) fn to(&self) -> (String, &'static str) {
        match self {
            Self::Begins { number, .. } => (rows::id(*number), "RUNNING"),
            Self::Ends { number, .. } => (rows::id(*number), "FINISHED"),
        }
    }

    /// Makes the change when its turn comes; returns when it was sent.
    pub(super) async fn make(self, client: &Client) -> anyhow::Result<Instant> {
        let sent;
        match self {
            Self::Begins { number, tell } => {
                sent = Instant::now();
                run(client, &path(number)).await?;
                let _ = tell.send(());
            }
            Self::Ends { number, runs } => {
                let _ = runs.await;
                sent = Instant::now();
                succeed(client, &path(number)).await?;
            }
        }
        Ok(sent)
    }
}

fn path(number: usize) -> String {
    format!("{PODS}/{}", rows::pod(number))
}

/// Reports that the driver of this pod runs.
pub(in crate::figures) async fn run(client: &Client, pod: &str) -> anyhow::Result<()> {
    put(client, pod, "Running", json!({"running": {"startedAt": NOON}})).await
}

/// Reports that the driver of this pod has ended with success.
pub(in crate::figures) async fn succeed(client: &Client, pod: &str) -> anyhow::Result<()> {
    let ended = json!({"exitCode": 0, "reason": "Completed", "startedAt": NOON, "finishedAt": NOON});
    put(client, pod, "Succeeded", json!({"running": null, "terminated": ended})).await
}

async fn put(client: &Client, pod: &str, phase: &str, state: Value) -> anyhow::Result<()> {
    let container = "containerd://9f3b1c7e5a2d4f6b8c0e1a3d5f7b9c2e4a6d8f0b1c3e5a7d9f2b4c6e8a0d1f3b";
    let runs = phase == "Running";
    let status = json!({"status": {"phase": phase, "startTime": NOON, "hostIP": "10.0.17.21", "podIP": "10.0.29.143",
        "podIPs": [{"ip": "10.0.29.143"}], "containerStatuses": [{"name": "spark-kubernetes-driver", "ready": runs,
            "image": "registry.example.com/data/spark:4.3.0", "imageID": "sha256:3c1b7f7f", "containerID": container,
            "started": runs, "restartCount": 0, "state": state}]}});
    client.merge(&format!("{pod}/status"), status.to_string()).await?;
    Ok(())
}
