//! One list+watch of driver pods for each watched namespace, as a stream that never ends.

use std::{collections::HashSet, time::Duration};

use futures::{Stream, StreamExt, future, stream};
use kube::runtime::{
    WatchStreamExt,
    watcher::{self, Event},
};

use super::{Cluster, driver_pod::DriverPod, labels, observe::observation};
use crate::submission::{Observation, SubmissionId};

/// One driver pod: its submission, attempt and uid.
pub type PodKey = (SubmissionId, i32, String);

/// What the watch tells.
#[derive(Debug)]
pub enum Seen {
    /// A driver pod as it is now, or as it was last before it went.
    Pod(Box<Observation>),
    /// A full list is through (at start and after every gap): these pods exist in `namespace`, `None` meaning everywhere.
    Listed { namespace: Option<String>, pods: HashSet<PodKey> },
    /// The API server can't be listed or watched just now; it is tried again, after a growing pause.
    Broken { namespace: Option<String>, reason: String },
}

/// A list that fails is tried again after this, doubling up to [`LIST_PAUSE_MAX`]: kube's own back-off starts anew with
/// each attempt to list.
const LIST_PAUSE: Duration = Duration::from_secs(1);
const LIST_PAUSE_MAX: Duration = Duration::from_secs(30);

impl Cluster {
    /// Watches driver pods. Bookmarks and resumption are kube's; a watch is renewed each minute and a silent connection
    /// is given up after another, so that a dead one is noticed.
    pub fn watch_drivers(&self) -> impl Stream<Item = Seen> + Send + 'static {
        let config = watcher::Config::default().labels(labels::DRIVERS).timeout(50);
        let streams = self.watched_pods::<DriverPod>().into_iter().map(|(namespace, api)| {
            let mut scope = Scope { namespace, listed: HashSet::new(), pause: LIST_PAUSE };
            kube::runtime::watcher(api, config.clone())
                .default_backoff()
                .flat_map(move |event| {
                    let (seen, pause) = scope.translate(event);
                    // The pause comes after what was seen, before the next event is asked for.
                    let pause = stream::iter(pause).then(tokio::time::sleep).filter_map(|()| future::ready(None));
                    stream::iter(seen).chain(pause)
                })
                .boxed()
        });
        stream::select_all(streams)
    }
}

/// One namespace's watch, or that of all.
struct Scope {
    namespace: Option<String>,
    listed: HashSet<PodKey>,
    pause: Duration,
}

impl Scope {
    fn translate(&mut self, event: watcher::Result<Event<DriverPod>>) -> (Option<Seen>, Option<Duration>) {
        let seen = |pod: &DriverPod, gone| observation(pod, gone).map(|seen| Seen::Pod(Box::new(seen)));
        let seen = match event {
            Ok(Event::Init) => {
                self.listed.clear();
                None
            }
            Ok(Event::InitApply(pod)) => observation(&pod, false).map(|seen| {
                self.listed.insert((seen.submission.clone(), seen.attempt, seen.pod_uid.clone()));
                Seen::Pod(Box::new(seen))
            }),
            Ok(Event::InitDone) => {
                self.pause = LIST_PAUSE;
                Some(Seen::Listed { namespace: self.namespace.clone(), pods: std::mem::take(&mut self.listed) })
            }
            Ok(Event::Apply(pod)) => seen(&pod, false),
            Ok(Event::Delete(pod)) => seen(&pod, true),
            // Too old a version is no outage: a list follows.
            Err(watcher::Error::WatchError(status)) if status.code == 410 => None,
            Err(error) => {
                let pause = matches!(error, watcher::Error::InitialListFailed(_)).then_some(self.pause);
                if let Some(pause) = pause {
                    self.pause = (pause * 2).min(LIST_PAUSE_MAX);
                }
                let broken = Seen::Broken { namespace: self.namespace.clone(), reason: error.to_string() };
                return (Some(broken), pause);
            }
        };
        (seen, None)
    }
}
