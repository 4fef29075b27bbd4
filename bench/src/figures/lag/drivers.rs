//! Drivers that were never submitted: their rows come from SQL, their pods from a bare client, and [`super::kubelet`]
//! plays their kubelet.

use std::{collections::VecDeque, ops::Range};

use anyhow::Context;
use futures::{StreamExt, TryStreamExt, stream};
use serde::Deserialize;
use serde_json::{Value, json};
use sparkgate::{
    app::render::render,
    cluster::labels::{ATTEMPT, FINALIZER, INSTANCE, SUBMISSION_ID},
    service::SparkSettings,
};

use sparkgate_testing::request::request;
use tokio::sync::oneshot;

use super::kubelet::{Change, PODS};
use crate::{
    figures::spark::settings,
    load::kubernetes::Client,
    servers::{Database, rows},
};

/// Pods that are created concurrently.
const AT_ONCE: usize = 16;
/// Drivers that run before the first one ends.
const RUNNING: usize = 50;

pub(super) struct Drivers<'a> {
    pub(super) client: Client,
    pub(super) database: &'a Database,
    instance: String,
    /// The numbers of the drivers that wait to run, the oldest first.
    waiting: VecDeque<usize>,
    /// Drivers that run or are about to. The receiver resolves when the API server has the change.
    running: VecDeque<(usize, oneshot::Receiver<()>)>,
    next: usize,
}

impl<'a> Drivers<'a> {
    pub(super) async fn new(client: Client, database: &'a Database) -> anyhow::Result<Self> {
        let store = database.store().await?;
        let instance = store.installation().await?.id.to_string();
        store.close().await;
        Ok(Self { client, database, instance, waiting: VecDeque::new(), running: VecDeque::new(), next: 1 })
    }

    /// Adds drivers until `live` are live, enough for so many changes. No gateway may run meanwhile: it deletes drivers
    /// that have no submission.
    pub(super) async fn top_up(&mut self, live: usize, changes: usize) -> anyhow::Result<()> {
        let first = self.next;
        let needed = (changes / 2 + RUNNING + 1).max(live.saturating_sub(self.running.len()));
        self.next += needed.saturating_sub(self.waiting.len());
        let uids = self.create(first..self.next).await?;
        rows::live(self.database, "PENDING", first, &uids).await?;
        self.waiting.extend(first..self.next);
        // The previous gateway was killed. Deleting its leases saves the wait until they expire.
        sqlx::query("DELETE FROM leases").execute(&mut self.database.connect().await?).await?;
        Ok(())
    }

    /// Starts one driver or, every other time, ends the one that has run for longest.
    pub(super) fn next_change(&mut self, at: usize) -> Option<Change> {
        if at % 2 == 1 && self.running.len() > RUNNING {
            let (number, runs) = self.running.pop_front()?;
            return Some(Change::Ends { number, runs });
        }
        let number = self.waiting.pop_front()?;
        let (tell, runs) = oneshot::channel();
        self.running.push_back((number, runs));
        Some(Change::Begins { number, tell })
    }

    /// Creates the pods of these drivers; returns their uids.
    async fn create(&self, numbers: Range<usize>) -> anyhow::Result<Vec<String>> {
        #[derive(Deserialize)]
        struct Created {
            metadata: Metadata,
        }
        #[derive(Deserialize)]
        struct Metadata {
            uid: String,
        }
        let settings = settings();
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
