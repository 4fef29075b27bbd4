//! Follows a log until its end is recorded, across broken connections: every line once.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use chrono::TimeDelta;
use futures::{
    Stream, StreamExt, TryStreamExt,
    future::pending,
    stream::{self, BoxStream},
};
use tokio::time::{Instant, sleep, sleep_until};

use super::{
    DriverLogs,
    kept::{last_lines, whole},
    lines::Lines,
    stored::StoredLog,
    target::{Whose, pod},
};
use sparkgate_cluster::{LogAnswer, LogPart};
use sparkgate_common::{
    detached::detached,
    error::{Error, error_chain},
};
use sparkgate_store::LogTarget;
use sparkgate_submission::SubmissionId;

/// Pause before a retry: meanwhile, the container may start, or its end may be recorded.
const PAUSE: Duration = Duration::from_secs(1);
/// How often the end is checked in the database while the log is open: the stream of a failed node reports nothing.
const LOOK: Duration = Duration::from_secs(5);
/// A line may follow one with a later time, so a reopened log is read from this much before the last time.
const EARLIER: TimeDelta = TimeDelta::seconds(1);
/// Attempts to read the rest of a log after the end.
const LAST_TRIES: u32 = 3;
/// Attempts to find the whole log of a deleted pod in the store: its last part may be on its way.
const STORED_TRIES: u32 = 10;

/// A reader that follows a log.
pub(super) struct Follower {
    logs: Arc<DriverLogs>,
    id: SubmissionId,
    whose: Whose,
    /// How many of the lines that exist when the log is first opened are returned: the last ones.
    tail: Option<u64>,
    lines: Lines,
    open: Option<BoxStream<'static, Result<Bytes, Error>>>,
    /// The stored log is read, or was read, because the pod is gone.
    stored: Option<Stored>,
    stored_tries: u32,
    /// The end was recorded before the log was opened, so the log is complete.
    ended: bool,
    /// When to check again whether the end is recorded.
    look: Instant,
    tried: bool,
    last_tries: u32,
    done: bool,
}

/// How far a stored log is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stored {
    Whole,
    /// Its end wasn't stored: the archived part may have it.
    Part,
    /// All that is stored of it was read.
    Read,
}

impl Follower {
    pub(super) fn new(logs: Arc<DriverLogs>, id: SubmissionId, whose: Whose, tail: Option<u64>, lines: Lines) -> Self {
        let look = Instant::now();
        let (open, ended, tried, last_tries, done) = (None, false, false, 0, false);
        let (stored, stored_tries) = (None, 0);
        Self { logs, id, whose, tail, lines, open, stored, stored_tries, ended, look, tried, last_tries, done }
    }

