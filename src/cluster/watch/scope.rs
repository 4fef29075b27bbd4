//! The loop of one list+watch.

use std::{collections::HashSet, error::Error as _, time::Duration};

use kube::core::Status;
use tokio::{
    sync::mpsc,
    time::{Instant, timeout_at},
};

use super::{
    PodKey, Seen, Shown, WatchPace,
    pace::Pause,
    pods::{Event, Page, Pods, bookmark},
    sort::{Key, Sorted, sort},
};
use crate::{cluster::Error, submission::ExecutorKey};

pub(super) struct Scope {
    pods: Pods,
    pace: WatchPace,
    pause: Pause,
    tell: mpsc::Sender<Shown>,
    /// The last thing that was told is [`Seen::Broken`].
    broken: bool,
}

/// A full list, the pods of which have been told.
#[derive(Default)]
struct List {
    version: String,
    drivers: HashSet<PodKey>,
    executors: HashSet<ExecutorKey>,
}

/// Why a watch ended before its time.
enum Trouble {
    /// It can be tried again from where it was.
    Broken(String),
    /// There is no way on from where it was: too old a version, or one that the server doesn't know at all.
    Lost(String),
    /// The server ended it at once, without a word.
    Hasty,
}

impl Scope {
    pub(super) fn new(pods: Pods, pace: WatchPace, tell: mpsc::Sender<Shown>) -> Self {
        Self { pods, pause: Pause::new(&pace), pace, tell, broken: false }
    }

    pub(super) async fn run(mut self, resume: Option<String>) {
        let mut position = resume;
        loop {
            let list = self.list().await;
            position = self.follow(position, list).await;
        }
    }

    /// Lists until a list is through.
    async fn list(&mut self) -> List {
        loop {
            match self.pages().await {
                Ok(list) => return list,
                // The list took so long that the server forgot the moment it shows.
                Err(Error::Refused { code: 410, .. }) => self.pause.wait().await,
                Err(error) => self.fail(reason(&error)).await,
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
                let Sorted { seen, key, .. } = sort(pod.get(), false);
                match key {
                    Some(Key::Driver(key)) => drop(list.drivers.insert(key)),
                    Some(Key::Executor(key)) => drop(list.executors.insert(key)),
                    None => {}
                }
                if seen.is_some() {
                    self.tell(seen, None).await;
                }
            }
            if page.metadata.next.is_empty() {
                list.version = page.metadata.resource_version;
                return Ok(list);
            }
            next = Some(page.metadata.next);
        }
    }

    /// Watches until it is time for another list. Answers the version up to which everything was told, `None` if the
    /// server has forgotten what came after it.
    async fn follow(&mut self, past: Option<String>, list: List) -> Option<String> {
        let relist = Instant::now() + self.pace.relist;
        let mut position = list.version.clone();
        let mut unsettled = None;
        match past.filter(|past| is_before(past, &list.version)) {
            // What went between the two is not in the list: its end must be told before the list is.
            Some(past) => {
                position = past;
                unsettled = Some(list);
            }
            None => self.settle(list, &position).await,
        }
        while unsettled.is_some() || Instant::now() < relist {
            match self.watch(&mut position, &mut unsettled).await {
                Ok(()) => {}
                Err(Trouble::Hasty) => self.pause.wait().await,
                Err(Trouble::Broken(reason)) => self.fail(reason).await,
                Err(Trouble::Lost(reason)) => {
                    tracing::debug!(%position, %reason, "the watch of pods can't go on from where it was");
                    self.pause.wait().await;
                    let list = unsettled.take()?;
                    position = list.version.clone();
                    self.settle(list, &position).await;
                }
            }
        }
        Some(position)
    }

