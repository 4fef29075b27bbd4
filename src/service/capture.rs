//! Archives what is needed of a driver after its pod is deleted: the last part of its log, and the relevant events.
//!
//! This happens before our finalizer is removed from the pod. For a driver that failed it happens before the outcome is
//! committed, so that the first answer that reports the failure gives its cause; what can't be archived then, and the log of any
//! other driver, is archived after the commit. It delays neither for long: when a node is lost, its logs are, too.

mod end;

use std::{borrow::Cow, time::Duration};

use futures::StreamExt;
use tokio::time::{sleep, timeout};

use self::end::End;
use super::{Gateway, error::chain, logs::cause_in, perform::Subject};
use crate::{
    cluster::{self, LogAnswer, LogOf, LogPart},
    store::LogEnd,
    submission::{Placement, PodEvent, Progress, State, SubmissionId},
};

/// Maximum number of concurrent lists of events in one namespace: an API server may have to read all its events for those of
/// one pod.
pub(super) const EVENT_LISTS: usize = 4;
/// Timeout of reading the log of an ended driver, with all retries.
const LOG: Duration = Duration::from_secs(5);
/// Timeouts of reading its events: in the background, and while a client waits.
const EVENTS: Duration = Duration::from_secs(3);
const EVENTS_NOW: Duration = Duration::from_secs(1);
/// Timeout of archiving before an end is recorded.
const BEFORE_END: Duration = Duration::from_secs(2);
/// Maximum number of failed drivers of one namespace that are archived concurrently before their end is recorded, and how long
/// one that takes too long counts: a namespace whose nodes don't answer delays the observations of others only rarely.
pub(super) const EARLY: usize = 16;
const LATE: Duration = Duration::from_secs(30);
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(300);

impl Gateway {
    /// Returns the current events of the driver pod of a submission that waits, or none if the cluster doesn't answer within a
    /// second.
    pub async fn pod_events(&self, id: &SubmissionId, namespace: &str, uid: &str) -> Vec<PodEvent> {
        self.events(id, namespace, uid, EVENTS_NOW).await
    }

