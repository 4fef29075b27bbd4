//! The columns of a record.

use chrono::{DateTime, Utc};
use sqlx::{Postgres, QueryBuilder};

use crate::{error::Error, grouped_reads::groups::View, row::parse};
use sparkgate_submission::{State, SubmissionId};

/// The properties of a submission in a status reply.
#[derive(Debug, Clone)]
pub struct Record {
    pub id: SubmissionId,
    pub state: State,
    pub attempt: i32,
    pub exit_code: Option<i32>,
    pub reason: Option<String>,
    pub message: Option<String>,
    pub pod_uid: Option<String>,
    pub node: Option<String>,
    pub pod_ip: Option<String>,
    pub started_at: Option<DateTime<Utc>>,
    pub cleared: bool,
}

#[derive(sqlx::FromRow)]
pub(crate) struct RecordRow {
    id: String,
    state: String,
    attempt: i32,
    exit_code: Option<i32>,
    reason: Option<String>,
    message: Option<String>,
    pod_uid: Option<String>,
    node: Option<String>,
    pod_ip: Option<String>,
    started_at: Option<DateTime<Utc>>,
    cleared: bool,
}

/// The view of a [`Record`].
#[derive(Debug, PartialEq)]
pub(crate) struct RecordView;

impl View for RecordView {
    type Row = RecordRow;

    fn push(&self, query: &mut QueryBuilder<Postgres>, rows: impl FnOnce(&mut QueryBuilder<Postgres>)) {
        query.push(
            "SELECT place, tenant, principal, id, state, attempt, exit_code, reason, message, pod_uid, node, pod_ip, started_at,
                    cleared_at IS NOT NULL AS cleared
             FROM ",
        );
        rows(query);
    }
}

impl TryFrom<RecordRow> for Record {
    type Error = Error;

    fn try_from(row: RecordRow) -> Result<Self, Error> {
        Ok(Self {
            id: parse(&row.id, &row.id)?,
            state: parse(&row.id, &row.state)?,
            attempt: row.attempt,
            exit_code: row.exit_code,
            reason: row.reason,
            message: row.message,
            pod_uid: row.pod_uid,
            node: row.node,
            pod_ip: row.pod_ip,
            started_at: row.started_at,
            cleared: row.cleared,
        })
    }
}