    /// One watch, from `position` on and to its end.
    async fn watch(&mut self, position: &mut String, unsettled: &mut Option<List>) -> Result<(), Trouble> {
        let begin = Instant::now();
        let renewal = Duration::from_secs(self.pace.renewal.into());
        let end = begin + renewal + self.pace.grace;
        let mut lines = self.pods.watch(position, self.pace.renewal).await.map_err(|error| sort_trouble(&error))?;
        if self.broken {
            self.tell(None, Some(position.clone())).await;
        }
        loop {
            // Telling may have taken longer than the watch itself: that is no silence.
            let end = end.max(Instant::now() + self.pace.grace);
            let quiet = unsettled.as_ref().map_or(end, |_| end.min(Instant::now() + self.pace.settling));
            let line = match timeout_at(quiet, lines.next()).await {
                Ok(Ok(Some(line))) => line,
                Ok(Ok(None)) if begin.elapsed() < renewal / 2 => return Err(Trouble::Hasty),
                Ok(Ok(None)) => {
                    self.pause.reset();
                    return Ok(());
                }
                Ok(Err(error)) => return Err(Trouble::Broken(format!("the watch of pods broke off: {error}"))),
                Err(_) => {
                    let Some(list) = unsettled.take_if(|_| quiet < end) else {
                        return Err(Trouble::Broken("the watch of pods has been silent for too long".to_owned()));
                    };
                    position.clone_from(&list.version);
                    self.settle(list, position).await;
                    continue;
                }
            };
            let Sorted { seen, resource_version, .. } = event(line)?;
            self.pause.reset();
            if let Some(version) = &resource_version {
                position.clone_from(version);
            }
            if seen.is_some() || resource_version.is_some() {
                self.tell(seen, resource_version).await;
            }
            if let Some(list) = unsettled.take_if(|list| !is_before(position, &list.version)) {
                self.settle(list, position).await;
            }
        }
    }

    /// All that happened before this list has been told.
    async fn settle(&mut self, list: List, position: &str) {
        let List { drivers, executors, .. } = list;
        self.tell(Some(Seen::Listed { drivers, executors }), Some(position.to_owned())).await;
    }

    async fn fail(&mut self, reason: String) {
        self.tell(Some(Seen::Broken { reason }), None).await;
        self.broken = true;
        self.pause.wait().await;
    }

    async fn tell(&mut self, seen: Option<Seen>, resource_version: Option<String>) {
        self.broken = false;
        // Without a reader this task is about to be ended.
        let _ = self.tell.send(Shown { seen, resource_version }).await;
    }
}

/// What a line tells; nothing if it is none that we know.
fn event(line: &[u8]) -> Result<Sorted, Trouble> {
    let event: Event<'_> = match serde_json::from_slice(line) {
        Ok(event) => event,
        Err(error) => {
            tracing::error!(%error, "an event of the watch of pods can't be read and is passed over");
            return Ok(Sorted::default());
        }
    };
    match event.kind {
        "ADDED" | "MODIFIED" => Ok(sort(event.object.get(), false)),
        "DELETED" => Ok(sort(event.object.get(), true)),
        "BOOKMARK" => Ok(Sorted { resource_version: bookmark(event.object.get()), ..Sorted::default() }),
        "ERROR" => {
            let status: Status = serde_json::from_str(event.object.get()).unwrap_or_default();
            let reason = format!("the watch of pods broke off: {}", status.message);
            Err(if is_lost(status.code) { Trouble::Lost(reason) } else { Trouble::Broken(reason) })
        }
        _ => Ok(Sorted::default()),
    }
}

fn sort_trouble(error: &Error) -> Trouble {
    let code = match error {
        Error::Refused { code, .. } => *code,
        Error::Unavailable { source, .. } => match source.downcast_ref() {
            Some(kube::Error::Api(status)) => status.code,
            _ => 0,
        },
        _ => 0,
    };
    if is_lost(code) { Trouble::Lost(reason(error)) } else { Trouble::Broken(reason(error)) }
}

/// Whether a status says that the version is too old (410), not one at all (400), or of the future (504): only a list
/// helps.
fn is_lost(code: u16) -> bool {
    matches!(code, 400 | 410 | 504)
}

/// Versions of one kind of object can be compared as numbers (KEP-5504); what is none comes before nothing.
fn is_before(one: &str, other: &str) -> bool {
    matches!((one.parse::<u64>(), other.parse::<u64>()), (Ok(one), Ok(other)) if one < other)
}

fn reason(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
