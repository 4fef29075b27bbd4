//! Reads what workers need of submissions.

use std::collections::{HashMap, HashSet};

use super::{
    error::{Error, within},
    row::{kill_cause, parse, readable},
    store::Store,
};
use sparkgate_submission::{State, SubmissionId, engine::Row};

/// Selects the values that the engine needs. The names of a later attempt are stored by its launch, before its pod is recorded.
macro_rules! engine_row {
    () => {
        "SELECT id, state, attempt, namespace, CASE WHEN attempt = 1 OR pod_uid IS NOT NULL THEN nullif(names ->> 'driverPod', '') END AS pod,
                 pod_uid, kill_cause, CASE state WHEN 'KILLING' THEN message END AS words
             FROM submissions"
    };
}

#[derive(sqlx::FromRow)]
struct EngineRow {
    id: String,
    state: String,
    attempt: i32,
    namespace: String,
    pod: Option<String>,
    pod_uid: Option<String>,
    kill_cause: Option<String>,
    words: Option<String>,
}

impl EngineRow {
    fn read(self) -> Result<Row, Error> {
        let kill = kill_cause(&self.id, self.kill_cause.as_deref(), self.words)?;
        let Self { id, state, attempt, namespace, pod, pod_uid, .. } = self;
        Ok(Row { state: parse(&id, &state)?, attempt, namespace, pod, pod_uid, kill })
    }
}

/// A submission whose pod should exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Live {
    pub id: SubmissionId,
    pub attempt: i32,
    pub state: State,
    pub namespace: String,
    /// The name of the driver pod.
    pub pod: String,
    pub pod_uid: Option<String>,
}

impl Store {
    /// Returns the values that the engine needs, for workers: they wait longer for a connection.
    pub async fn row(&self, id: &SubmissionId) -> Result<Option<Row>, Error> {
        let row: Option<EngineRow> = within(
            "reading a submission",
            sqlx::query_as(concat!(engine_row!(), " WHERE id = $1")).bind(id.as_str()).fetch_optional(&self.patient),
        )
        .await?;
        row.map(EngineRow::read).transpose()
    }

    /// Returns the same for many submissions, in one statement. Those that don't exist or can't be read are missing.
    pub async fn rows(&self, ids: &[&str]) -> Result<HashMap<SubmissionId, Row>, Error> {
        let rows: Vec<EngineRow> = within(
            "reading submissions",
            sqlx::query_as(concat!(engine_row!(), " WHERE id = ANY($1)")).bind(ids).fetch_all(&self.patient),
        )
        .await?;
        let row = |row: EngineRow| Some((row.id.parse().ok()?, row.read().ok()?));
        Ok(rows.into_iter().filter_map(row).collect())
    }

    /// Returns which of these submissions' rows are locked by other transactions, without waiting for any.
    pub async fn locked(&self, ids: &[&SubmissionId]) -> Result<HashSet<SubmissionId>, Error> {
        let ids: Vec<&str> = ids.iter().map(|id| id.as_str()).collect();
        // The rows that the first part finds unlocked are locked until the end of the statement, which changes nothing.
        let locked: Vec<String> = within(
            "looking for locked submissions",
            sqlx::query_scalar(
                "WITH free AS MATERIALIZED (
                 SELECT id FROM submissions WHERE id = ANY($1) FOR NO KEY UPDATE SKIP LOCKED
             )
             SELECT id FROM submissions WHERE id = ANY($1) AND id NOT IN (SELECT id FROM free)",
            )
            .bind(&ids)
            .fetch_all(&self.patient),
        )
        .await?;
        Ok(locked.into_iter().filter_map(|id| id.parse().ok()).collect())
    }

    /// Returns all submissions whose pod should exist: launched and not ended. A submission that is being launched or killed is
    /// included once its pod is recorded; before that, the claim decides. A row that can't be read is logged and skipped.
    pub async fn live(&self) -> Result<Vec<Live>, Error> {
        let rows: Vec<(String, i32, String, String, String, Option<String>)> = within(
            "listing live submissions",
            self.patient.read_all(sqlx::query_as(
                "SELECT id, attempt, state, namespace, coalesce(names ->> 'driverPod', ''), pod_uid FROM (
                 SELECT * FROM submissions
                 WHERE state IN ('PENDING', 'RUNNING') OR (state = 'KILLING' AND pod_uid IS NOT NULL)
                 UNION ALL
                 SELECT * FROM submissions WHERE state = 'LAUNCHING' AND pod_uid IS NOT NULL
             ) AS live ORDER BY number",
            )),
        )
        .await?;
        Ok(readable(rows.into_iter().map(|(id, attempt, state, namespace, pod, pod_uid)| {
            Ok(Live { state: parse(&id, &state)?, id: parse(&id, &id)?, attempt, namespace, pod, pod_uid })
        })))
    }
}
