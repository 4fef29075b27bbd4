//! The loop of one list+watch.

use std::{collections::HashSet, time::Duration};

use tokio::{
    sync::mpsc,
    time::{Instant, timeout_at},
};

use super::{
    event::{Trouble, event},
    pace::{Pause, WatchPace},
    pods::{Page, Pods},
    report::{PodKey, WatchItem, WatchReport},
    sort::{Key, Sorted, sort},
};
use crate::error::Error;
use sparkgate_submission::{ExecutorKey, error_chain};

pub(super) struct Scope {
    pods: Pods,
    pace: WatchPace,
    pause: Pause,
    tell: mpsc::Sender<WatchItem>,
    /// The last item that was sent is [`WatchReport::Broken`].
    broken: bool,
}

/// A full list, whose pods have been reported.
#[derive(Default)]
struct List {
    version: String,
    drivers: HashSet<PodKey>,
    executors: HashSet<ExecutorKey>,
}

impl Scope {
    pub(super) fn new(pods: Pods, pace: WatchPace, tell: mpsc::Sender<WatchItem>) -> Self {
        Self { pods, pause: Pause::new(&pace), pace, tell, broken: false }
    }

    pub(super) async fn run(mut self, resume: Option<String>) {
        let mut position = resume;
        loop {
            let list = self.list().await;
            position = Some(self.follow(position, list).await);
        }
    }

    /// Retries until a full list is complete.
    async fn list(&mut self) -> List {
        loop {
            match self.pages().await {
                Ok(list) => return list,
                // The list took so long that the server no longer has the version that the list shows.
                Err(Error::Refused { code: 410, .. }) => self.pause.wait().await,
                Err(error) => self.fail(error_chain(&error), error.retry_after()).await,
            }
        }
    }

