//! Archived logs of drivers, compressed, and the events of their pods.

use chrono::{DateTime, Utc};
use sqlx::{QueryBuilder, types::Json};

use super::{
    error::{Error, within},
    row::ends,
    scoped::Scoped,
    store::Store,
};
use sparkgate_submission::{PodEvent, State, SubmissionId};

/// zstd's default: a log of Spark shrinks to a tenth of its size.
const LEVEL: i32 = 3;

/// The archive of an attempt's driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptLog {
    /// The last part of its log. `None` if it wasn't archived, or couldn't be read.
    pub log: Option<LogEnd>,
    /// The relevant events of its pod, as they were at its end.
    pub events: Vec<PodEvent>,
    pub kept_at: DateTime<Utc>,
}

/// The last part of a log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogEnd {
    /// Whole lines, each of which starts with its timestamp; arbitrary bytes.
    pub text: Vec<u8>,
    /// The log had earlier lines.
    pub cut: bool,
}

/// The columns of an archive that may not exist, as other statements join them.
#[derive(sqlx::FromRow)]
pub(super) struct MaybeRow {
    kept_log: Option<Vec<u8>>,
    kept_size: Option<i32>,
    kept_cut: Option<bool>,
    kept_events: Option<Json<Vec<PodEvent>>>,
    kept_at: Option<DateTime<Utc>>,
}

impl MaybeRow {
    /// Returns the archive of the submission, if there is one.
    ///
    /// # Errors
    /// [`Error::Row`] if it can't be decompressed.
    pub(super) async fn read(self, id: &SubmissionId) -> Result<Option<KeptLog>, Error> {
        let Some(kept_at) = self.kept_at else { return Ok(None) };
        let log = match self.kept_log {
            Some(packed) => {
                let text = unpack(id, packed, self.kept_size.unwrap_or_default()).await?;
                Some(LogEnd { text, cut: self.kept_cut.unwrap_or_default() })
            }
            None => None,
        };
        Ok(Some(KeptLog { log, events: self.kept_events.map(|events| events.0).unwrap_or_default(), kept_at }))
    }
}

impl Store {
    /// Returns whether the log of the pod with this uid still has to be archived; if so, whether its driver succeeded. The pod has
    /// to be the recorded one of an ended attempt: other clients may have put our labels and our finalizer on any pod.
    pub async fn log_to_keep(&self, id: &SubmissionId, attempt: i32, uid: &str) -> Result<Option<bool>, Error> {
        let statement = sqlx::query_scalar(
            "SELECT attempt = $2 AND state = $5 FROM submissions
             WHERE id = $1 AND $3 = CASE
                   WHEN attempt > $2 THEN
                       (SELECT a.pod_uid FROM attempts a WHERE a.submission_id = $1 AND a.attempt = $2)
                   WHEN attempt = $2 AND state = ANY($4) THEN pod_uid
               END
               AND NOT EXISTS (SELECT FROM kept_logs WHERE submission_id = $1 AND kept_logs.attempt = $2)",
        )
        .bind(id.as_str())
        .bind(attempt)
        .bind(uid)
        .bind(ends())
        .bind(State::Finished.as_str())
        .fetch_optional(&self.patient);
        within("looking for an archived log", statement).await
    }

    /// Archives the log and events of an attempt, unless they are archived already or the submission was deleted.
    pub async fn keep_log(
        &self,
        id: &SubmissionId,
        attempt: i32,
        log: Option<LogEnd>,
        events: &[PodEvent],
    ) -> Result<(), Error> {
        let (size, cut) = log.as_ref().map_or((0, false), |log| (log.text.len(), log.cut));
        let packed = match log {
            Some(log) => Some(pack(id, log.text).await?),
            None => None,
        };
        let statement = sqlx::query(
            "WITH kept AS (
                 INSERT INTO kept_logs (submission_id, attempt, log, size_bytes, cut, events)
                 SELECT id, $2, $3, $4, $5, $6 FROM submissions WHERE id = $1
                 ON CONFLICT DO NOTHING RETURNING submission_id, octet_length(log) AS bytes
             ), grown AS (
                 UPDATE submissions s SET record_bytes = coalesce(record_bytes, 0) + bytes FROM kept
                 WHERE id = submission_id AND bytes > 0 RETURNING tenant, bytes
             )
             INSERT INTO record_bytes SELECT tenant, bytes FROM grown",
        )
        .bind(id.as_str())
        .bind(attempt)
        .bind(packed)
        .bind(i32::try_from(size).unwrap_or(i32::MAX))
        .bind(cut)
        .bind(Json(events))
        .execute(&self.patient);
        within("archiving a log", statement).await?;
        Ok(())
    }
}

impl Scoped {
    /// Returns the archive of an attempt.
    ///
    /// # Errors
    /// [`Error::Row`] if it can't be decompressed.
    pub async fn kept_log(&self, id: &SubmissionId, attempt: i32) -> Result<Option<KeptLog>, Error> {
        let action = "reading an archived log";
        let mut connection = self.store.for_long_read(action).await?;
        let mut query = QueryBuilder::new(
            "SELECT log AS kept_log, size_bytes AS kept_size, cut AS kept_cut, events AS kept_events, kept_at
             FROM kept_logs k JOIN submissions s ON s.id = submission_id
             WHERE submission_id = ",
        );
        query.push_bind(id.as_str()).push(" AND k.attempt = ").push_bind(attempt).push(" AND ");
        self.scope.push_condition(&mut query, "s");
        let statement = query.build_query_as::<MaybeRow>().fetch_optional(&mut *connection);
        let row = within(action, statement).await?;
        drop(connection);
        match row {
            Some(row) => row.read(id).await,
            None => Ok(None),
        }
    }
}

/// Compresses a log. This takes some milliseconds, too long for a thread that runs async tasks.
async fn pack(id: &SubmissionId, text: Vec<u8>) -> Result<Vec<u8>, Error> {
    aside(id, move || zstd::bulk::compress(&text, LEVEL)).await
}

async fn unpack(id: &SubmissionId, packed: Vec<u8>, size: i32) -> Result<Vec<u8>, Error> {
    aside(id, move || zstd::bulk::decompress(&packed, usize::try_from(size).unwrap_or_default())).await
}

async fn aside(
    id: &SubmissionId,
    work: impl FnOnce() -> std::io::Result<Vec<u8>> + Send + 'static,
) -> Result<Vec<u8>, Error> {
    let done = tokio::task::spawn_blocking(work).await.map_err(|source| Error::row(id.as_str(), source))?;
    done.map_err(|source| Error::row(id.as_str(), source))
}
