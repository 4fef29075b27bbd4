//! Opens a log: that of a pod, a stored one, one of the operator's collector, or an archived one.

use std::{collections::VecDeque, sync::Arc};

use bytes::Bytes;
use futures::{
    Stream, StreamExt, TryStreamExt,
    future::ready,
    stream::{self, BoxStream},
};

use super::{
    DriverLogs, Log, LogRequest, LogSource, LogStream, NoLog,
    follow::Follower,
    kept::last_lines,
    lines::Lines,
    own_output::own_output,
    stored::StoredLog,
    target::{self, Whose, log_target},
};
use sparkgate_cluster::{LogAnswer, LogPart};
use sparkgate_common::{
    error::{Error, error_chain},
    shares::Place,
    tenant_slots::TenantSlot,
};
use sparkgate_files::CollectedFrom;
use sparkgate_store::{LogEnd, LogTarget};
use sparkgate_submission::SubmissionId;
use sparkgate_tenancy::session::Session;

/// Spark's names for the containers, unless a pod template has others.
const DRIVER: &str = "spark-kubernetes-driver";
const EXECUTOR: &str = "spark-kubernetes-executor";

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
        Ok(match self.open(caller, id, request).await? {
            Log::Stream(log) if request.own_output => {
                Log::Stream(LogStream { bytes: own_output(log.bytes, request.timestamps), ..log })
            }
            log => log,
        })
    }

    /// Opens the log with all its lines.
    async fn open(self: &Arc<Self>, caller: &Session, id: &SubmissionId, request: &LogRequest) -> Result<Log, Error> {
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
        let tenant = self.access.tenant_of(&target.namespace);
        let Some(place) = self.readers.try_acquire(&tenant, &target.namespace) else {
            return Ok(Log::None(NoLog::Busy));
        };
        let place = (place, of_tenant);
        let lines = Lines::new(request.timestamps, request.since);
        if request.follow && !target.ended {
            let follower = Follower::new(self.clone(), id.clone(), whose, request.tail, lines);
            return Ok(pod_log(follower.into_stream(), place));
        }
        // A log that is stored whole needs neither the API server nor the node.
        let mut stored = None;
        if target.ended {
            match self.stored_log(id, whose, &target).await {
                Ok(Some(log)) if log.is_whole() => return Ok(stored_log(log, None, request, lines, place)),
                found => stored = Some(found),
            }
        }
        let live = self.live_log(&target, request).await;
        let none = match live {
            Ok(LogAnswer::Log(bytes)) => {
                let text = bytes.map_err(Error::from).boxed();
                return Ok(pod_log(wanted([text], lines), place));
            }
            Ok(LogAnswer::NotStarted(_)) if target.ended => Ok(NoLog::NeverStarted),
            Ok(LogAnswer::NotStarted(why)) => return Ok(Log::None(NoLog::NotStarted(why))),
            Ok(LogAnswer::Gone) if whose.is_executor() => Ok(NoLog::ExecutorGone),
            Ok(LogAnswer::Gone) => Ok(NoLog::Gone),
            Err(error) => Err(error),
        };
        let stored = match stored {
            Some(found) => found,
            None => self.stored_log(id, whose, &target).await,
        };
        let kept = if whose.is_executor() {
            None
        } else {
            readable.kept_log(id, target.attempt).await?.and_then(|kept| kept.log)
        };
        let is_away = match stored {
            // The last lines are in the archive, if the end wasn't stored.
            Ok(Some(log)) if request.tail.is_none() || kept.is_none() => {
                return Ok(stored_log(log, kept, request, lines, place));
            }
            Ok(_) => None,
            Err(error) => Some(error),
        };
        let collected = match self.collected_log(id, whose, &target, request).await {
            Ok(Some(text)) => return Ok(of(text, LogSource::Collector, false, place)),
            Ok(None) => None,
            Err(error) => Some(error),
        };
        if let Some(error) = is_away.as_ref().or(collected.as_ref()) {
            tracing::debug!(submission = %id, "reading a stored log failed: {}", error_chain(error));
        }
        match (kept, is_away.or(collected)) {
            (Some(log), _) => Ok(Log::Stream(kept_stream(&log, request.tail, lines))),
            (None, Some(error)) => Err(error),
            (None, None) => Ok(Log::None(none?)),
        }
    }

    /// Looks for a log in the store. `None` if logs aren't stored.
    pub(super) async fn stored_log(
        &self,
        id: &SubmissionId,
        whose: Whose,
        target: &LogTarget,
    ) -> Result<Option<StoredLog>, Error> {
        match self.stored() {
            Some(stored) => stored.find(id, target, whose.executor()).await,
            None => Ok(None),
        }
    }

    /// Opens what the operator's collector wrote. Its lines have no times that are known here.
    async fn collected_log(
        &self,
        id: &SubmissionId,
        whose: Whose,
        target: &LogTarget,
        request: &LogRequest,
    ) -> Result<Option<BoxStream<'static, Result<Bytes, Error>>>, Error> {
        let (Some(logs), Some(uid)) = (&self.collected, &target.pod_uid) else { return Ok(None) };
        let of = CollectedFrom {
            namespace: &target.namespace,
            pod: &target.pod,
            uid,
            container: if whose.is_executor() { EXECUTOR } else { DRIVER },
            submission: id.as_str(),
            attempt: target.attempt,
        };
        let Some(log) = logs.find(&of).await? else { return Ok(None) };
        let from = match request.tail {
            Some(count) => log.tail(count).await?,
            None => 0,
        };
        Ok(Some(log.read(from).await?.map_err(Error::from).boxed()))
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

