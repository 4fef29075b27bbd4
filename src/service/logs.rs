//! Logs of drivers and executors: from their pods while these exist, then from the archive.

mod follow;
mod kept;
mod lines;
mod target;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures::{Stream, StreamExt, TryStreamExt, future::ready, stream, stream::BoxStream};

pub(super) use self::kept::cause_in;
use self::{
    follow::Follower,
    kept::{last_lines, whole},
    lines::Lines,
};
use super::{Error, Gateway, shares::Place};
use crate::{
    cluster::{LogAnswer, LogBytes, LogPart},
    store::{LogEnd, LogTarget},
    submission::SubmissionId,
};

/// Maximum number of logs of one namespace that a process reads concurrently. Each one holds a stream of the API server.
pub(super) const READERS: usize = 200;

/// Which log, and which part of it, to read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogRequest {
    /// The id of an executor; the driver if `None`.
    pub executor: Option<i64>,
    /// The number of an attempt; the current one if `None`.
    pub attempt: Option<i32>,
    /// Only so many of the last lines.
    pub tail: Option<u64>,
    /// Only lines since this time.
    pub since: Option<DateTime<Utc>>,
    /// Continue to the end of the log, which may be days away.
    pub follow: bool,
    /// Start each line with the time at which the node received it.
    pub timestamps: bool,
}

/// The source of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogSource {
    Pod,
    Kept,
}

/// A log that is being read.
pub struct LogStream {
    pub source: LogSource,
    /// The beginning of the log is missing: only the last part was archived.
    pub cut: bool,
    /// Arbitrary bytes. The stream ends with an error if the rest can't be read, so that the reader knows that the log is
    /// incomplete.
    pub bytes: BoxStream<'static, Result<Bytes, Error>>,
}

/// Why there is no log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoLog {
    Submission,
    Attempt,
    Executor,
    /// The container hasn't started, with the reason.
    NotStarted(String),
    /// The container never started, and the submission has ended.
    NeverStarted,
    /// The pod is gone, and nothing was archived.
    Gone,
    /// The log of an executor was deleted with its pod.
    ExecutorGone,
    /// Too many logs are being read.
    Busy,
}

/// The answer to a [`LogRequest`].
pub enum Log {
    Stream(LogStream),
    None(NoLog),
}

impl Gateway {
    /// Opens the log of a driver or of an executor.
    ///
    /// # Errors
    /// The database or the cluster doesn't answer, and no log is archived.
    pub async fn log(&self, id: &SubmissionId, request: &LogRequest) -> Result<Log, Error> {
        let (whose, target) = match self.log_target(id, request).await? {
            Ok(found) => found,
            Err(none) => return Ok(Log::None(none)),
        };
        let Some(place) = self.readers.try_acquire(&target.namespace) else { return Ok(Log::None(NoLog::Busy)) };
        let lines = Lines::new(request.timestamps, request.since);
        if request.follow && !target.ended {
            let follower = Follower::new(self.clone(), id.clone(), whose, request.tail, lines);
            return Ok(of_pod(follower.into_stream(), place));
        }
        let live = self.live_log(&target, request).await;
        let none = match live {
            Ok(LogAnswer::Log(bytes)) => return Ok(of_pod(wanted(bytes, lines), place)),
            Ok(LogAnswer::NotStarted(_)) if target.ended => Ok(NoLog::NeverStarted),
            Ok(LogAnswer::NotStarted(why)) => Ok(NoLog::NotStarted(why)),
            Ok(LogAnswer::Gone) => Ok(NoLog::Gone),
            Err(error) => Err(error),
        };
        if whose.is_executor() {
            return Ok(Log::None(match none? {
                NoLog::Gone => NoLog::ExecutorGone,
                other => other,
            }));
        }
        match self.store.kept_log(id, target.attempt).await?.and_then(|kept| kept.log) {
            Some(log) => Ok(Log::Stream(kept_stream(&log, request.tail, lines))),
            None => Ok(Log::None(none?)),
        }
    }

    /// Reads the log from the pod.
    async fn live_log(&self, target: &LogTarget, request: &LogRequest) -> Result<LogAnswer, Error> {
        let Some(of) = target::pod(target) else {
            return Ok(if target.ended {
                LogAnswer::Gone
            } else {
                LogAnswer::NotStarted("it has no pod yet".to_owned())
            });
        };
        let part = LogPart { tail: request.tail, since: request.since, ..LogPart::default() };
        Ok(self.cluster.log(&of, &part).await?)
    }
}

/// Wraps a log stream so that it keeps its permit until it ends.
fn of_pod(bytes: impl Stream<Item = Result<Bytes, Error>> + Send + 'static, place: Place) -> Log {
    let bytes = bytes.inspect(move |_| _ = &place).boxed();
    Log::Stream(LogStream { source: LogSource::Pod, cut: false, bytes })
}

/// Returns the requested lines of a log that isn't followed.
fn wanted(bytes: LogBytes, lines: Lines) -> impl Stream<Item = Result<Bytes, Error>> + Send + 'static {
    stream::try_unfold(Some((bytes, lines)), async |reading| {
        let Some((mut bytes, mut lines)) = reading else { return Ok(None) };
        Ok(match bytes.next().await.transpose()? {
            Some(piece) => Some((lines.take(&piece), Some((bytes, lines)))),
            None => Some((lines.finish(), None)),
        })
    })
    .try_filter(|part| ready(!part.is_empty()))
}

fn kept_stream(log: &LogEnd, tail: Option<u64>, mut lines: Lines) -> LogStream {
    let text = tail.map_or(&log.text[..], |count| last_lines(&log.text, count));
    let part = whole(&mut lines, text);
    let bytes = stream::iter(Some(part).filter(|part| !part.is_empty()).map(Ok)).boxed();
    LogStream { source: LogSource::Kept, cut: log.cut, bytes }
}