    async fn pages(&mut self) -> Result<List, Error> {
        let mut list = List::default();
        let mut next = None;
        loop {
            let text = self.pods.page(self.pace.page, next.as_deref()).await?;
            let page: Page<'_> = serde_json::from_str(&text).map_err(|error| Error::Unavailable {
                action: "reading a list of pods".to_owned(),
                source: Box::new(error),
            })?;
            for pod in page.items.into_iter().flatten() {
                let Sorted { report, key, .. } = sort(pod.get(), false, self.pods.installation());
                match key {
                    Some(Key::Driver(key)) => drop(list.drivers.insert(key)),
                    Some(Key::Executor(key)) => drop(list.executors.insert(key)),
                    None => {}
                }
                if report.is_some() {
                    self.tell(report, None).await;
                }
            }
            if page.metadata.next.is_empty() {
                list.version = page.metadata.resource_version;
                return Ok(list);
            }
            next = Some(page.metadata.next);
        }
    }

    /// Watches until it is time for another list, or until only a list can help. Returns the version up to which everything
    /// was reported.
    async fn follow(&mut self, past: Option<String>, list: List) -> String {
        let relist = Instant::now() + self.pace.until_relist();
        let mut position = list.version.clone();
        let mut unsettled = None;
        match past.filter(|past| is_before(past, &list.version)) {
            // A pod that was removed between the two versions is not in the list: its end must be reported before the list.
            Some(past) => {
                position = past;
                unsettled = Some(list);
            }
            None => self.settle(list, &mut position).await,
        }
        while unsettled.is_some() || Instant::now() < relist {
            match self.watch(&mut position, &mut unsettled).await {
                Ok(()) => {}
                Err(Trouble::Hasty) => self.pause.wait().await,
                Err(Trouble::Broken(reason, asked)) => self.fail(reason, asked).await,
                Err(Trouble::Lost(reason)) => {
                    tracing::debug!(%position, %reason, "the watch of pods can't resume from its position");
                    self.pause.wait().await;
                    // The first time, the list is still unsettled, and the watch continues from its version. The second time,
                    // that version is lost too, and a new list is needed. Only what the server has forgotten is missed.
                    let Some(list) = unsettled.take() else { return position };
                    self.settle(list, &mut position).await;
                }
            }
        }
        position
    }

    /// Runs one watch, from `position` to its end.
    async fn watch(&mut self, position: &mut String, unsettled: &mut Option<List>) -> Result<(), Trouble> {
        let begin = Instant::now();
        let renewal = Duration::from_secs(self.pace.renewal.into());
        let end = begin + renewal + self.pace.grace;
        if self.broken {
            self.is_continued(position).await?;
        }
        let mut lines = self.pods.watch(position, self.pace.renewal).await.map_err(|error| Trouble::of(&error))?;
        if self.broken {
            self.tell(None, Some(position.clone())).await;
        }
        let mut silent = true;
        loop {
            // Sending an item may have taken longer than the watch itself, which doesn't count as silence.
            let end = end.max(Instant::now() + self.pace.grace);
            let quiet = unsettled.as_ref().map_or(end, |_| end.min(Instant::now() + self.pace.settling));
            let line = match timeout_at(quiet, lines.next()).await {
                Ok(Ok(Some(line))) => line,
                Ok(Ok(None)) => break,
                Ok(Err(error)) => return Err(Trouble::broke_off(error_chain(&error))),
                Err(_) => {
                    let Some(list) = unsettled.take_if(|_| quiet < end) else {
                        return Err(Trouble::broke_off("the connection was silent for too long"));
                    };
                    self.settle(list, position).await;
                    continue;
                }
            };
            let Sorted { report, resource_version, .. } = event(line, self.pods.installation())?;
            silent = false;
            self.pause.reset();
            if let Some(version) = &resource_version {
                position.clone_from(version);
            }
            if report.is_some() || resource_version.is_some() {
                self.tell(report, resource_version).await;
            }
            if let Some(list) = unsettled.take_if(|list| !is_before(position, &list.version)) {
                self.settle(list, position).await;
            }
        }
        if let Some(list) = unsettled.take_if(|_| silent) {
            self.settle(list, position).await;
        }
        if begin.elapsed() < renewal / 2 {
            return Err(Trouble::Hasty);
        }
        self.pause.reset();
        Ok(())
    }

    /// Checks after an interruption that the cluster's history still contains this position: etcd may have been restored from a
    /// backup meanwhile. An API server accepts a watch from a version in the future without an error, and reports nothing.
    async fn is_continued(&self, position: &str) -> Result<(), Trouble> {
        let newest = self.pods.newest().await.map_err(|error| Trouble::of(&error))?;
        if is_before(&newest, position) {
            return Err(Trouble::Lost(format!(
                "the cluster is at version {newest} and was at {position}: it was restored"
            )));
        }
        Ok(())
    }

    /// Reports the list, now that everything that happened before it has been reported.
    async fn settle(&mut self, list: List, position: &mut String) {
        let List { version, drivers, executors } = list;
        if is_before(position, &version) {
            *position = version;
        }
        self.tell(Some(WatchReport::Listed { drivers, executors }), Some(position.clone())).await;
    }

    /// Reports a failure, and waits at least as long as the server asked for.
    async fn fail(&mut self, reason: String, asked: Option<Duration>) {
        self.tell(Some(WatchReport::Broken { reason }), None).await;
        self.broken = true;
        self.pause.wait_for(asked.unwrap_or_default()).await;
    }

    async fn tell(&mut self, report: Option<WatchReport>, resource_version: Option<String>) {
        self.broken = false;
        // If the receiver is gone, this task is about to be aborted.
        let _ = self.tell.send(WatchItem { report, resource_version }).await;
    }
}

/// Returns whether one version is before another. Versions of one kind of object can be compared as numbers (KEP-5504); text
/// that is no number is before nothing.
fn is_before(one: &str, other: &str) -> bool {
    matches!((one.parse::<u64>(), other.parse::<u64>()), (Ok(one), Ok(other)) if one < other)
}