fn pod_log(bytes: impl Stream<Item = Result<Bytes, Error>> + Send + 'static, place: (Place, TenantSlot)) -> Log {
    of(bytes, LogSource::Pod, false, place)
}

/// Returns a stored log. One whose end wasn't stored is continued by the archived part.
fn stored_log(
    log: StoredLog,
    kept: Option<LogEnd>,
    request: &LogRequest,
    lines: Lines,
    place: (Place, TenantSlot),
) -> Log {
    let is_cut = log.has_gap() || (!log.is_whole() && kept.as_ref().is_none_or(|kept| kept.cut));
    let rest = kept.filter(|_| !log.is_whole());
    let text = log.text(request.tail, request.since);
    let rest = rest.map(|rest| stream::iter([Ok(Bytes::from(rest.text))]).boxed());
    of(wanted([text].into_iter().chain(rest), lines), LogSource::Store, is_cut, place)
}

/// Wraps a log stream so that it keeps its permit until it ends.
fn of(
    bytes: impl Stream<Item = Result<Bytes, Error>> + Send + 'static,
    source: LogSource,
    cut: bool,
    place: (Place, TenantSlot),
) -> Log {
    let bytes = bytes.inspect(move |_| _ = &place).boxed();
    Log::Stream(LogStream { source, cut, bytes })
}

/// Returns the requested lines of a log that isn't followed. Each part may begin with lines of the one before.
fn wanted(
    parts: impl IntoIterator<Item = BoxStream<'static, Result<Bytes, Error>>>,
    lines: Lines,
) -> impl Stream<Item = Result<Bytes, Error>> + Send + 'static {
    let parts: VecDeque<_> = parts.into_iter().collect();
    stream::try_unfold((parts, lines), async |(mut parts, mut lines)| {
        let Some(part) = parts.front_mut() else { return Ok(None) };
        if let Some(piece) = part.next().await.transpose()? {
            return Ok(Some((lines.take(&piece), (parts, lines))));
        }
        parts.pop_front();
        let rest = if parts.is_empty() { lines.finish() } else { Bytes::new() };
        lines.begin_again();
        Ok(Some((rest, (parts, lines))))
    })
    .try_filter(|part| ready(!part.is_empty()))
}

fn kept_stream(log: &LogEnd, tail: Option<u64>, lines: Lines) -> LogStream {
    let text = Bytes::copy_from_slice(tail.map_or(&log.text[..], |count| last_lines(&log.text, count)));
    let bytes = wanted([stream::iter([Ok(text)]).boxed()], lines).boxed();
    LogStream { source: LogSource::Kept, cut: log.cut, bytes }
}
