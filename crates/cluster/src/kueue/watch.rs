//! A watch of the `Workload`s of a namespace. It only says which attempts to look at again.

use futures::{Stream, StreamExt};
use kube::runtime::{
    WatchStreamExt,
    watcher::{self, Event, watcher},
};

use super::{api::Kueue, state::Workload};

/// What a watch of `Workload`s reports.
#[derive(Debug)]
pub enum WorkloadNews {
    /// This one exists now, or has changed.
    Changed(Box<Workload>),
    /// This one was deleted.
    Gone(Box<Workload>),
    /// The watch was interrupted, and goes on.
    Interrupted(Box<dyn std::error::Error + Send + Sync>),
}

impl Kueue {
    /// Watches the `Workload`s of this installation in a namespace until the stream is dropped. It begins with those that exist, and
    /// reports all of them again after an interruption.
    pub fn watch_workloads(&self, namespace: &str) -> impl Stream<Item = WorkloadNews> + Send + use<> {
        let how = watcher::Config::default().labels(self.selector());
        let installation = self.cluster.installation.clone();
        let events = watcher(self.workloads(namespace), how).default_backoff();
        events.filter_map(move |event| {
            let read = |object| {
                let workload = Workload::read(object, installation.as_deref()?).ok().flatten()?;
                Some(Box::new(workload))
            };
            let news = match event {
                Ok(Event::InitApply(object) | Event::Apply(object)) => read(object).map(WorkloadNews::Changed),
                Ok(Event::Delete(object)) => read(object).map(WorkloadNews::Gone),
                Ok(Event::Init | Event::InitDone) => None,
                Err(error) => Some(WorkloadNews::Interrupted(Box::new(error))),
            };
            std::future::ready(news)
        })
    }
}
