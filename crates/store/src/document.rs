//! All that the document of one submission shows, in one statement: its row, and what features know of it. A feature adds a column or
//! a join here, never a statement.

pub(super) mod view;

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::{Postgres, QueryBuilder, types::Json};

use self::view::DocumentView;
use super::{
    error::Error,
    grouped_reads::groups::View,
    kept_logs::{self, KeptLog},
    late::Lateness,
    queues::{QueueStanding, StoredStanding, push_standing},
    row::ends,
    scoped::Scoped,
    spark_summaries::SparkSummary,
    starts::{RECORDED, StartupTimes},
    submissions::{self, COLUMNS, Submission},
    usage::{Prices, SubmissionUsage, Sums, push_usage},
};
use sparkgate_submission::SubmissionId;

/// A submission with what features know of it.
#[derive(Debug, Clone, PartialEq)]
pub struct SubmissionDocument {
    pub submission: Submission,
    /// `None` before its first pod.
    pub usage: Option<SubmissionUsage>,
    /// What its driver said last, if it ever did.
    pub spark: Option<SparkSummary>,
    /// The archive of the current attempt, once it has ended.
    pub archive: Option<KeptLog>,
    /// Where it stands in its queue, if it waits there, or until when it pauses between two attempts.
    pub standing: Option<QueueStanding>,
    /// What the launch of the current attempt changed in its objects.
    pub launch_changes: Option<Value>,
    pub startup: StartupTimes,
    /// That the current attempt takes longer than expected, once that was reported.
    pub late: Option<Lateness>,
}

#[derive(sqlx::FromRow)]
pub(crate) struct Row {
    #[sqlx(flatten)]
    submission: submissions::Row,
    usage: Option<Json<Vec<Sums>>>,
    said_by: Option<i32>,
    said_at: Option<DateTime<Utc>>,
    said: Option<Json<Value>>,
    #[sqlx(flatten)]
    archive: kept_logs::MaybeRow,
    standing: Option<Json<StoredStanding>>,
    #[sqlx(flatten)]
    startup: StartupTimes,
    changes: Option<Json<Value>>,
    late: Option<Json<Lateness>>,
}

impl View for DocumentView {
    type Row = Row;

    fn push(&self, query: &mut QueryBuilder<Postgres>, rows: impl FnOnce(&mut QueryBuilder<Postgres>)) {
        query.push("SELECT place, ").push(COLUMNS).push(", CASE WHEN pod_uid IS NOT NULL OR attempt > 1 THEN (");
        push_usage(query, &self.0);
        query.push(
            ") END AS usage, said_by, said_at, said, kept_log, kept_size, kept_cut, kept_events, kept_at, standing, changes, late,
                 coalesce(queued_at, created_at) AS attempt_queued_at, objects_at, pod_since AS node_at, executor_created_at, executor_started_at
             FROM ",
        );
        rows(query);
        // Each has one row at most: with a limit, Postgres looks it up for each submission, whatever it estimates.
        query.push(" ").push(RECORDED).push(
            "
             LEFT JOIN LATERAL (
                 SELECT o.changes FROM attempt_overlays o WHERE o.submission_id = s.id AND o.attempt = s.attempt LIMIT 1) AS overlay ON true
             LEFT JOIN LATERAL (
                 SELECT jsonb_build_object('reported_at', n.reported_at, 'seconds', n.seconds, 'runs', n.runs) AS late FROM expected_ends n
                 WHERE n.submission_id = s.id AND n.attempt = s.attempt AND n.reported_at IS NOT NULL LIMIT 1) AS lateness ON true
             LEFT JOIN LATERAL (
                 SELECT k.attempt AS said_by, k.read_at AS said_at, k.summary AS said FROM spark_summaries k
                 WHERE k.submission_id = s.id AND k.read_at IS NOT NULL LIMIT 1) AS said ON true
             LEFT JOIN LATERAL (
                 SELECT l.log AS kept_log, l.size_bytes AS kept_size, l.cut AS kept_cut, l.events AS kept_events, l.kept_at
                 FROM kept_logs l WHERE l.submission_id = s.id AND l.attempt = s.attempt AND s.state = ANY(",
        );
        query.push_bind(ends()).push(") LIMIT 1) AS kept ON true");
        push_standing(query);
    }
}

impl Scoped {
    /// Returns the document of a submission, or `None` if none has this id. Usage counts up to the last full minute while it runs.
    ///
    /// # Errors
    /// [`Error::Row`] if its row or its log can't be read.
    pub async fn document(&self, id: &SubmissionId, prices: Prices) -> Result<Option<SubmissionDocument>, Error> {
        let row = self.store.groups.documents.read(self, id, DocumentView(prices)).await?;
        let Some(Row { submission, usage, said_by, said_at, said, archive, standing, startup, changes, late }) = row
        else {
            return Ok(None);
        };
        let spark = said_by.zip(said_at).zip(said);
        Ok(Some(SubmissionDocument {
            submission: submission.try_into()?,
            usage: usage.map(|Json(attempts)| attempts.into()),
            spark: spark.map(|((attempt, read_at), Json(summary))| SparkSummary { attempt, read_at, summary }),
            archive: archive.read(id).await?,
            standing: standing.map(|Json(stored)| stored.into()),
            launch_changes: changes.map(|Json(changes)| changes),
            startup,
            late: late.map(|Json(late)| late),
        }))
    }
}
