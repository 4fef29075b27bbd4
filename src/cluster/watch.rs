//! One list+watch of driver pods for each watched namespace, as a stream that never ends.

use std::collections::HashSet;

use futures::{Stream, StreamExt, future, stream};
use kube::runtime::{
    WatchStreamExt,
    watcher::{self, Event},
};

use super::{Cluster, driver_pod::DriverPod, labels, observe::observation};
use crate::submission::{Observation, SubmissionId};

/// One attempt of a submission.
pub type PodKey = (SubmissionId, i32);

/// What the watch tells.
#[derive(Debug)]
pub enum Seen {
    /// A driver pod as it is now, or as it was last before it went.
    Pod(Box<Observation>),
    /// A full list is through (at start and after every gap): these pods exist in `namespace`, `None` meaning everywhere.
    Listed { namespace: Option<String>, pods: HashSet<PodKey> },
    /// The API server can't be watched just now; it is tried again with a growing delay.
    Broken { reason: String },
}

impl Cluster {
    /// Watches driver pods. Bookmarks and resumption are kube's; a watch is renewed each minute so that a dead connection
    /// is noticed.
    pub fn watch_drivers(&self) -> impl Stream<Item = Seen> + Send + 'static {
        let names: Vec<Option<String>> = match self.namespaces() {
            [] => vec![None],
            some => some.iter().cloned().map(Some).collect(),
        };
        let apis = self.watched_pods::<DriverPod>().into_iter().map(|(_, api)| api);
        let config = watcher::Config::default().labels(labels::DRIVERS).timeout(50);
        let streams = names.into_iter().zip(apis).map(|(namespace, api)| {
            let mut listed = HashSet::new();
            kube::runtime::watcher(api, config.clone())
                .default_backoff()
                .filter_map(move |event| future::ready(translate(event, namespace.as_ref(), &mut listed)))
                .boxed()
        });
        stream::select_all(streams)
    }
}

fn translate(
    event: watcher::Result<Event<DriverPod>>,
    namespace: Option<&String>,
    listed: &mut HashSet<PodKey>,
) -> Option<Seen> {
    let seen = |pod: &DriverPod, gone| observation(pod, gone).map(|seen| Seen::Pod(Box::new(seen)));
    match event {
        Ok(Event::Init) => {
            listed.clear();
            None
        }
        Ok(Event::InitApply(pod)) => {
            let seen = observation(&pod, false)?;
            listed.insert((seen.submission.clone(), seen.attempt));
            Some(Seen::Pod(Box::new(seen)))
        }
        Ok(Event::InitDone) => Some(Seen::Listed { namespace: namespace.cloned(), pods: std::mem::take(listed) }),
        Ok(Event::Apply(pod)) => seen(&pod, false),
        Ok(Event::Delete(pod)) => seen(&pod, true),
        // Too old a version is no outage: a list follows.
        Err(watcher::Error::WatchError(status)) if status.code == 410 => None,
        Err(error) => Some(Seen::Broken { reason: error.to_string() }),
    }
}
