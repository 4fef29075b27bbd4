//! Reads of submissions for display.

use sqlx::{Postgres, QueryBuilder};

use super::{
    Page, Submission,
    filter::Filter,
    row::{COLUMNS, Row},
};
use crate::{
    error::{Error, within},
    row::readable,
    scope::Scope,
    scoped::Scoped,
};
use sparkgate_submission::SubmissionId;

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
