//! The columns that make up a [`Submission`].

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use sqlx::{FromRow, postgres::PgRow, types::Json};

use super::{Error, ExecutorCounts, Found, Held, Submission, parse};
use sparkgate_spark::DriverNames;
use sparkgate_submission::SubmissionId;

pub(crate) const COLUMNS: &str =
    "id, number, name, state, owner, tenant, principal, namespace, client_id, labels, spark_version, attempt, names,
    pod_uid, node, pod_ip, exit_code, reason, message, created_at, started_at, finished_at,
    executors_pending, executors_running, executors_succeeded, executors_failed, executors_deleted,
    start_timeout, run_timeout, kill_grace, max_retries_infrastructure, max_retries_application, max_retries_capacity,
    max_retries_quota, failed_tries, queue, priority, admitted_at, held_at, held_by, held_reason";

#[derive(sqlx::FromRow)]
pub(crate) struct Row {
    id: String,
    pub(super) number: i64,
    name: String,
    state: String,
    owner: String,
    tenant: String,
    principal: String,
    namespace: String,
    client_id: Option<String>,
    labels: Json<BTreeMap<String, String>>,
    spark_version: String,
    attempt: i32,
    names: Json<DriverNames>,
    pod_uid: Option<String>,
    node: Option<String>,
    pod_ip: Option<String>,
    exit_code: Option<i32>,
    reason: Option<String>,
    message: Option<String>,
    created_at: DateTime<Utc>,
    started_at: Option<DateTime<Utc>>,
    finished_at: Option<DateTime<Utc>>,
    executors_pending: i32,
    executors_running: i32,
    executors_succeeded: i32,
    executors_failed: i32,
    executors_deleted: i32,
    start_timeout: Option<i32>,
    run_timeout: Option<i32>,
    kill_grace: Option<i32>,
    max_retries_infrastructure: i32,
    max_retries_application: i32,
    max_retries_capacity: i32,
    max_retries_quota: i32,
    failed_tries: i32,
    queue: Option<String>,
    priority: Option<i32>,
    admitted_at: Option<DateTime<Utc>>,
    held_at: Option<DateTime<Utc>>,
    held_by: Option<String>,
    held_reason: Option<String>,
}

impl Found {
    /// Reads the document of a row that a statement returned. The statement has taken effect by then.
    pub(crate) fn read(id: SubmissionId, row: &PgRow) -> Self {
        let document = Row::from_row(row).map_err(|source| Error::row(id.as_str(), source));
        Self { document: document.and_then(Submission::try_from), id }
    }
}

impl TryFrom<Row> for Submission {
    type Error = Error;

    fn try_from(row: Row) -> Result<Self, Error> {
        Ok(Self {
            id: parse(&row.id, &row.id)?,
            number: row.number,
            name: row.name,
            state: parse(&row.id, &row.state)?,
            owner: row.owner,
            tenant: row.tenant,
            principal: row.principal,
            namespace: row.namespace,
            client_id: row.client_id,
            labels: row.labels.0,
            spark_version: row.spark_version,
            attempt: row.attempt,
            names: row.names.0,
            pod_uid: row.pod_uid,
            node: row.node,
            pod_ip: row.pod_ip,
            exit_code: row.exit_code,
            reason: row.reason,
            message: row.message,
            created_at: row.created_at,
            started_at: row.started_at,
            finished_at: row.finished_at,
            executors: ExecutorCounts {
                pending: row.executors_pending,
                running: row.executors_running,
                succeeded: row.executors_succeeded,
                failed: row.executors_failed,
                deleted: row.executors_deleted,
            },
            start_timeout: row.start_timeout,
            run_timeout: row.run_timeout,
            kill_grace: row.kill_grace,
            max_retries_infrastructure: row.max_retries_infrastructure,
            max_retries_application: row.max_retries_application,
            max_retries_capacity: row.max_retries_capacity,
            max_retries_quota: row.max_retries_quota,
            failed_tries: row.failed_tries,
            queue: row.queue,
            priority: row.priority,
            admitted_at: row.admitted_at,
            held: row.held_at.map(|at| Held { at, by: row.held_by.unwrap_or_default(), reason: row.held_reason }),
        })
    }
}
