//! When something was seen first: the object of a watch, or the state of a stream.

use std::{collections::HashMap, hash::Hash, time::Duration};

use anyhow::Context;
use serde::{Deserialize, de::DeserializeOwned};
use tokio::{
    sync::watch,
    task::AbortHandle,
    time::{Instant, timeout},
};

use super::{
    events::{Events, Told},
    kubernetes::Client,
    lines::Lines,
};

/// A sighting that doesn't come within this time counts as lost. Twenty JVMs share two processors for minutes.
const PATIENCE: Duration = Duration::from_secs(900);

/// The moment at which each thing was seen first. Following ends when this is dropped.
pub(crate) struct Sightings<K> {
    times: watch::Receiver<HashMap<K, Instant>>,
    task: AbortHandle,
}

/// An event of a watch.
#[derive(Deserialize)]
struct Event<T> {
    object: T,
}

impl<K: Clone + Eq + Hash + Send + Sync + 'static> Sightings<K> {
    /// Watches the objects of a path, in a format of the API server. `key` names what an object shows, if it shows
    /// something.
    pub(crate) async fn watch<T: DeserializeOwned>(
        client: &Client,
        path: &str,
        format: &str,
        key: impl Fn(T) -> Option<K> + Send + 'static,
    ) -> anyhow::Result<Self> {
        let lines = Lines::new(client.watch(path, format).await?);
        Ok(Self::follow(|times| async move { read(lines, key, &times).await }))
    }

    fn follow<F: Future<Output = anyhow::Result<()>> + Send + 'static>(
        read: impl FnOnce(watch::Sender<HashMap<K, Instant>>) -> F,
    ) -> Self {
        let (sender, times) = watch::channel(HashMap::new());
        let read = read(sender);
        // An error drops the sender, which those that wait report.
        let task = tokio::spawn(async move { drop(read.await) }).abort_handle();
        Self { times, task }
    }

    /// Waits until this was seen; returns when.
    pub(crate) async fn of(&self, key: &K) -> anyhow::Result<Instant> {
        let mut times = self.times.clone();
        let seen = timeout(PATIENCE, times.wait_for(|times| times.contains_key(key))).await;
        let seen = seen.with_context(|| format!("not seen after {PATIENCE:?}"))?.context("the stream ended")?;
        seen.get(key).copied().context("it was seen")
    }

    /// Waits until so many things that `wanted` accepts were seen; returns when the last of them was.
    pub(crate) async fn last_of(&self, count: usize, wanted: impl Fn(&K) -> bool) -> anyhow::Result<Instant> {
        let mut times = self.times.clone();
        let all = |times: &HashMap<K, Instant>| times.keys().filter(|key| wanted(key)).count() >= count;
        let seen = timeout(PATIENCE, times.wait_for(all)).await;
        let seen = seen.with_context(|| format!("not {count} seen after {PATIENCE:?}"))?.context("the stream ended")?;
        let wanted = seen.iter().filter(|(key, _)| wanted(key)).map(|(_, at)| *at);
        wanted.max().context("nothing was awaited")
    }
}

impl Sightings<(String, String)> {
    /// Follows the gateway's event stream: submissions with their states.
    pub(crate) fn events(events: Events) -> Self {
        Self::follow(|times| async move { told(events, &times).await })
    }
}

async fn told(mut events: Events, times: &watch::Sender<HashMap<(String, String), Instant>>) -> anyhow::Result<()> {
    loop {
        for Told { submission, state, at } in events.next().await? {
            times.send_modify(|times| {
                times.entry((submission, state)).or_insert(at);
            });
        }
    }
}

impl<K> Drop for Sightings<K> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Reads the events of a watch, a line each, until it ends.
async fn read<K: Eq + Hash, T: DeserializeOwned>(
    mut watch: Lines,
    key: impl Fn(T) -> Option<K>,
    times: &watch::Sender<HashMap<K, Instant>>,
) -> anyhow::Result<()> {
    loop {
        let (at, lines) = watch.next().await?;
        for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let Event { object } = serde_json::from_slice(line).context("reading an event of a watch")?;
            if let Some(key) = key(object) {
                times.send_modify(|times| {
                    times.entry(key).or_insert(at);
                });
            }
        }
    }
}
