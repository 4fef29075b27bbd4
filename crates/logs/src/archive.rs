//! Archives what is needed of a driver after its pod is deleted: the last part of its log, and the relevant events.
//!
//! This happens before our finalizer is removed from the pod. For a driver that failed it happens before the outcome is
//! committed, so that the first answer that reports the failure gives its cause; what can't be archived then, and the log of any
//! other driver, is archived after the commit. It delays neither for long: when a node is lost, its logs are, too.

mod end;

use std::time::Duration;

use backon::Retryable;
use futures::StreamExt;
use tokio::time::{sleep, timeout};

use self::end::End;
use super::{DriverLogs, kept::cause_in};
use sparkgate_cluster::{self, LogAnswer, LogOf, LogPart};
use sparkgate_common::{error::error_chain, pauses::a_few_tries};
use sparkgate_metrics::metrics;
use sparkgate_store::{Error, LogEnd};
use sparkgate_submission::{Outcome, PodEvent, State, SubmissionId};
use sparkgate_traces::{Span, SpanKind};

/// Timeout of reading the log of an ended driver, with all retries.
const LOG: Duration = Duration::from_secs(5);
/// Timeouts of reading its events: in the background, and while a client waits.
const EVENTS: Duration = Duration::from_secs(3);
const EVENTS_NOW: Duration = Duration::from_secs(1);
/// Timeout of archiving before an end is recorded.
const BEFORE_END: Duration = Duration::from_secs(2);
/// How long a driver that took too long counts as being archived: a namespace whose nodes don't answer delays the observations of
/// others only rarely.
const LATE: Duration = Duration::from_secs(30);
/// Timeout of a statement, with all retries.
const WRITE: Duration = Duration::from_secs(10);
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(300);

fn count(result: &'static str) {
    metrics().log_archive.with([result]).inc();
}

fn archive_span() -> Span {
    Span::child("archive log", SpanKind::Internal, || [])
}

fn note_archived(id: &SubmissionId, has_log: bool, kept: Result<(), String>) {
    match kept {
        Ok(()) if has_log => count("stored"),
        Ok(()) => {}
        Err(why) => {
            count("failed");
            tracing::warn!(submission = %id, "the driver log isn't archived: {why}");
        }
    }
}

/// Returns the result of a statement with all its tries, or why there is none.
async fn in_time<T>(call: impl Future<Output = Result<T, Error>>) -> Result<T, String> {
    match timeout(WRITE, call).await {
        Ok(result) => result.map_err(|error| error_chain(&error)),
        Err(_) => Err(format!("the database doesn't answer within {WRITE:?}")),
    }
}

impl DriverLogs {
    /// Returns the current events of the driver pod of a submission that waits, or none if the cluster doesn't answer within a
    /// second.
    pub(super) async fn events_now(&self, id: &SubmissionId, namespace: &str, uid: &str) -> Vec<PodEvent> {
        self.events(id, namespace, uid, EVENTS_NOW).await
    }

    /// Archives log and events of a driver that failed, before its outcome is recorded, and returns the cause of the failure.
    /// Returns `None` if the log has none, or if that takes too long or fails.
    pub(super) async fn cause_of(
        &self,
        outcome: &Outcome,
        id: &SubmissionId,
        attempt: i32,
        of: &LogOf<'_>,
    ) -> Option<String> {
        // Without an exit code, its node is gone.
        if outcome.state != State::Failed || outcome.exit_code.is_none() || self.kept_log == 0 {
            return None;
        }
        let one = self.early.try_acquire(&self.access.tenant_of(of.namespace), of.namespace)?;
        let archived = archive_span().enter(self.archive_early(outcome, id, attempt, of));
        let Ok(cause) = timeout(BEFORE_END, archived).await else {
            tokio::spawn(async move {
                sleep(LATE).await;
                drop(one);
            });
            return None;
        };
        cause
    }

    /// Archives the log and the events of a driver whose end isn't recorded yet. Returns the cause of its failure.
    async fn archive_early(
        &self,
        outcome: &Outcome,
        id: &SubmissionId,
        attempt: i32,
        of: &LogOf<'_>,
    ) -> Option<String> {
        let mut end = End::new(self.kept_log);
        let events = self.events(id, of.namespace, of.uid, EVENTS_NOW);
        let (read, events) = futures::join!(self.read_once(of, &mut end), events);
        // Otherwise it is read again later.
        if !matches!(read, Ok(true)) || end.came_too_early() {
            return None;
        }
        let log = Some(end.finish()).filter(|end| !end.text.is_empty());
        // A signal, or a reason of Kubernetes, says more than what the application happened to write last.
        let exited = outcome.reason.as_deref() == Some("Error") && outcome.exit_code.is_some_and(|code| code < 126);
        let cause = log.as_ref().and_then(|log| cause_in(log, exited));
        let has_log = log.is_some();
        // If that fails, it is archived after the commit: the cause doesn't wait.
        note_archived(id, has_log, in_time(self.store.keep_log(id, attempt, log, &events)).await);
        cause
    }

