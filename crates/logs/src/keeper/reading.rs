//! Stores the log of one container.

use std::{future::pending, sync::Arc, time::Duration};

use chrono::TimeDelta;
use futures::StreamExt;
use tokio::{
    sync::watch,
    time::{Instant, sleep, sleep_until, timeout},
};

use super::parts::{Parts, Source, Stage};
use crate::{stored::Stored, writer::LogWriter};
use sparkgate_cluster::{LogAnswer, LogBytes, LogOf, LogPart};
use sparkgate_common::{error::error_chain, pauses::Pauses, shares::Place};
use sparkgate_files::LogEnding;
use sparkgate_metrics::metrics;
use sparkgate_store::LogTarget;

/// Pause before a log is opened again, and its maximum.
const PAUSE: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// A line may follow one with a later time, so a reopened log is read from this much before the last time.
const EARLIER: TimeDelta = TimeDelta::seconds(1);
/// How long a stream may last after the end of its container: that of a failed node never ends.
const AFTER_END: Duration = Duration::from_secs(10);
/// Bytes after which a log that is being stored counts for the record of its submission.
const COUNTED: u64 = 1 << 20;
/// Tries to read what an ended container wrote, of which none brought anything new: an API server may be restarting.
const LAST_TRIES: u32 = 15;
/// Tries to find the row of a pod: that of an executor is written after its first observation. The pause doubles after each.
const CHECKS: u32 = 9;
const CHECK_PAUSE: Duration = Duration::from_millis(200);

/// The task of one container.
pub(super) struct Reading {
    pub(super) parts: Arc<Parts>,
    pub(super) source: Source,
    pub(super) stage: watch::Receiver<Stage>,
}

/// The pauses between the tries of a call of the store, which are repeated however long it is away.
struct Patience<'a> {
    stored: &'a Stored,
    pauses: Pauses,
}

impl Patience<'_> {
    async fn wait_after(&mut self, error: &(dyn std::error::Error + Send + Sync + 'static)) {
        self.stored.failed(error);
        sleep(self.pauses.next_pause()).await;
    }
}

/// Why a stream is no longer read.
enum Read {
    /// It ended by itself.
    Ended,
    Broken,
    /// The largest size is reached.
    Full,
}

impl Reading {
    /// Stores the log until the container has ended and all is stored.
    pub(super) async fn run(mut self) {
        let Some(target) = self.target().await else { return };
        let Some(_place) = self.place(&target).await else { return };
        let Some(mut writer) = self.writer(&target).await else { return };
        let result = match self.read(&target, &mut writer).await {
            Some(LogEnding::Cut) => "cut",
            Some(LogEnding::Whole) if writer.lines.has_gap() => "gap",
            Some(LogEnding::Whole) => "whole",
            None => "incomplete",
        };
        metrics().logs_stored.with([result]).inc();
    }

    /// Returns what the database knows of the pod. `None` if it isn't the recorded one: other clients may have put our labels on any pod.
    async fn target(&self) -> Option<LogTarget> {
        let Source { submission: id, attempt, executor, pod, uid } = &self.source;
        let (mut pauses, mut checks) = (Pauses::new(CHECK_PAUSE, PAUSE_MAX), 0);
        while checks < CHECKS {
            let found = {
                let _one = self.parts.checks.acquire().await;
                let all = self.parts.store.all();
                match executor {
                    None => all.driver_log(id, Some(*attempt)).await,
                    Some(executor) => all.executor_log(id, Some(*attempt), *executor).await,
                }
            };
            match found {
                Ok(Some(target)) if target.pod_uid.as_ref() == Some(uid) && target.pod == *pod => return Some(target),
                Ok(_) => checks += 1,
                // The database is away for a while, which says nothing about the pod.
                Err(error) => tracing::debug!(submission = %id, "{}", error_chain(&error)),
            }
            sleep(pauses.next_pause()).await;
        }
        tracing::debug!(submission = %id, pod, "the log of a pod that isn't recorded is not stored");
        None
    }

    /// Waits for a permit to read. What a container wrote that has ended, or is about to, is not delayed by those that run.
    async fn place(&mut self, target: &LogTarget) -> Option<Place> {
        let _waiting = self.parts.wait();
        loop {
            if *self.stage.borrow_and_update() != Stage::Running {
                return Some(self.parts.ended.acquire(&target.tenant, &target.namespace).await);
            }
            tokio::select! {
                place = self.parts.streams.acquire(&target.tenant, &target.namespace) => return Some(place),
                changed = self.stage.changed() => if changed.is_err() { return None },
            }
        }
    }

    /// Returns the writer of the log, or `None` if its end is stored.
    async fn writer(&self, target: &LogTarget) -> Option<LogWriter> {
        let folder = self.parts.stored.folder(&self.source.submission, target, self.source.executor);
        let mut patience = self.patience();
        let stored = &self.parts.stored;
        while let Err(error) = stored.owner.check(&stored.objects).await {
            patience.wait_after(&error).await;
        }
        loop {
            match LogWriter::resume(folder.clone()).await {
                Ok(writer) => return writer,
                Err(error) => patience.wait_after(&error).await,
            }
        }
    }

