//! A played kubelet: it reports the states of the drivers.

use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream};
use serde::Deserialize;
use serde_json::{Value, json};
use sqlx::AssertSqlSafe;
use tokio::time::sleep;

use crate::{figures::launch::NAMESPACES, load::kubernetes::Client, servers::Database};

const AT_ONCE: usize = 8;

#[derive(Deserialize)]
struct List {
    items: Vec<Pod>,
}

#[derive(Deserialize)]
struct Pod {
    metadata: Metadata,
    #[serde(default)]
    status: Status,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
    namespace: String,
}

#[derive(Default, Deserialize)]
struct Status {
    #[serde(default)]
    phase: String,
}

/// Runs every pending pod, ends it successfully, and waits until no finalizer is left.
pub(super) async fn until_all_have_ended(client: &Client, database: &Database) -> anyhow::Result<()> {
    let pods: Vec<String> = pods(client).await?.filter(|pod| pod.status.phase == "Pending").map(path).collect();
    let started = json!({"phase": "Running", "podIP": "10.1.2.3", "containerStatuses": container(
        json!({"running": {"startedAt": "2026-11-21T12:00:00Z"}}), true)});
    let ended = json!({"phase": "Succeeded", "podIP": "10.1.2.3", "containerStatuses": container(
        json!({"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": "2026-11-21T12:00:00Z",
            "finishedAt": "2026-11-21T12:10:00Z"}}), false)});
    for (status, state) in [(started, "RUNNING"), (ended, "FINISHED")] {
        let patch = json!({"status": status}).to_string();
        stream::iter(&pods)
            .map(async |path| client.merge(&format!("{path}/status"), patch.clone()).await)
            .buffer_unordered(AT_ONCE)
            .try_for_each(async |_| Ok(()))
            .await?;
        until(database, &format!("SELECT count(*) FROM submissions WHERE state NOT IN ('{state}', 'FINISHED')"))
            .await?;
    }
    // The finalizer is removed after the end is committed.
    while held(client).await? {
        sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

fn container(state: Value, ready: bool) -> Value {
    json!([{"name": "spark-kubernetes-driver", "image": "spark", "imageID": "", "ready": ready, "restartCount": 0,
        "state": state}])
}

fn path(pod: Pod) -> String {
    format!("/api/v1/namespaces/{}/pods/{}", pod.metadata.namespace, pod.metadata.name)
}

async fn pods(client: &Client) -> anyhow::Result<impl Iterator<Item = Pod>> {
    let mut all = Vec::new();
    for namespace in NAMESPACES {
        let list = client.get(&format!("/api/v1/namespaces/{namespace}/pods")).await?;
        all.extend(serde_json::from_slice::<List>(&list)?.items);
    }
    Ok(all.into_iter())
}

async fn held(client: &Client) -> anyhow::Result<bool> {
    for namespace in NAMESPACES {
        let list = client.get(&format!("/api/v1/namespaces/{namespace}/pods")).await?;
        if list.windows(b"\"finalizers\":".len()).any(|part| part == b"\"finalizers\":") {
            return Ok(true);
        }
    }
    Ok(false)
}

async fn until(database: &Database, none_of: &str) -> anyhow::Result<()> {
    let mut connection = database.connect().await?;
    while sqlx::query_scalar::<_, i64>(AssertSqlSafe(none_of)).fetch_one(&mut connection).await? > 0 {
        sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}
