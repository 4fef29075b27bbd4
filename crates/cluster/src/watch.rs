//! One list+watch of the pods of drivers and executors, for one namespace or all, as a stream that never ends.

mod event;
pub(super) mod pace;
pub(super) mod pods;
mod report;
mod scope;
mod sort;

use std::time::Duration;

use futures::{Stream, stream};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

pub use self::{
    pace::WatchPace,
    report::{PodKey, WatchItem, WatchReport},
};
use self::{pods::Pods, scope::Scope};
use super::{call::in_time, cluster::Cluster, error::Error};

/// Items that are read ahead from the API server before the caller asks for them.
const AHEAD: usize = 64;

/// Timeout for a list of no pod, which the API server answers at once unless something is wrong.
const NO_POD: Duration = Duration::from_secs(5);

impl Cluster {
    /// Lists pods of `namespace` (`None` means everywhere) with the right that a watch begins with: none, and from the API server's
    /// cache, because idle replicas ask often.
    ///
    /// # Errors
    /// The list fails; a watch would fail in the same way.
    pub async fn can_watch(&self, namespace: Option<&str>) -> Result<(), Error> {
        let pods = Pods::new(self, namespace);
        in_time("listing our pods", NO_POD, pods.none()).await?.map(drop)
    }

    /// Watches the pods of `namespace` (`None` means everywhere) until the stream is dropped.
    ///
    /// The stream begins with a list: each pod, then [`WatchReport::Listed`]. With `resume`, everything that happened since that
    /// resource version comes before [`WatchReport::Listed`], as long as the API server remembers it. So a pod that ended and was
    /// removed while no replica watched is reported with its end before the list shows that the pod no longer exists. The same
    /// holds for every later list. As a consequence, a pod may be reported in its current state, and then again in a slightly
    /// earlier one.
    pub fn watch(
        &self,
        namespace: Option<String>,
        resume: Option<String>,
    ) -> impl Stream<Item = WatchItem> + Send + Unpin + 'static {
        let (sender, receiver) = mpsc::channel(AHEAD);
        let pods = Pods::new(self, namespace.as_deref());
        // A separate task reads on while the caller processes earlier items. It ends with the stream.
        let task = AbortOnDropHandle::new(tokio::spawn(Scope::new(pods, self.pace.clone(), sender).run(resume)));
        Box::pin(stream::unfold((receiver, task), |(mut receiver, task)| async move {
            let item = receiver.recv().await?;
            Some((item, (receiver, task)))
        }))
    }
}
