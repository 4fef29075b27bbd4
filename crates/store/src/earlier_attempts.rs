//! How the attempts before one ended.

use sqlx::types::Json;

use super::{
    error::{Error, within},
    store::Store,
};
use sparkgate_submission::{FailureCode, State, SubmissionId};

/// An attempt that has ended, and was followed by another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EarlierAttempt {
    /// Why it failed; `None` if it succeeded.
    pub code: Option<FailureCode>,
    /// What ran out of memory, if something did.
    pub memory: Option<MemoryFailure>,
}

/// What ran out of memory in an attempt that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemoryFailure {
    pub driver: Option<FullMemory>,
    pub executors: Option<FullMemory>,
}

/// The limit that was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FullMemory {
    /// That of the container: the kernel killed its process.
    Container,
    /// That of the JVM's heap.
    Heap,
}

/// The reason of a container that the kernel killed.
const OOM_KILLED: &str = "OOMKilled";

#[derive(sqlx::FromRow)]
struct Row {
    state: String,
    exit_code: Option<i32>,
    reason: Option<String>,
    message: Option<String>,
    /// Executors that the kernel killed, and those whose heap was full.
    killed: i64,
    full: i64,
}

impl Store {
    /// Returns the attempts before `attempt` in their order, and what was recorded about the launch of `attempt`, if it was tried
    /// before.
    pub async fn earlier_attempts(
        &self,
        id: &SubmissionId,
        attempt: i32,
    ) -> Result<(Vec<EarlierAttempt>, Option<serde_json::Value>), Error> {
        let action = "reading how earlier attempts ended";
        let rows = sqlx::query_as(
            "SELECT state, exit_code, reason, message,
                (SELECT count(*) FROM executors e WHERE e.submission_id = a.submission_id AND e.attempt = a.attempt
                    AND e.reason = 'OOMKilled') AS killed,
                (SELECT count(*) FROM executors e WHERE e.submission_id = a.submission_id AND e.attempt = a.attempt
                    AND e.reason IS DISTINCT FROM 'OOMKilled' AND e.exit_code = 52) AS full
             FROM attempts a WHERE submission_id = $1 AND attempt < $2 ORDER BY attempt",
        )
        .bind(id.as_str())
        .bind(attempt)
        .fetch_all(&self.patient);
        let rows: Vec<Row> = within(action, rows).await?;
        let recorded =
            sqlx::query_scalar("SELECT changes FROM attempt_overlays WHERE submission_id = $1 AND attempt = $2")
                .bind(id.as_str())
                .bind(attempt)
                .fetch_optional(&self.patient);
        let recorded: Option<Json<serde_json::Value>> = within(action, recorded).await?;
        Ok((rows.iter().map(Row::earlier).collect(), recorded.map(|Json(changes)| changes)))
    }
}

impl Row {
    fn earlier(&self) -> EarlierAttempt {
        let (reason, message) = (self.reason.as_deref(), self.message.as_deref());
        let state: Option<State> = self.state.parse().ok();
        let code = state.and_then(|state| FailureCode::for_end(state, self.exit_code, reason, message));
        EarlierAttempt { code, memory: self.memory_failure(code).filter(|_| state == Some(State::Failed)) }
    }

    fn memory_failure(&self, code: Option<FailureCode>) -> Option<MemoryFailure> {
        let is_of_driver = code == Some(FailureCode::OutOfMemory);
        let is_failure = is_of_driver || code == Some(FailureCode::ApplicationError);
        let executors = (is_failure && self.killed + self.full > 0).then_some(match self.killed >= self.full {
            true => FullMemory::Container,
            false => FullMemory::Heap,
        });
        let driver = match self.reason.as_deref() {
            _ if !is_of_driver => None,
            Some(OOM_KILLED) => Some(FullMemory::Container),
            // The driver repeats the exception of a task.
            _ if executors.is_some() => None,
            _ => Some(FullMemory::Heap),
        };
        (driver.is_some() || executors.is_some()).then_some(MemoryFailure { driver, executors })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(reason: &str, message: &str, killed: i64, full: i64) -> Option<MemoryFailure> {
        let (reason, message) = (Some(reason.to_owned()), Some(message.to_owned()));
        Row { state: "FAILED".to_owned(), exit_code: Some(1), reason, message, killed, full }.earlier().memory
    }

    fn of(driver: Option<FullMemory>, executors: Option<FullMemory>) -> Option<MemoryFailure> {
        Some(MemoryFailure { driver, executors })
    }

    #[test]
    fn what_ran_out_of_memory_is_told_by_reasons_and_exit_codes() {
        use FullMemory::{Container, Heap};
        let heap = "exited with code 1: java.lang.OutOfMemoryError: Java heap space";
        assert_eq!(failure("OOMKilled", "killed", 0, 0), of(Some(Container), None));
        assert_eq!(failure("Error", heap, 0, 0), of(Some(Heap), None));
        assert_eq!(failure("Error", heap, 0, 1), of(None, Some(Heap)), "the exception is a task's");
        assert_eq!(failure("Error", "stage failed", 3, 1), of(None, Some(Container)));
        assert_eq!(failure("Error", "stage failed", 1, 3), of(None, Some(Heap)));
        assert_eq!(failure("Error", "stage failed", 1, 0), of(None, Some(Container)));
        assert_eq!(failure("Error", "stage failed", 0, 0), None);
        assert_eq!(failure("Evicted", "evicted", 2, 0), None);
        assert_eq!(failure("OOMKilled", "killed", 2, 0), of(Some(Container), Some(Container)));
        assert_eq!(failure("Evicted", "evicted", 0, 0), None);
    }
}
