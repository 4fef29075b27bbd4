//! Logs of drivers and executors: from their pods as long as these are there, then what was kept.

mod follow;
mod kept;
mod lines;
mod target;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures::{Stream, StreamExt, TryStreamExt, future::ready, stream, stream::BoxStream};

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

/// Logs of one namespace that are read at once by one process. Each holds a stream of the API server.
pub(super) const READERS: usize = 200;

/// What somebody wants to read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogRequest {
    /// An executor by its id; the driver without one.
    pub executor: Option<i64>,
    /// The present attempt without a number.
    pub attempt: Option<i32>,
    /// The last lines.
    pub tail: Option<u64>,
    /// The lines since then.
    pub since: Option<DateTime<Utc>>,
    /// To the end, which may be days from now.
    pub follow: bool,
    /// Each line begins with the time at which the node took it in.
    pub timestamps: bool,
}

/// Where a log comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogSource {
    Pod,
    Kept,
}

/// A log on its way.
pub struct LogStream {
    pub source: LogSource,
    /// It begins later than the log did: only the last part was kept.
    pub cut: bool,
    /// Any bytes. It ends with an error when the rest can't be had; a reader then doesn't know all.
    pub bytes: BoxStream<'static, Result<Bytes, Error>>,
}

/// Why there is no log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoLog {
    Submission,
    Attempt,
    Executor,
    /// The container hasn't started; in words why not.
    NotStarted(String),
    /// It never started, and the submission has ended.
    NeverStarted,
    /// The pod is gone, and nothing was kept.
    Gone,
    /// An executor's log goes with its pod.
    ExecutorGone,
    /// Too many are being read at once.
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
    /// The database or the cluster doesn't answer, and nothing is kept either.
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

    /// What the pod itself has.
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

/// Holds its place among the readers until it is over.
fn of_pod(bytes: impl Stream<Item = Result<Bytes, Error>> + Send + 'static, place: Place) -> Log {
    let bytes = bytes.inspect(move |_| _ = &place).boxed();
    Log::Stream(LogStream { source: LogSource::Pod, cut: false, bytes })
}

/// What a reader wants of a log that comes to its end.
fn wanted(bytes: LogBytes, lines: Lines) -> impl Stream<Item = Result<Bytes, Error>> + Send + 'static {
    stream::try_unfold(Some((bytes, lines)), async |reading| {
        let Some((mut bytes, mut lines)) = reading else { return Ok(None) };
        Ok(match bytes.next().await.transpose()? {
            Some(piece) => Some((lines.take(&piece), Some((bytes, lines)))),
            None => Some((lines.finish(), None)),
        })
    })
    .try_filter(|told| ready(!told.is_empty()))
}

fn kept_stream(log: &LogEnd, tail: Option<u64>, mut lines: Lines) -> LogStream {
    let text = tail.map_or(&log.text[..], |count| last_lines(&log.text, count));
    let told = whole(&mut lines, text);
    let bytes = stream::iter(Some(told).filter(|told| !told.is_empty()).map(Ok)).boxed();
    LogStream { source: LogSource::Kept, cut: log.cut, bytes }
}
