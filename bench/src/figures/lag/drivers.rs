//! Drivers that were never submitted: their rows come from SQL, their pods from a bare client, and their kubelet is us.

use std::{collections::VecDeque, ops::Range};

use anyhow::Context;
use chrono::{SecondsFormat, Utc};
use futures::{StreamExt, TryStreamExt, stream};
use serde::Deserialize;
use serde_json::{Value, json};
use sparkgate::{
    app::render::render,
    cluster::labels::{ATTEMPT, FINALIZER, INSTANCE, SUBMISSION_ID},
    service::SparkSettings,
    spark::SparkVersion,
    store::{DatabaseSettings, Store},
};

use crate::{
    figures::request::request,
    load::kubernetes::Client,
    servers::{Database, rows},
};

/// Pods that are created at once.
const AT_ONCE: usize = 16;
const PODS: &str = "/api/v1/namespaces/default/pods";
/// Drivers that run before the first one ends.
const RUNNING: usize = 20;

pub(super) struct Drivers<'a> {
    pub(super) client: Client,
    pub(super) database: &'a Database,
    instance: String,
    /// The numbers of those that wait to run, the oldest first.
    waiting: VecDeque<usize>,
    running: VecDeque<usize>,
    next: usize,
}

impl<'a> Drivers<'a> {
    pub(super) async fn new(client: Client, database: &'a Database) -> anyhow::Result<Self> {
        let settings = DatabaseSettings { url: database.url().to_owned(), max_connections: 3 };
        let store = Store::connect(&settings).await?;
        let instance = store.installation().await?.to_string();
        store.close().await;
        Ok(Self { client, database, instance, waiting: VecDeque::new(), running: VecDeque::new(), next: 1 })
    }

    /// Adds new ones until so many are live. No gateway may run meanwhile: it deletes drivers that no submission stands for.
    pub(super) async fn top_up(&mut self, live: usize) -> anyhow::Result<()> {
        let first = self.next;
        self.next += live.saturating_sub(self.waiting.len() + self.running.len());
        let uids = self.create(first..self.next).await?;
        rows::live(self.database, "PENDING", first, &uids).await?;
        self.waiting.extend(first..self.next);
        // The gateway before it was killed, and nobody waits until its leases have run out.
        sqlx::query("DELETE FROM leases").execute(&mut self.database.connect().await?).await?;
        Ok(())
    }

    /// One driver begins to run or, each other time, the one that has run for longest ends.
    pub(super) fn next_change(&mut self, at: usize) -> Option<Change> {
        if at % 2 == 1 && self.running.len() > RUNNING {
            return Some(Change { number: self.running.pop_front()?, ends: true });
        }
        let number = self.waiting.pop_front()?;
        self.running.push_back(number);
        Some(Change { number, ends: false })
    }

    /// Creates their pods; answers the uids.
    async fn create(&self, numbers: Range<usize>) -> anyhow::Result<Vec<String>> {
        #[derive(Deserialize)]
        struct Created {
            metadata: Metadata,
        }
        #[derive(Deserialize)]
        struct Metadata {
            uid: String,
        }
        let settings = SparkSettings {
            version: SparkVersion::V4_3,
            defaults: Default::default(),
            submitter: Default::default(),
            user: "spark".to_owned(),
        };
        let uid = async |number: usize| -> anyhow::Result<String> {
            let created = self.client.post(PODS, self.pod(number, &settings)?).await?;
            let created: Created = serde_json::from_slice(&created).context("reading a pod")?;
            Ok(created.metadata.uid)
        };
        stream::iter(numbers).map(uid).buffered(AT_ONCE).try_collect().await
    }

    fn pod(&self, number: usize, settings: &SparkSettings) -> anyhow::Result<String> {
        let mut list = render(&request(number, "default"), settings)?;
        let mut pod: Value = list["items"][0].take();
        let metadata = &mut pod["metadata"];
        metadata["name"] = rows::pod(number).into();
        metadata["finalizers"] = json!([FINALIZER]);
        for (label, value) in
            [(SUBMISSION_ID, rows::id(number)), (ATTEMPT, "1".into()), (INSTANCE, self.instance.clone())]
        {
            metadata["labels"][label] = value.into();
        }
        Ok(pod.to_string())
    }
}

/// What a kubelet says.
#[derive(Debug, Clone, Copy)]
pub(super) struct Change {
    pub(super) number: usize,
    /// The driver has ended well; otherwise it begins to run.
    pub(super) ends: bool,
}

impl Change {
    pub(super) async fn make(self, client: &Client) -> anyhow::Result<()> {
        let at = Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true);
        let container = "containerd://9f3b1c7e5a2d4f6b8c0e1a3d5f7b9c2e4a6d8f0b1c3e5a7d9f2b4c6e8a0d1f3b";
        let (phase, state) = if self.ends {
            let ended = json!({"exitCode": 0, "reason": "Completed", "startedAt": at, "finishedAt": at});
            ("Succeeded", json!({"running": null, "terminated": ended}))
        } else {
            ("Running", json!({"running": {"startedAt": at}}))
        };
        let status = json!({"status": {"phase": phase, "startTime": at, "hostIP": "10.0.17.21", "podIP": "10.0.29.143",
            "podIPs": [{"ip": "10.0.29.143"}], "containerStatuses": [{"name": "spark-kubernetes-driver",
                "image": "registry.example.com/data/spark:4.3.0", "imageID": "sha256:3c1b7f7f", "containerID": container,
                "ready": !self.ends, "started": !self.ends, "restartCount": 0, "state": state}]}});
        client.merge(&format!("{PODS}/{}/status", rows::pod(self.number)), status.to_string()).await?;
        Ok(())
    }
}
