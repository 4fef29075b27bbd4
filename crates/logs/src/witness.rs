//! The logs as the witness of drivers.

use futures::{FutureExt, future::BoxFuture};

use super::{DriverLogs, kept::archived};
use sparkgate_cluster::{LogOf, WatchReport};
use sparkgate_common::error::Error;
use sparkgate_core::witness::{Archived, Witness};
use sparkgate_store::KeptLog;
use sparkgate_submission::{Outcome, PodEvent, SubmissionId};

impl Witness for DriverLogs {
    fn begin<'a>(&'a self, scope: Option<&str>) -> Box<dyn Send + 'a> {
        Box::new(self.keeper.as_ref().map(|keeper| keeper.begin(scope)))
    }

    fn observe(&self, scope: Option<&str>, report: &WatchReport) {
        let Some(keeper) = &self.keeper else { return };
        match report {
            WatchReport::Driver(observed) => keeper.note_driver(scope, observed),
            WatchReport::Executor(observed) => keeper.note_executor(scope, observed),
            WatchReport::Listed { .. } => keeper.note_list(scope),
            WatchReport::Broken { .. } => {}
        }
    }

    fn cause<'a>(
        &'a self,
        outcome: &'a Outcome,
        id: &'a SubmissionId,
        attempt: i32,
        of: &'a LogOf<'a>,
    ) -> BoxFuture<'a, Option<String>> {
        self.cause_of(outcome, id, attempt, of).boxed()
    }

    fn archive<'a>(&'a self, id: &'a SubmissionId, attempt: i32, of: &'a LogOf<'a>) -> BoxFuture<'a, ()> {
        self.archive_once(id, attempt, of).boxed()
    }

    fn read(&self, kept: KeptLog) -> Archived {
        archived(kept)
    }

    fn archived<'a>(&'a self, id: &'a SubmissionId, attempt: i32) -> BoxFuture<'a, Result<Archived, Error>> {
        async move { Ok(self.store.all().kept_log(id, attempt).await?.map(archived).unwrap_or_default()) }.boxed()
    }

    fn pod_events<'a>(
        &'a self,
        id: &'a SubmissionId,
        namespace: &'a str,
        uid: &'a str,
    ) -> BoxFuture<'a, Vec<PodEvent>> {
        self.events_now(id, namespace, uid).boxed()
    }
}
