//! Opens a log: that of a pod, or an archived one.

use std::sync::Arc;

use bytes::Bytes;
use futures::{Stream, StreamExt, TryStreamExt, future::ready, stream};

use super::{
    DriverLogs, Log, LogRequest, LogSource, LogStream, NoLog,
    follow::Follower,
    kept::{last_lines, whole},
    lines::Lines,
    target::{self, log_target},
};
use crate::{
    cluster::{LogAnswer, LogBytes, LogPart},
    service::{error::Error, session::Session, shares::Place, tenant_slots::TenantSlot},
    store::{LogEnd, LogTarget},
    submission::SubmissionId,
};

impl DriverLogs {
    /// Opens the log of a driver or of an executor, if the caller may read its submission.
    ///
    /// # Errors
    /// The database or the cluster doesn't answer, and no log is archived.
    pub async fn log(
        self: &Arc<Self>,
        caller: &Session,
        id: &SubmissionId,
        request: &LogRequest,
    ) -> Result<Log, Error> {
        let readable = self.store.scoped(&caller.readable());
        let (whose, target) = match log_target(&readable, id, request).await? {
            Ok(found) => found,
            Err(none) => return Ok(Log::None(none)),
        };
        let capped = caller.capped().into_iter().filter(|tenant| tenant.namespaces.contains(&target.namespace));
        let capped = capped.map(|tenant| (tenant.name.as_str(), tenant.limits.log_readers));
        let of_tenant = match self.of_tenants.take(capped) {
            Ok(slot) => slot,
            Err(exceeded) => return Ok(Log::None(NoLog::Limited(exceeded))),
        };
        let Some(place) = self.readers.try_acquire(&target.namespace) else { return Ok(Log::None(NoLog::Busy)) };
        let place = (place, of_tenant);
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
        match readable.kept_log(id, target.attempt).await?.and_then(|kept| kept.log) {
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
fn of_pod(bytes: impl Stream<Item = Result<Bytes, Error>> + Send + 'static, place: (Place, TenantSlot)) -> Log {
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
