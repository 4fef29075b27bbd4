//! Ends that were recorded shortly before this process took over a watch. The process before it removes the finalizer of a pod after
//! the end is recorded, and may have ended in between. If another client took the pod's labels away, no watch shows it any more.

use std::time::Duration;

use futures::{StreamExt, stream};
use tokio::time::sleep;

use super::PodFollower;
use sparkgate_common::{
    error::{Error, error_chain},
    pauses::Pauses,
};
use sparkgate_store::RecentEnd;

/// How long after an end its finalizer may still be there: the writes to a pod are tried for this long.
const AGE: Duration = Duration::from_secs(600);
/// The most ends of one take-over.
const MOST: u32 = 2000;
const AT_ONCE: usize = 4;
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(30);

impl PodFollower {
    /// Removes the finalizers of pods whose ends were recorded before this process watched them, with a few tries.
    pub(super) async fn keep_finishing_recent_ends(&self, namespace: Option<&str>) {
        let mut pauses = Pauses::new(PAUSE, PAUSE_MAX);
        for _ in 0..TRIES {
            let Err(error) = self.finish_recent_ends(namespace).await else { return };
            let pause = pauses.next_pause();
            tracing::warn!(retry_in = ?pause, "finishing recent ends failed: {}", error_chain(&error));
            sleep(pause).await;
        }
    }

    /// Removes the finalizers of pods whose ends were recorded in the last ten minutes, whatever their labels are. Returns how many
    /// there were.
    ///
    /// # Errors
    /// The database doesn't answer, or the cluster to one of the calls; the others are made nevertheless.
    pub async fn finish_recent_ends(&self, namespace: Option<&str>) -> Result<usize, Error> {
        let mut ends = self.store.recent_ends(namespace, AGE, MOST).await?;
        ends.retain(|end| !end.pod.is_empty());
        let remove = |RecentEnd { namespace, pod, pod_uid }: RecentEnd| async move {
            self.cluster.remove_finalizer(&namespace, &pod, &pod_uid).await
        };
        let removed: Vec<_> = stream::iter(ends).map(remove).buffer_unordered(AT_ONCE).collect().await;
        let count = removed.len();
        let failed = removed.into_iter().find_map(Result::err);
        failed.map_or(Ok(count), |error| Err(error.into()))
    }
}
