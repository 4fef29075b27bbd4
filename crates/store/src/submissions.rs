//! Submissions for display: one, or a page of those that match a filter.

mod filter;
mod row;

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use sqlx::{Postgres, QueryBuilder};

use super::{
    Error, Scope, Scoped,
    error::within,
    row::{parse, readable},
};
pub use filter::Filter;
pub(super) use row::COLUMNS;
pub(super) use row::Row;
use sparkgate_spark::DriverNames;
use sparkgate_submission::{State, SubmissionId};

/// All stored properties of a submission except its request and its objects.
#[derive(Debug, Clone, PartialEq)]
pub struct Submission {
    pub id: SubmissionId,
    /// The position in the order of acceptance.
    pub number: i64,
    pub name: String,
    pub state: State,
    /// The user for whom it runs, as the request says.
    pub owner: String,
    pub tenant: String,
    /// The caller that submitted it, as the gateway authenticated it.
    pub principal: String,
    pub namespace: String,
    /// The client's own id, unique in the tenant.
    pub client_id: Option<String>,
    pub labels: BTreeMap<String, String>,
    pub spark_version: String,
    /// The current attempt, 1 until the first retry.
    pub attempt: i32,
    pub names: DriverNames,
    pub pod_uid: Option<String>,
    pub node: Option<String>,
    pub pod_ip: Option<String>,
    pub exit_code: Option<i32>,
    pub reason: Option<String>,
    pub message: Option<String>,
    pub created_at: DateTime<Utc>,
    pub started_at: Option<DateTime<Utc>>,
    pub finished_at: Option<DateTime<Utc>>,
    pub executors: ExecutorCounts,
    /// In seconds, as requested or as limited by the operator.
    pub start_timeout: Option<i32>,
    pub run_timeout: Option<i32>,
    pub kill_grace: Option<i32>,
    pub max_retries_infrastructure: i32,
    pub max_retries_application: i32,
    /// Consecutive failed tries of claimed work, after which it was postponed, for example because the cluster was unavailable.
    pub failed_tries: i32,
    /// The queue that admits it, if there is one.
    pub queue: Option<String>,
    /// Its priority in that queue.
    pub priority: Option<i32>,
    /// When the queue admitted the current attempt.
    pub admitted_at: Option<DateTime<Utc>>,
    /// It isn't launched before it is released.
    pub held: Option<Held>,
}

/// Since when a submission is held, by whom and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    pub at: DateTime<Utc>,
    /// The subject of the principal.
    pub by: String,
    pub reason: Option<String>,
}

/// The submission that a statement concerned.
#[derive(Debug)]
pub struct Found {
    pub id: SubmissionId,
    /// [`Error::Row`] if this release can't read it; the effect of the statement holds anyway.
    pub document: Result<Submission, Error>,
}

/// The number of executors in each state, over all attempts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExecutorCounts {
    pub pending: i32,
    pub running: i32,
    pub succeeded: i32,
    pub failed: i32,
    pub deleted: i32,
}

/// A page of submissions, newest first, and whether there are older ones.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    pub items: Vec<Submission>,
    /// The number of the last submission.
    pub last: Option<i64>,
    pub more: bool,
}

impl Scoped {
    /// Returns a submission, or `None` if none has this id.
    pub async fn submission(&self, id: &SubmissionId) -> Result<Option<Submission>, Error> {
        let action = "reading a submission";
        let mut connection = self.store.connection(action).await?;
        let mut query = QueryBuilder::<Postgres>::new("SELECT ");
        query.push(COLUMNS).push(" FROM submissions s WHERE id = ").push_bind(id.as_str()).push(" AND ");
        self.scope.push_condition(&mut query, "s");
        let row: Option<Row> = within(action, query.build_query_as().fetch_optional(&mut *connection)).await?;
        row.map(Submission::try_from).transpose()
    }

    /// Returns up to `limit` submissions that match a filter, starting before `number` if one is given. A row that can't be
    /// read is logged and skipped.
    pub async fn submissions(&self, filter: &Filter, before: Option<i64>, limit: u32) -> Result<Page, Error> {
        let action = "listing submissions";
        let mut connection = self.store.for_long_read(action).await?;
        let mut query = list("", &self.scope, filter, before, limit);
        let mut rows: Vec<Row> = within(action, query.build_query_as().fetch_all(&mut *connection)).await?;
        let more = rows.len() > limit as usize;
        rows.truncate(limit as usize);
        let last = rows.last().map(|row| row.number);
        Ok(Page { items: readable(rows.into_iter().map(Submission::try_from)), last, more })
    }

    /// Returns Postgres' plan of such a list, from `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON)`, to find out why a list takes
    /// long.
    pub async fn explain(&self, filter: &Filter, before: Option<i64>, limit: u32) -> Result<serde_json::Value, Error> {
        let action = "explaining a list of submissions";
        let mut connection = self.store.for_long_read(action).await?;
        let mut query = list("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ", &self.scope, filter, before, limit);
        within(action, query.build_query_scalar().fetch_one(&mut *connection)).await
    }

    /// Returns how many submissions match a filter.
    pub async fn count(&self, filter: &Filter) -> Result<u64, Error> {
        let action = "counting submissions";
        let mut connection = self.store.for_long_read(action).await?;
        let mut query = QueryBuilder::<Postgres>::new("SELECT count(*) FROM submissions s WHERE ");
        self.scope.push_condition(&mut query, "s");
        filter.push_to(&mut query, None);
        let count: i64 = within(action, query.build_query_scalar().fetch_one(&mut *connection)).await?;
        Ok(count.unsigned_abs())
    }

    /// Returns the number of the newest submission, if there is one.
    pub async fn newest(&self) -> Result<Option<i64>, Error> {
        let action = "looking for the newest submission";
        let mut connection = self.store.connection(action).await?;
        let mut query = QueryBuilder::<Postgres>::new("SELECT max(number) FROM submissions s WHERE ");
        self.scope.push_condition(&mut query, "s");
        within(action, query.build_query_scalar().fetch_one(&mut *connection)).await
    }

    /// Returns the objects of an attempt as they were created, as JSON: `{"before": […], "pod": …, "beside": […]}`. They are
    /// stored as long as the driver's pod exists.
    pub async fn manifest(&self, id: &SubmissionId, attempt: i32) -> Result<Option<String>, Error> {
        let action = "reading a submission's objects";
        let mut connection = self.store.connection(action).await?;
        let mut query = QueryBuilder::<Postgres>::new(
            "SELECT objects FROM manifests m JOIN submissions s ON s.id = submission_id WHERE submission_id = ",
        );
        query.push_bind(id.as_str()).push(" AND m.attempt = ").push_bind(attempt).push(" AND ");
        self.scope.push_condition(&mut query, "s");
        within(action, query.build_query_scalar().fetch_optional(&mut *connection)).await
    }
}

fn list(prefix: &str, scope: &Scope, filter: &Filter, before: Option<i64>, limit: u32) -> QueryBuilder<Postgres> {
    let mut query = QueryBuilder::new(prefix);
    query.push("SELECT ").push(COLUMNS).push(" FROM submissions s WHERE ");
    scope.push_condition(&mut query, "s");
    filter.push_to(&mut query, before);
    query.push(" ORDER BY number DESC LIMIT ").push_bind(i64::from(limit) + 1);
    query
}
