//! Resolves a log request to a pod.

use super::{DriverLogs, LogRequest, NoLog};
use sparkgate_cluster::LogOf;
use sparkgate_common::error::Error;
use sparkgate_store::{LogTarget, Scoped};
use sparkgate_submission::SubmissionId;

/// The writer of a log, in one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whose {
    Driver(i32),
    Executor(i32, i64),
}

impl Whose {
    pub(super) fn is_executor(self) -> bool {
        matches!(self, Self::Executor(..))
    }

    /// Returns the id of the executor; `None` for the driver.
    pub(super) fn executor(self) -> Option<i64> {
        match self {
            Self::Driver(_) => None,
            Self::Executor(_, executor) => Some(executor),
        }
    }
}

/// Returns the pod, if it may exist.
pub(super) fn pod(target: &LogTarget) -> Option<LogOf<'_>> {
    let uid = target.pod_uid.as_deref().filter(|_| !target.pod_deleted)?;
    Some(LogOf { namespace: &target.namespace, pod: &target.pod, uid })
}

/// Returns the writer and the pod that a request means, or why there is no log.
pub(super) async fn log_target(
    readable: &Scoped,
    id: &SubmissionId,
    request: &LogRequest,
) -> Result<Result<(Whose, LogTarget), NoLog>, Error> {
    let found = match request.executor {
        None => readable.driver_log(id, request.attempt).await?,
        Some(executor) => readable.executor_log(id, request.attempt, executor).await?,
    };
    let Some(target) = found else {
        let there = readable.find(id).await?.is_some();
        return Ok(Err(match request.executor {
            _ if !there => NoLog::Submission,
            None => NoLog::Attempt,
            Some(_) => NoLog::Executor,
        }));
    };
    let whose = match request.executor {
        None => Whose::Driver(target.attempt),
        Some(executor) => Whose::Executor(target.attempt, executor),
    };
    Ok(Ok((whose, target)))
}

impl DriverLogs {
    /// Reads the target again, of a submission that its reader may read: it may have got a pod in the meantime, or have ended. `None` if its row was deleted.
    pub(super) async fn log_target_again(&self, id: &SubmissionId, whose: Whose) -> Result<Option<LogTarget>, Error> {
        Ok(match whose {
            Whose::Driver(attempt) => self.store.all().driver_log(id, Some(attempt)).await?,
            Whose::Executor(attempt, executor) => self.store.all().executor_log(id, Some(attempt), executor).await?,
        })
    }
}