    /// Reads and stores. Returns how the log ended, or `None` if its end was missed.
    async fn read(&mut self, target: &LogTarget, writer: &mut LogWriter) -> Option<LogEnding> {
        let Source { submission, pod, uid, .. } = self.source.clone();
        let of = LogOf { namespace: &target.namespace, pod: &pod, uid: &uid };
        // Whether the last stream ended by itself.
        let (mut is_read, mut tries, mut position) = (false, 0, writer.lines.position());
        let is_whole = loop {
            let has_ended = *self.stage.borrow_and_update() >= Stage::Gone;
            let since = writer.lines.told_until().and_then(|until| until.checked_sub_signed(EARLIER));
            let part = LogPart { follow: !has_ended, since, ..LogPart::default() };
            match self.parts.cluster.log(&of, &part).await {
                Ok(LogAnswer::Log(bytes)) => {
                    writer.lines.begin_again();
                    let read = self.copy(bytes, writer, has_ended).await;
                    is_read = matches!(read, Read::Ended);
                    if matches!(read, Read::Full) {
                        return self.end(writer, Some(LogEnding::Cut)).await;
                    }
                    // The API server also ends a stream that its node broke off. So another one has to bring nothing new.
                    if has_ended && is_read && writer.lines.position() == position {
                        break true;
                    }
                }
                // A stream that ended by itself had all if it ended with its container.
                Ok(LogAnswer::Gone) => break is_read && *self.stage.borrow() == Stage::Ended,
                // There is no log: an empty one would hide that the container never started.
                Ok(LogAnswer::NotStarted(_)) if has_ended => return Some(LogEnding::Whole),
                Ok(LogAnswer::NotStarted(_)) => {}
                Err(error) => {
                    is_read = false;
                    tracing::debug!(%submission, pod, "reading a log for the store failed: {}", error_chain(&error));
                }
            }
            let now = writer.lines.position();
            let is_more = has_ended && is_read && now != position;
            tries = if has_ended && now == position { tries + 1 } else { 0 };
            position = now;
            if tries >= LAST_TRIES {
                tracing::warn!(%submission, pod, "the end of a log is not stored: its node doesn't return it");
                break false;
            }
            let is_news = !has_ended && *self.stage.borrow() >= Stage::Gone;
            if !is_news && !is_more {
                // The end may be observed in a moment.
                let _ = timeout(PAUSE, self.stage.changed()).await;
            }
        };
        writer.finish();
        self.end(writer, is_whole.then_some(LogEnding::Whole)).await
    }

    /// Copies a stream into the store.
    async fn copy(&mut self, mut bytes: LogBytes, writer: &mut LogWriter, has_ended: bool) -> Read {
        let largest = self.parts.stored.settings.largest;
        let mut last_moment = None;
        loop {
            let must_store = tokio::select! {
                piece = bytes.next() => {
                    match piece {
                        Some(Ok(piece)) => writer.take(&piece),
                        Some(Err(error)) => {
                            let (submission, pod) = (&self.source.submission, &self.source.pod);
                            tracing::debug!(%submission, pod, "reading a log for the store failed: {}", error_chain(&error));
                            return Read::Broken;
                        }
                        None => return Read::Ended,
                    }
                    if writer.size() > largest {
                        return Read::Full;
                    }
                    writer.has_part()
                }
                () = at(writer.due()) => true,
                changed = self.stage.changed(), if !has_ended && last_moment.is_none() => {
                    if changed.is_err() {
                        return Read::Broken;
                    }
                    if *self.stage.borrow() >= Stage::Gone {
                        last_moment = Some(Instant::now() + AFTER_END);
                    }
                    false
                }
                () = at(last_moment) => return Read::Broken,
            };
            if !must_store {
                continue;
            }
            if let Err(error) = writer.store(&self.parts.puts).await {
                self.parts.stored.failed(&error);
                // The stream would hold what the node sends, for as long as the store is away.
                drop(bytes);
                self.store(writer).await;
                return Read::Broken;
            }
            self.parts.stored.wrote();
            self.count(writer, COUNTED).await;
        }
    }

    /// Counts what was stored for the record of the submission, if it is at least so much.
    async fn count(&self, writer: &mut LogWriter, least: u64) {
        let Some(bytes) = writer.take_uncounted(least) else { return };
        let submission = &self.source.submission;
        if let Err(error) = self.parts.store.add_record_bytes(submission, bytes).await {
            tracing::debug!(%submission, bytes, "bytes of a stored log aren't counted: {}", error_chain(&error));
        }
    }

    /// Stores the text, however long the store is away.
    async fn store(&self, writer: &mut LogWriter) {
        let mut patience = self.patience();
        while let Err(error) = writer.store(&self.parts.puts).await {
            patience.wait_after(&error).await;
        }
        self.parts.stored.wrote();
    }

    /// Stores the last text, and how the log ended.
    async fn end(&self, writer: &mut LogWriter, ending: Option<LogEnding>) -> Option<LogEnding> {
        if ending == Some(LogEnding::Cut) {
            writer.cut(self.parts.stored.settings.largest);
        }
        self.store(writer).await;
        self.count(writer, 1).await;
        let mut patience = self.patience();
        while let Err(error) = writer.end(ending?).await {
            patience.wait_after(&error).await;
        }
        ending
    }

    fn patience(&self) -> Patience<'_> {
        Patience { stored: &self.parts.stored, pauses: Pauses::new(PAUSE, PAUSE_MAX) }
    }
}

async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => pending().await,
    }
}
