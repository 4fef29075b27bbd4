//! One list+watch of the pods of drivers and executors, for one namespace or all, as a stream that never ends.

mod event;
mod pace;
pub(super) mod pods;
mod scope;
mod sort;

use std::{collections::HashSet, time::Duration};

use futures::{Stream, stream};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

pub use self::pace::WatchPace;
use self::{pods::Pods, scope::Scope};
use super::{Cluster, Error, error::in_time};
use crate::submission::{ExecutorKey, ExecutorObservation, Observation, SubmissionId};

/// One driver pod: its submission, attempt and uid.
pub type PodKey = (SubmissionId, i32, String);

/// What the watch tells.
#[derive(Debug, PartialEq)]
pub enum Seen {
    /// A driver pod as it is now, or as it was last before it went.
    Driver(Box<Observation>),
    /// The same of an executor.
    Executor(Box<ExecutorObservation>),
    /// A full list is through (at start, after every gap and every ten minutes): these pods existed when it was made.
    Listed { drivers: HashSet<PodKey>, executors: HashSet<ExecutorKey> },
    /// The API server can't be listed or watched just now; it is tried again, after a growing pause. Whatever is told
    /// next means that it can.
    Broken { reason: String },
}

/// One thing that the watch tells, and how far one may go on from after it.
#[derive(Debug, PartialEq)]
pub struct Shown {
    pub seen: Option<Seen>,
    /// Whoever took in this and all before it may resume from there.
    pub resource_version: Option<String>,
}

/// What is read from the API server and not yet asked for here.
const AHEAD: usize = 64;

/// A list of one pod comes at once, or something is wrong.
const ONE_POD: Duration = Duration::from_secs(5);

impl Cluster {
    /// Tries the list that a watch of `namespace`, `None` meaning everywhere, begins with, for one pod.
    ///
    /// # Errors
    /// A watch would have the same trouble.
    pub async fn can_watch(&self, namespace: Option<&str>) -> Result<(), Error> {
        let pods = Pods::new(self, namespace);
        in_time("listing our pods", ONE_POD, pods.page(1, None)).await?.map(drop)
    }

    /// Watches the pods of `namespace`, `None` meaning everywhere, until the stream is dropped.
    ///
    /// It begins with a list: each pod, then [`Seen::Listed`]. With `resume`, everything that happened since that resource
    /// version comes before [`Seen::Listed`], as long as the API server remembers it: so a pod that ended and went
    /// while nobody watched is shown with its end before the list shows that it isn't there. The same goes for every
    /// later list. Because of that a pod may be shown as it is, and then again as it was shortly before.
    pub fn watch(
        &self,
        namespace: Option<String>,
        resume: Option<String>,
    ) -> impl Stream<Item = Shown> + Send + Unpin + 'static {
        let (tell, told) = mpsc::channel(AHEAD);
        let pods = Pods::new(self, namespace.as_deref());
        // A task of its own reads on while what was told is taken in; it ends with the stream.
        let task = AbortOnDropHandle::new(tokio::spawn(Scope::new(pods, self.pace.clone(), tell).run(resume)));
        Box::pin(stream::unfold((told, task), |(mut told, task)| async move {
            let shown = told.recv().await?;
            Some((shown, (told, task)))
        }))
    }
}