    /// Returns the progress to record. If it is the end of a driver that failed, archives log and events first, and adds the
    /// cause to the outcome. The end is recorded without that if it takes too long or fails.
    pub(super) async fn with_cause<'a>(
        &self,
        subject: &Subject<'_>,
        progress: &'a Progress,
        placement: &Placement,
    ) -> Cow<'a, Progress> {
        let as_is = Cow::Borrowed(progress);
        let (Progress::Ended(outcome), Some(uid)) = (progress, &placement.pod_uid) else { return as_is };
        // Without an exit code, its node is gone.
        if outcome.state != State::Failed || outcome.exit_code.is_none() || self.kept_log == 0 {
            return as_is;
        }
        let Some(one) = self.early.try_acquire(subject.namespace) else { return as_is };
        match timeout(BEFORE_END, self.keep_early(subject, uid)).await {
            Ok(Some(cause)) => Cow::Owned(Progress::Ended(outcome.clone().because_of(&cause))),
            Ok(None) => as_is,
            Err(_) => {
                tokio::spawn(async move {
                    sleep(LATE).await;
                    drop(one);
                });
                as_is
            }
        }
    }

    /// Archives the log and the events of a driver whose end isn't recorded yet. Returns the cause of its failure.
    async fn keep_early(&self, subject: &Subject<'_>, uid: &str) -> Option<String> {
        let Subject { id, attempt, namespace, pod, .. } = *subject;
        let of = LogOf { namespace, pod, uid };
        let mut end = End::new(self.kept_log);
        let (read, events) = futures::join!(self.read_once(&of, &mut end), self.events(id, namespace, uid, EVENTS_NOW));
        // Otherwise it is read again later.
        if !matches!(read, Ok(true)) || end.came_too_early() {
            return None;
        }
        let log = Some(end.finish()).filter(|end| !end.text.is_empty());
        let cause = log.as_ref().and_then(cause_in);
        if let Err(error) = self.store.keep_log(id, attempt, log, &events).await {
            tracing::warn!(submission = %id, "the driver log isn't archived: {}", chain(&error));
        }
        cause
    }

    /// Archives the log and the events of an ended driver, once. A failure is only logged.
    pub(super) async fn keep_what_stays(&self, subject: &Subject<'_>, uid: &str) {
        let Subject { id, attempt, namespace, pod, .. } = *subject;
        let succeeded = match self.store.log_to_keep(id, attempt, uid).await {
            Ok(Some(succeeded)) => succeeded,
            Ok(None) => return,
            Err(error) => return tracing::warn!(submission = %id, "the driver log isn't archived: {}", chain(&error)),
        };
        let events = async {
            // Events of a successful driver aren't needed.
            if succeeded { Vec::new() } else { self.events(id, namespace, uid, EVENTS).await }
        };
        let of = LogOf { namespace, pod, uid };
        let (log, events) = futures::join!(self.log_end(id, &of), events);
        if log.is_none() && events.is_empty() {
            return;
        }
        if let Err(error) = self.store.keep_log(id, attempt, log, &events).await {
            tracing::warn!(submission = %id, "the driver log isn't archived: {}", chain(&error));
        }
    }

    /// Archives the log and the events in the background, for a pod without our finalizer.
    pub(super) fn keep_what_stays_aside(&self, subject: &Subject<'_>, uid: &str) {
        let gateway = self.clone();
        let (id, attempt, uid) = (subject.id.clone(), subject.attempt, uid.to_owned());
        let (namespace, pod) = (subject.namespace.to_owned(), subject.pod.to_owned());
        tokio::spawn(async move {
            let _one = gateway.finishing.acquire(&namespace).await;
            let subject = Subject { id: &id, attempt, namespace: &namespace, pod: &pod, claim: None };
            gateway.keep_what_stays(&subject, &uid).await;
        });
    }

    async fn events(&self, id: &SubmissionId, namespace: &str, uid: &str, limit: Duration) -> Vec<PodEvent> {
        let listed = timeout(limit, async {
            let _one = self.event_lists.acquire(namespace).await;
            self.cluster.pod_events(namespace, uid).await
        });
        match listed.await {
            Ok(Ok(events)) => events,
            Ok(Err(error)) => {
                tracing::debug!(submission = %id, "{}", chain(&error));
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
            Ok(Err(error)) => chain(&error),
            Err(_) => format!("its node doesn't return it within {LOG:?}"),
        };
        tracing::warn!(submission = %id, "the driver log isn't archived: {why}");
        None
    }

    async fn read_log_end(&self, of: &LogOf<'_>) -> Result<Option<LogEnd>, cluster::Error> {
        let mut end = End::new(self.kept_log);
        let mut tries = 1;
        loop {
            match self.read_once(of, &mut end).await {
                Ok(false) => return Ok(None),
                Ok(true) if end.came_too_early() && tries < TRIES => end = end.with_fewer_lines(),
                Ok(true) => return Ok(Some(end.finish()).filter(|end| !end.text.is_empty())),
                Err(cluster::Error::Unavailable { .. }) if tries < TRIES => {
                    end = End::new(self.kept_log);
                    sleep(PAUSE).await;
                }
                Err(error) => return Err(error),
            }
            tries += 1;
        }
    }

    /// Reads the end of the log. Returns whether there is a log.
    async fn read_once(&self, of: &LogOf<'_>, end: &mut End) -> Result<bool, cluster::Error> {
        let part = LogPart { tail: Some(end.lines()), limit: Some(end.limit()), ..LogPart::default() };
        let LogAnswer::Log(mut log) = self.cluster.log(of, &part).await? else { return Ok(false) };
        while let Some(piece) = log.next().await {
            end.take(&piece?);
        }
        Ok(true)
    }
}