    /// Archives the log and the events of an ended driver, once. A failure is only logged.
    pub(super) async fn archive_once(&self, id: &SubmissionId, attempt: i32, of: &LogOf<'_>) {
        archive_span().enter(self.archive_end(id, attempt, of)).await;
    }

    async fn archive_end(&self, id: &SubmissionId, attempt: i32, of: &LogOf<'_>) {
        futures::join!(self.until_stored(of.uid), self.archive_last_part(id, attempt, of));
    }

    async fn archive_last_part(&self, id: &SubmissionId, attempt: i32, of: &LogOf<'_>) {
        // While the database is away, nothing else goes on either. For other errors the pod doesn't wait.
        let wanted = (|| self.store.log_to_keep(id, attempt, of.uid)).retry(a_few_tries()).when(Error::is_outage);
        let succeeded = match in_time(wanted).await {
            Ok(Some(succeeded)) => succeeded,
            Ok(None) => return,
            Err(why) => return note_archived(id, false, Err(why)),
        };
        let events = async {
            // Events of a successful driver aren't needed.
            if succeeded { Vec::new() } else { self.events(id, of.namespace, of.uid, EVENTS).await }
        };
        let (log, events) = futures::join!(self.log_end(id, of), events);
        if log.is_none() && events.is_empty() {
            return;
        }
        // The pod may go right after this.
        let kept = || self.store.keep_log(id, attempt, log.clone(), &events);
        let kept = kept.retry(a_few_tries()).when(Error::is_outage);
        note_archived(id, log.is_some(), in_time(kept).await);
    }

    async fn events(&self, id: &SubmissionId, namespace: &str, uid: &str, limit: Duration) -> Vec<PodEvent> {
        let listed = timeout(limit, async {
            let _one = self.event_lists.acquire(&self.access.tenant_of(namespace), namespace).await;
            self.cluster.pod_events(namespace, uid).await
        });
        match listed.await {
            Ok(Ok(events)) => events,
            Ok(Err(error)) => {
                tracing::debug!(submission = %id, "{}", error_chain(&error));
                Vec::new()
            }
            Err(_) => Vec::new(),
        }
    }

    async fn log_end(&self, id: &SubmissionId, of: &LogOf<'_>) -> Option<LogEnd> {
        if self.kept_log == 0 {
            return None;
        }
        let why = match timeout(LOG, self.read_log_end(of)).await {
            Ok(Ok(end)) => return end,
            Ok(Err(error)) => error_chain(&error),
            Err(_) => format!("its node doesn't return it within {LOG:?}"),
        };
        count("failed");
        tracing::warn!(submission = %id, "the driver log isn't archived: {why}");
        None
    }

    async fn read_log_end(&self, of: &LogOf<'_>) -> Result<Option<LogEnd>, sparkgate_cluster::Error> {
        let mut end = End::new(self.kept_log);
        let mut tries = 1;
        loop {
            match self.read_once(of, &mut end).await {
                Ok(false) => return Ok(None),
                Ok(true) if end.came_too_early() && tries < TRIES => end = end.with_fewer_lines(),
                Ok(true) => return Ok(Some(end.finish()).filter(|end| !end.text.is_empty())),
                Err(sparkgate_cluster::Error::Unavailable { .. }) if tries < TRIES => {
                    end = End::new(self.kept_log);
                    sleep(PAUSE).await;
                }
                Err(error) => return Err(error),
            }
            tries += 1;
        }
    }

    /// Reads the end of the log. Returns whether there is a log.
    async fn read_once(&self, of: &LogOf<'_>, end: &mut End) -> Result<bool, sparkgate_cluster::Error> {
        let part = LogPart { tail: Some(end.lines()), limit: Some(end.limit()), ..LogPart::default() };
        let LogAnswer::Log(mut log) = self.cluster.log(of, &part).await? else { return Ok(false) };
        while let Some(piece) = log.next().await {
            end.take(&piece?);
        }
        Ok(true)
    }
}
