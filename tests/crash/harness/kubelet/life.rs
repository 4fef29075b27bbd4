//! One pod's life on its node.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::json;
use tokio::{sync::watch, time::sleep};

use super::{api::PodsApi, logs::ContainerLog};
use crate::harness::{
    plan::{Ending, Job},
    truth::{Played, Truth},
};

/// The kubelet's view of a pod.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sight {
    /// It has a node. Only then the kubelet sees it.
    pub(super) bound: bool,
    pub(super) deleting: bool,
    /// It is being deleted without a grace period.
    pub(super) forced: bool,
    pub(super) gone: bool,
}

pub(super) struct Life {
    pub(super) api: PodsApi,
    pub(super) truth: Arc<Truth>,
    pub(super) log: ContainerLog,
    pub(super) hold: watch::Receiver<bool>,
    pub(super) sight: watch::Receiver<Sight>,
    pub(super) job: Job,
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) container: String,
    /// The `ConfigMap`s without which its container can't start.
    pub(super) config_maps: Vec<String>,
}

impl Life {
    pub(super) async fn live(self) {
        tokio::select! {
            biased;
            () = self.is_deleted() => self.played(Played::NeverStarted),
            () = self.prepare() => self.run().await,
        }
        let told = || self.truth.note(&self.uid, |pod| pod.told = true);
        if self.keeps_its_pod() {
            told();
        }
        self.is_deleted().await;
        self.api.delete(&self.name, &self.uid, 0).await;
        told();
    }

    /// Returns whether the pod stays after its end until it is deleted by another client.
    fn keeps_its_pod(&self) -> bool {
        let stays = matches!(self.job.ending, Ending::Exit(_) | Ending::OutOfMemory | Ending::Evicted);
        stays && !self.sight.borrow().deleting
    }

    /// Binds it to a node and waits for its volumes.
    async fn prepare(&self) {
        self.api.bind(&self.name).await;
        let mut sight = self.sight.clone();
        let _ = sight.wait_for(|sight| sight.bound).await;
        for name in &self.config_maps {
            while !self.api.has_config_map(name).await {
                sleep(Duration::from_millis(50)).await;
            }
        }
        sleep(self.job.pulls).await;
    }

    async fn run(&self) {
        self.truth.note(&self.uid, |pod| {
            pod.started = true;
            pod.began = Some(Instant::now());
        });
        self.log.write(20);
        self.report("Running", json!({"running": {"startedAt": now()}})).await;
        tokio::select! {
            biased;
            () = self.is_deleted() => self.terminate(Played::Terminated).await,
            () = self.time_passes() => self.end().await,
            () = self.writes() => {}
        }
    }

    /// Writes a line now and then, until the container is ended.
    async fn writes(&self) {
        loop {
            sleep(Duration::from_millis(150)).await;
            self.log.write(1);
        }
    }

    /// Ends when the container has run for its time. A server never has.
    async fn time_passes(&self) {
        if self.job.session {
            std::future::pending().await
        }
        sleep(self.job.runs).await;
        let mut hold = self.hold.clone();
        let _ = hold.wait_for(|hold| !hold).await;
    }

    /// Ends the container as planned.
    async fn end(&self) {
        match self.job.ending {
            Ending::Exit(code) => self.exit(code).await,
            Ending::ExitThenDeleted(code) => {
                self.exit(code).await;
                // Times in Kubernetes are whole seconds, and the order of the two must be visible.
                sleep(Duration::from_millis(1100)).await;
                self.by_others();
                self.api.delete(&self.name, &self.uid, 30).await;
            }
            Ending::Preempted => {
                self.by_others();
                self.disrupt(json!({}), "PreemptionByScheduler").await;
                self.api.delete(&self.name, &self.uid, 30).await;
                self.is_deleted().await;
                self.terminate(Played::Preempted).await;
            }
            Ending::OutOfMemory => {
                self.played(Played::OutOfMemory);
                self.exited(137, "OOMKilled").await;
            }
            Ending::Evicted => {
                self.played(Played::Evicted);
                let status = json!({"phase": "Failed", "reason": "Evicted", "containerStatuses": null,
                    "message": "The node was low on resource: memory."});
                self.api.patch_status(&self.name, &self.uid, status).await;
            }
            Ending::DeletedByOthers => {
                self.by_others();
                self.api.delete(&self.name, &self.uid, 30).await;
                self.is_deleted().await;
                self.terminate(Played::Terminated).await;
            }
            Ending::ForceDeleted => {
                self.by_others();
                self.played(Played::ForceDeleted);
                self.api.delete(&self.name, &self.uid, 0).await;
            }
            Ending::NodeVanished => {
                self.by_others();
                self.played(Played::NodeVanished);
                self.disrupt(json!({"phase": "Failed"}), "DeletionByPodGC").await;
                self.api.delete(&self.name, &self.uid, 0).await;
            }
        }
    }

    /// Ends the container on SIGTERM, because the pod is being deleted.
    async fn terminate(&self, what: Played) {
        let sight = *self.sight.borrow();
        if sight.gone {
            return self.played(Played::ForceDeleted);
        }
        // An API server with a stale cache may still consider the pod unbound, and grant no grace period.
        self.truth.note(&self.uid, |pod| pod.forced |= sight.forced);
        self.played(what);
        self.exited(143, "Error").await;
    }

    /// Marks the pod as one that the cluster is about to terminate.
    async fn disrupt(&self, mut status: serde_json::Value, reason: &str) {
        status["conditions"] = json!([{"type": "DisruptionTarget", "status": "True", "reason": reason,
            "message": "the cluster ends it", "lastTransitionTime": now()}]);
        self.api.patch_status(&self.name, &self.uid, status).await;
    }

    async fn exit(&self, code: i32) {
        self.played(Played::Exited(code));
        self.exited(code, if code == 0 { "Completed" } else { "Error" }).await;
    }

    async fn exited(&self, code: i32, reason: &str) {
        self.log.write(5);
        self.log.end();
        let phase = if code == 0 { "Succeeded" } else { "Failed" };
        let ended =
            json!({"terminated": {"exitCode": code, "reason": reason, "startedAt": now(), "finishedAt": now()}});
        self.report(phase, ended).await;
    }

    async fn report(&self, phase: &str, state: serde_json::Value) {
        let status = json!({"phase": phase, "podIP": "10.1.2.3", "containerStatuses": [{"name": self.container,
            "image": "spark", "imageID": "", "ready": phase == "Running", "restartCount": 0, "state": state}]});
        self.api.patch_status(&self.name, &self.uid, status).await;
    }

    async fn is_deleted(&self) {
        let mut sight = self.sight.clone();
        let _ = sight.wait_for(|sight| sight.deleting || sight.gone).await;
    }

    fn played(&self, what: Played) {
        self.truth.note(&self.uid, |pod| {
            pod.played = Some(what);
            pod.ended.get_or_insert_with(Instant::now);
        });
    }

    fn by_others(&self) {
        self.truth.note(&self.uid, |pod| pod.by_others = true);
    }
}

fn now() -> String {
    chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Secs, true)
}
