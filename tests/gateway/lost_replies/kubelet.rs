//! The scheduler and the kubelet of one life. A driver ends once its submission is seen to run, so nothing is left out.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions},
};
use serde_json::{Value, json};
use sqlx::PgPool;
use tokio::time::sleep;

const TICK: Duration = Duration::from_millis(100);

pub(crate) struct Kubelet {
    pub(crate) client: Client,
    pub(crate) namespace: String,
    pub(crate) pool: PgPool,
    /// The exit code of each attempt; one without a code runs until it is killed.
    pub(crate) exit_codes: &'static [i32],
}

/// A pod on its node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Local {
    Waits,
    Runs,
    Ended,
}

impl Kubelet {
    /// Plays until it is dropped. `started` counts the drivers that started, by attempt.
    pub(crate) async fn play(&self, started: &std::sync::Mutex<BTreeMap<i32, usize>>) {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &self.namespace);
        let mut locals: HashMap<String, Local> = HashMap::new();
        loop {
            sleep(TICK).await;
            let Ok(all) = pods.list(&ListParams::default().labels("spark-role=driver")).await else { continue };
            for pod in all.items {
                let uid = pod.metadata.uid.clone().unwrap_or_default();
                let local = locals.entry(uid).or_insert(Local::Waits);
                self.step(&pods, &pod, local, started).await;
            }
        }
    }

    async fn step(
        &self,
        pods: &Api<Pod>,
        pod: &Pod,
        local: &mut Local,
        started: &std::sync::Mutex<BTreeMap<i32, usize>>,
    ) {
        let name = pod.metadata.name.clone().unwrap_or_default();
        let labels = pod.metadata.labels.clone().unwrap_or_default();
        let attempt: i32 =
            labels.get("sparkgate.dev/attempt").and_then(|attempt| attempt.parse().ok()).unwrap_or_default();
        let spec = pod.spec.clone().unwrap_or_default();
        let deleting = pod.metadata.deletion_timestamp.is_some();
        if spec.node_name.is_none() && !deleting {
            let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
                "target": {"apiVersion": "v1", "kind": "Node", "name": "n"}});
            let _ = pods.create_subresource::<_, Value>("binding", &name, &PostParams::default(), &binding).await;
            return;
        }
        match *local {
            Local::Waits if deleting => *local = Local::Ended,
            Local::Waits => {
                let maps: Api<ConfigMap> = Api::namespaced(self.client.clone(), &self.namespace);
                for volume in spec.volumes.into_iter().flatten() {
                    let Some(map) = volume.config_map else { continue };
                    if !matches!(maps.get_opt(&map.name).await, Ok(Some(_))) {
                        return;
                    }
                }
                *local = Local::Runs;
                *started.lock().unwrap().entry(attempt).or_default() += 1;
                report(pods, pod, "Running", json!({"running": {"startedAt": "2026-01-01T00:00:00Z"}})).await;
            }
            Local::Runs if deleting => {
                *local = Local::Ended;
                report(pods, pod, "Failed", json!({"terminated": {"exitCode": 143, "reason": "Error"}})).await;
            }
            Local::Runs => {
                let Some(code) = usize::try_from(attempt - 1).ok().and_then(|at| self.exit_codes.get(at)) else {
                    return;
                };
                let running = "SELECT state = 'RUNNING' AND attempt = $1 FROM submissions";
                let is_seen: Result<bool, _> = sqlx::query_scalar(running).bind(attempt).fetch_one(&self.pool).await;
                if is_seen.unwrap_or_default() {
                    *local = Local::Ended;
                    let (phase, reason) = if *code == 0 { ("Succeeded", "Completed") } else { ("Failed", "Error") };
                    report(pods, pod, phase, json!({"terminated": {"exitCode": code, "reason": reason}})).await;
                }
            }
            Local::Ended if deleting && pod.metadata.deletion_grace_period_seconds != Some(0) => {
                let only = Preconditions { uid: pod.metadata.uid.clone(), resource_version: None };
                let _ = pods.delete(&name, &DeleteParams::default().grace_period(0).preconditions(only)).await;
            }
            Local::Ended => {}
        }
    }
}

async fn report(pods: &Api<Pod>, pod: &Pod, phase: &str, state: Value) {
    let name = pod.metadata.name.clone().unwrap_or_default();
    let status = json!({"status": {"phase": phase, "podIP": "10.1.2.3", "containerStatuses": [{
        "name": "spark-kubernetes-driver", "image": "spark", "imageID": "", "ready": true, "restartCount": 0,
        "state": state}]}});
    pods.patch_status(&name, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
}