    /// Returns the log as a stream, which advances only while it is polled. The stream ends with an error when this process
    /// shuts down, so that the reader knows that there is more.
    pub(super) fn into_stream(self) -> impl Stream<Item = Result<Bytes, Error>> + Send + 'static {
        stream::try_unfold(self, |mut follower| async move {
            let closing = follower.logs.closing.clone();
            let next = tokio::select! {
                biased;
                () = closing.cancelled() => Err(Error::Unanswered("the gateway is shutting down: retry the request".to_owned())),
                next = follower.next() => next,
            }?;
            Ok(next.map(|bytes| (bytes, follower)))
        })
    }

    /// Returns the next bytes, or `None` after the last.
    async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        while !self.done {
            let bytes = match &mut self.open {
                None => self.reopen().await?,
                Some(open) => {
                    let look = async {
                        // A log that was opened after the end ends by itself.
                        if self.ended { pending().await } else { sleep_until(self.look).await }
                    };
                    tokio::select! {
                        piece = open.next() => self.take(piece)?,
                        () = look => self.look_whether_it_ended().await,
                    }
                }
            };
            if !bytes.is_empty() {
                return Ok(Some(bytes));
            }
        }
        Ok(None)
    }

    fn take(&mut self, piece: Option<Result<Bytes, Error>>) -> Result<Bytes, Error> {
        match piece {
            Some(Ok(bytes)) => return Ok(self.lines.take(&bytes)),
            Some(Err(error)) => self.failed(error)?,
            None if self.stored == Some(Stored::Part) => self.stored = Some(Stored::Read),
            None if self.ended => {
                self.done = true;
                return Ok(self.lines.finish());
            }
            // The container has ended, or a component between it and this process was stopped.
            None => {}
        }
        self.open = None;
        Ok(Bytes::new())
    }

    /// Handles an error: before the end, every error is retried; afterwards, some.
    fn failed(&mut self, error: Error) -> Result<(), Error> {
        tracing::debug!(submission = %self.id, "following a log failed: {}", error_chain(&error));
        if self.ended {
            self.last_tries += 1;
            if self.last_tries >= LAST_TRIES {
                return Err(error);
            }
        }
        Ok(())
    }

    /// Checks, while an open log is silent, whether the end is recorded. If so, the log is reopened to read the rest.
    async fn look_whether_it_ended(&mut self) -> Bytes {
        self.look = Instant::now() + LOOK;
        match self.target().await {
            Ok(Some(target)) if !target.ended => {}
            Ok(_) => (self.open, self.tried) = (None, false),
            Err(error) => tracing::debug!(submission = %self.id, "following a log failed: {}", error_chain(&error)),
        }
        Bytes::new()
    }

    /// Reads again which pod writes the log, and whether its end is recorded.
    async fn target(&mut self) -> Result<Option<LogTarget>, Error> {
        let (logs, id, whose) = (self.logs.clone(), self.id.clone(), self.whose);
        detached(async move { logs.log_target_again(&id, whose).await }).await
    }

    async fn reopen(&mut self) -> Result<Bytes, Error> {
        if std::mem::replace(&mut self.tried, true) {
            sleep(PAUSE).await;
        }
        let target = match self.target().await {
            Ok(Some(target)) => target,
            Ok(None) => {
                self.done = true;
                return Ok(Bytes::new());
            }
            Err(error) => return self.failed(error).map(|()| Bytes::new()),
        };
        self.ended = target.ended;
        self.look = Instant::now() + LOOK;
        let until = self.lines.told_until();
        let part = LogPart {
            follow: !self.ended,
            tail: self.tail.filter(|_| until.is_none()),
            since: match until {
                Some(until) => until.checked_sub_signed(EARLIER),
                None => self.lines.since(),
            },
            limit: None,
        };
        let answer = match pod(&target) {
            Some(of) => self.logs.cluster.log(&of, &part).await,
            None => Ok(LogAnswer::Gone),
        };
        match answer {
            Ok(LogAnswer::Log(bytes)) => {
                self.lines.begin_again();
                self.open = Some(bytes.map_err(Error::from).boxed());
                Ok(Bytes::new())
            }
            Ok(LogAnswer::NotStarted(_) | LogAnswer::Gone) if self.ended => self.rest(&target).await,
            // An executor's log is deleted with its pod.
            Ok(LogAnswer::Gone) if self.whose.is_executor() => self.rest(&target).await,
            Ok(LogAnswer::NotStarted(_) | LogAnswer::Gone) => Ok(Bytes::new()),
            Err(error) if self.ended && self.last_tries + 1 >= LAST_TRIES => match self.rest(&target).await? {
                // Nothing was archived: lines that were not sent may be lost.
                rest if rest.is_empty() => Err(error.into()),
                rest => Ok(rest),
            },
            Err(error) => self.failed(error.into()).map(|()| Bytes::new()),
        }
    }

    /// Returns the part of a deleted pod's log that was not sent yet: from the store, and then from the archive.
    async fn rest(&mut self, target: &LogTarget) -> Result<Bytes, Error> {
        if self.logs.are_stored() && self.stored != Some(Stored::Read) && self.open_stored(target).await {
            return Ok(Bytes::new());
        }
        self.done = true;
        if self.whose.is_executor() {
            return Ok(self.lines.finish());
        }
        let (store, id, attempt) = (self.logs.store.clone(), self.id.clone(), target.attempt);
        let kept = detached(async move { store.all().kept_log(&id, attempt).await }).await?;
        let Some(log) = kept.and_then(|kept| kept.log) else {
            return Ok(Bytes::new());
        };
        let first = self.lines.told_until().is_none();
        self.lines.begin_again();
        let tail = self.tail.filter(|_| first);
        let bytes = whole(&mut self.lines, tail.map_or(&log.text[..], |count| last_lines(&log.text, count)));
        if log.cut && (self.lines.has_gap() || (first && tail.is_none())) {
            return Err(Error::Unanswered(
                "the pod was deleted before its whole log was sent: only the last part is archived".to_owned(),
            ));
        }
        Ok(bytes)
    }

    /// Opens the stored log at the position that was reached. Returns whether the log goes on: it is open, or will be tried again.
    async fn open_stored(&mut self, target: &LogTarget) -> bool {
        let (logs, id, whose, of) = (self.logs.clone(), self.id.clone(), self.whose, target.clone());
        let found = detached(async move { logs.stored_log(&id, whose, &of).await }).await;
        let found = found.unwrap_or_else(|error| {
            tracing::debug!(submission = %self.id, "reading a stored log failed: {}", error_chain(&error));
            None
        });
        let is_whole = found.as_ref().is_some_and(StoredLog::is_whole);
        if !is_whole && self.stored_tries < STORED_TRIES {
            self.stored_tries += 1;
            return true;
        }
        let Some(log) = found else { return false };
        let until = self.lines.told_until();
        let since = until.map_or_else(|| self.lines.since(), |until| until.checked_sub_signed(EARLIER));
        self.lines.begin_again();
        self.open = Some(log.text(self.tail.filter(|_| until.is_none()), since));
        self.stored = Some(if is_whole { Stored::Whole } else { Stored::Part });
        self.ended = true;
        true
    }
}
