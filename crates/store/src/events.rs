//! Reads events, the records of state changes: all of them in the order of their numbers, and those of one submission.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use sqlx::QueryBuilder;

use super::{
    error::{Error, within},
    scoped::Scoped,
    store::Store,
};
use sparkgate_submission::SubmissionId;

/// One change of a submission's state. Its texts are returned as they were written, by whatever release.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct Event {
    /// Its number in the order of all events; `None` for a moment after its commit.
    pub sequence: Option<i64>,
    pub submission_id: String,
    pub attempt: i32,
    pub state: String,
    /// The previous state, of whichever attempt.
    pub previous: Option<String>,
    pub reason: Option<String>,
    pub message: Option<String>,
    pub at: DateTime<Utc>,
    #[sqlx(flatten)]
    pub of: About,
}

/// Properties by which events are filtered, besides the submission.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct About {
    pub tenant: String,
    pub principal: String,
    pub owner: String,
    pub namespace: String,
    #[sqlx(json)]
    pub labels: BTreeMap<String, String>,
}

/// The columns of [`Event`], of an event `e` of a [`PAGE`] and its submission `s`. Numbers are the order of events, and of those that
/// have none yet, ids: if the sequence of ids has gone back, later events have lower ones.
const COLUMNS: &str = "e.sequence, e.submission_id, e.attempt, e.state, e.reason, e.message, e.at,
    s.tenant, s.principal, s.owner, s.namespace, s.labels,
    coalesce(e.before, (SELECT p.state FROM submission_events p WHERE p.submission_id = e.submission_id
         AND (p.sequence < e.sequence OR (e.sequence IS NULL AND (p.sequence IS NOT NULL OR p.id < e.id)))
     ORDER BY p.sequence DESC NULLS FIRST, p.id DESC LIMIT 1)) AS previous";

/// What precedes and follows a statement that selects events without gaps: each has the state `before`, so that only the first one of a
/// submission has to look for it.
const PAGE: (&str, &str) = (
    " FROM (SELECT *, lag(state) OVER (PARTITION BY submission_id ORDER BY sequence, id) AS before FROM (",
    ") page) e JOIN submissions s ON s.id = e.submission_id",
);

impl Store {
    /// Returns up to `limit` events with numbers above `after`, in order, for workers.
    pub async fn new_events(&self, after: i64, limit: u32) -> Result<Vec<Event>, Error> {
        let statement = in_order();
        let page = sqlx::query_as(sqlx::AssertSqlSafe(statement)).bind(after).bind(i64::from(limit));
        within("reading new events", page.fetch_all(&self.patient)).await
    }

    /// Returns the same for requests.
    pub async fn events(&self, after: i64, limit: u32) -> Result<Vec<Event>, Error> {
        let action = "reading events";
        let statement = in_order();
        let mut connection = self.for_long_read(action).await?;
        let page = sqlx::query_as(sqlx::AssertSqlSafe(statement)).bind(after).bind(i64::from(limit));
        within(action, page.fetch_all(&mut *connection)).await
    }
}

impl Scoped {
    /// Returns up to `limit` events of one submission, oldest first: those with numbers above `after`, then those that have no
    /// number yet. `None` if no submission has this id.
    pub async fn submission_events(
        &self,
        id: &SubmissionId,
        after: i64,
        limit: u32,
    ) -> Result<Option<Vec<Event>>, Error> {
        let action = "reading a submission's events";
        let mut connection = self.store.for_long_read(action).await?;
        let mut query = QueryBuilder::new("SELECT ");
        query.push(COLUMNS).push(PAGE.0).push("SELECT * FROM submission_events WHERE submission_id = ");
        query.push_bind(id.as_str()).push(" AND (sequence > ").push_bind(after);
        query.push(" OR sequence IS NULL)").push(PAGE.1).push(" WHERE ");
        self.scope.push_condition(&mut query, "s");
        query.push(" ORDER BY e.sequence, e.id LIMIT ").push_bind(i64::from(limit));
        let page: Vec<Event> = within(action, query.build_query_as().fetch_all(&mut *connection)).await?;
        if !page.is_empty() {
            return Ok(Some(page));
        }
        let mut query = QueryBuilder::new("SELECT EXISTS (SELECT FROM submissions s WHERE id = ");
        query.push_bind(id.as_str()).push(" AND ");
        self.scope.push_condition(&mut query, "s");
        query.push(")");
        let known: bool = within(action, query.build_query_scalar().fetch_one(&mut *connection)).await?;
        Ok(known.then_some(page))
    }
}

/// Returns the statement. `$1`: the number after which to start, `$2`: the limit.
fn in_order() -> String {
    let (begin, end) = PAGE;
    format!(
        "SELECT {COLUMNS}{begin}
             SELECT * FROM submission_events WHERE sequence > $1 ORDER BY sequence LIMIT $2
         {end} ORDER BY e.sequence"
    )
}
