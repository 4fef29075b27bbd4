//! Reads of submissions for display.

use sqlx::{PgConnection, Postgres, QueryBuilder};

use super::{
    Page, StateCounts, Submission,
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

/// The most submissions that a page of a filter without an index looks at.
const LOOKED_AT: i64 = 20_000;
/// The most submissions of which the states are counted.
const COUNTED: i64 = 5000;

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

    /// Returns up to `limit` submissions that match a filter, starting before the number `before` if one is given. A page of a
    /// filter that has criteria without an index looks at 20,000 submissions at most, so it may have fewer, or none,
    /// although there are older ones. A row that can't be read is logged and skipped.
    pub async fn submissions(&self, filter: &Filter, before: Option<i64>, limit: u32) -> Result<Page, Error> {
        let action = "listing submissions";
        let mut connection = self.store.for_long_read(action).await?;
        // Read before the page: later submissions are newer than those that the page has to look at.
        let end = self.end_of_page(action, &mut connection, filter, before).await?;
        let mut query = list("", &self.scope, filter, (before, end), limit);
        let mut rows: Vec<Row> = within(action, query.build_query_as().fetch_all(&mut *connection)).await?;
        let is_full = rows.len() > limit as usize;
        rows.truncate(limit as usize);
        let last = rows.last().map(|row| row.number);
        let (last, more) = if is_full { (last, true) } else { (end.or(last), end.is_some()) };
        Ok(Page { items: readable(rows.into_iter().map(Submission::try_from)), last, more })
    }

    /// Returns Postgres' plan of such a list, from `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON)`, to find out why a list takes
    /// long.
    pub async fn explain(&self, filter: &Filter, before: Option<i64>, limit: u32) -> Result<serde_json::Value, Error> {
        let action = "explaining a list of submissions";
        let mut connection = self.store.for_long_read(action).await?;
        let end = self.end_of_page(action, &mut connection, filter, before).await?;
        let mut query = list("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ", &self.scope, filter, (before, end), limit);
        within(action, query.build_query_scalar().fetch_one(&mut *connection)).await
    }

    /// Returns the number of the last submission that a page looks at; `None` if it may look at all.
    async fn end_of_page(
        &self,
        action: &'static str,
        connection: &mut PgConnection,
        filter: &Filter,
        before: Option<i64>,
    ) -> Result<Option<i64>, Error> {
        if filter.is_indexed() {
            return Ok(None);
        }
        let mut query = QueryBuilder::new("SELECT number FROM submissions s WHERE ");
        self.scope.push_condition(&mut query, "s");
        filter.push_indexed_to(&mut query, before);
        query.push(" ORDER BY number DESC LIMIT 1 OFFSET ").push_bind(LOOKED_AT - 1);
        within(action, query.build_query_scalar().fetch_optional(connection)).await
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

    /// Returns how many of the newest 5,000 submissions that match the criteria with an index are in each state, and match the
    /// others.
    pub async fn count_states(&self, filter: &Filter) -> Result<StateCounts, Error> {
        let action = "counting the states of submissions";
        let mut connection = self.store.for_long_read(action).await?;
        let mut query = QueryBuilder::<Postgres>::new("SELECT state, count(*) FILTER (WHERE true");
        filter.push_unindexed_to(&mut query);
        query.push(
            "), (sum(count(*)) OVER ())::bigint FROM (
                 SELECT state, exit_code, reason, message, name, principal, spark_version FROM submissions s WHERE ",
        );
        self.scope.push_condition(&mut query, "s");
        filter.push_indexed_to(&mut query, None);
        query.push(" ORDER BY number DESC LIMIT ").push_bind(COUNTED).push(") s GROUP BY state");
        let rows: Vec<(String, i64, i64)> = within(action, query.build_query_as().fetch_all(&mut *connection)).await?;
        let are_all = rows.first().is_none_or(|(_, _, looked_at)| *looked_at < COUNTED);
        let count = |(state, count, _): (String, i64, i64)| Some((state.parse().ok()?, count.unsigned_abs()));
        Ok(StateCounts { counts: rows.into_iter().filter_map(count).collect(), are_all })
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

/// Reads the page before one number, down to the other one.
fn list(
    prefix: &str,
    scope: &Scope,
    filter: &Filter,
    (before, end): (Option<i64>, Option<i64>),
    limit: u32,
) -> QueryBuilder<Postgres> {
    let mut query = QueryBuilder::new(prefix);
    query.push("SELECT ").push(COLUMNS).push(" FROM submissions s WHERE ");
    scope.push_condition(&mut query, "s");
    filter.push_to(&mut query, before);
    if let Some(end) = end {
        query.push(" AND number >= ").push_bind(end);
    }
    query.push(" ORDER BY number DESC LIMIT ").push_bind(i64::from(limit) + 1);
    query
}
