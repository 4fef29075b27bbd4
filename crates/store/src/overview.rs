//! What pages for people show beside submissions themselves: sums over a day, and the state of an installation's replicas.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::Deserialize;
use sqlx::{QueryBuilder, types::Json};

use super::{
    error::{Error, within},
    figures::WAITED,
    lease::ALIVE,
    row::ends,
    scoped::Scoped,
    store::Store,
};
use sparkgate_submission::{FailureCode, State, SubmissionId};

/// The most rows of each list.
const ROWS: i32 = 10;

/// The last 24 hours of a scope's submissions.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Day {
    /// How many were accepted in each hour.
    pub accepted: Vec<HourCount>,
    /// How many ended in each hour.
    pub ended: Vec<HourCount>,
    ends: Vec<Ends>,
    /// The live ones, by state.
    pub live: Vec<StateCount>,
    /// Those that waited longest from their acceptance to the start of their first driver, among those accepted in that time.
    pub slowest: Vec<Start>,
    /// The owners with the most accepted submissions.
    pub owners: Vec<OwnerCount>,
}

/// A number of submissions of one hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct HourCount {
    /// 0 for the last 60 minutes, 23 at most.
    pub hours_ago: usize,
    pub count: u64,
}

/// Ends with the same cause.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Ends {
    state: String,
    exit_code: Option<i32>,
    reason: Option<String>,
    message: Option<String>,
    count: u64,
}

/// The live submissions in one state.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct StateCount {
    pub state: String,
    pub count: u64,
    /// How many seconds the one that waits longest has waited for its launch.
    pub oldest: Option<u64>,
}

/// How long a submission took to start.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Start {
    pub id: String,
    pub name: String,
    pub owner: String,
    pub seconds: u64,
}

/// The submissions of one owner.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct OwnerCount {
    pub owner: String,
    pub accepted: u64,
    /// Those of them that ended without success.
    pub failed: u64,
}

/// A lease as its row says.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct LeaseRecord {
    pub name: String,
    pub holder: String,
    pub epoch: i64,
    pub alive: bool,
    pub expires_at: DateTime<Utc>,
}

/// How far a watch has come.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct WatchRecord {
    pub scope: String,
    pub resource_version: String,
    /// When the position was stored last.
    pub at: DateTime<Utc>,
}

impl Day {
    /// Returns how often each cause ended a submission, the most frequent first.
    pub fn failures(&self) -> Vec<(FailureCode, u64)> {
        let mut counts: Vec<(FailureCode, u64)> = Vec::new();
        for Ends { state, exit_code, reason, message, count } in &self.ends {
            let Ok(state) = state.parse::<State>() else { continue };
            let Some(code) = FailureCode::for_end(state, *exit_code, reason.as_deref(), message.as_deref()) else {
                continue;
            };
            match counts.iter_mut().find(|(known, _)| *known == code) {
                Some((_, sum)) => *sum += count,
                None => counts.push((code, *count)),
            }
        }
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        counts
    }

    /// Returns how many submissions ended, and how many of them with success.
    pub fn ends(&self) -> (u64, u64) {
        let sum = |wanted: &dyn Fn(&str) -> bool| -> u64 {
            self.ends.iter().filter(|end| wanted(&end.state)).map(|end| end.count).sum()
        };
        (sum(&|_| true), sum(&|state| state == State::Finished.as_str()))
    }
}

impl Scoped {
    /// Sums up the last 24 hours, in one statement. It reads two indexes of times, and those of live submissions.
    pub async fn last_day(&self) -> Result<Day, Error> {
        let action = "summing up a day";
        let mut connection = self.store.for_long_read(action).await?;
        let mut query = QueryBuilder::new(
            "WITH accepted AS MATERIALIZED (
                 SELECT id, name, owner, state, created_at, started_at,
                        floor(extract(epoch FROM clock_timestamp() - created_at) / 3600)::int AS hours_ago
                 FROM submissions s WHERE created_at > clock_timestamp() - interval '24 hours' AND ",
        );
        self.scope.push_condition(&mut query, "s");
        query.push(
            "), ended AS MATERIALIZED (
                 SELECT state, exit_code, reason, CASE state WHEN 'ERROR' THEN left(message, 300) END AS message,
                        floor(extract(epoch FROM clock_timestamp() - finished_at) / 3600)::int AS hours_ago
                 FROM submissions s WHERE finished_at > clock_timestamp() - interval '24 hours' AND ",
        );
        self.scope.push_condition(&mut query, "s");
        query.push(") , live AS (SELECT state, CASE WHEN state IN ('QUEUED', 'LAUNCHING') THEN ").push(WAITED);
        query.push(" END AS waited FROM submissions s WHERE state IN ('QUEUED', 'LAUNCHING', 'KILLING') AND ");
        self.scope.push_condition(&mut query, "s");
        query.push(" UNION ALL SELECT state, NULL FROM submissions s WHERE state IN ('PENDING', 'RUNNING') AND ");
        self.scope.push_condition(&mut query, "s");
        query.push(
            ")
             SELECT jsonb_build_object(
                 'accepted', (SELECT coalesce(jsonb_agg(h), '[]') FROM (
                     SELECT hours_ago, count(*) AS count FROM accepted WHERE hours_ago BETWEEN 0 AND 23 GROUP BY 1) AS h),
                 'ended', (SELECT coalesce(jsonb_agg(h), '[]') FROM (
                     SELECT hours_ago, count(*) AS count FROM ended WHERE hours_ago BETWEEN 0 AND 23 GROUP BY 1) AS h),
                 'ends', (SELECT coalesce(jsonb_agg(e), '[]') FROM (
                     SELECT state, exit_code, reason, message, count(*) AS count FROM ended GROUP BY 1, 2, 3, 4) AS e),
                 'live', (SELECT coalesce(jsonb_agg(l), '[]') FROM (
                     SELECT state, count(*) AS count, greatest(max(waited), 0)::bigint AS oldest FROM live GROUP BY 1) AS l),
                 'slowest', (SELECT coalesce(jsonb_agg(w), '[]') FROM (
                     SELECT id, name, owner, greatest(extract(epoch FROM started_at - created_at), 0)::bigint AS seconds
                     FROM accepted WHERE started_at IS NOT NULL ORDER BY started_at - created_at DESC LIMIT ",
        );
        query.push_bind(ROWS).push(
            ") AS w),
                 'owners', (SELECT coalesce(jsonb_agg(o), '[]') FROM (
                     SELECT owner, count(*) AS accepted,
                            count(*) FILTER (WHERE state <> 'FINISHED' AND state = ANY(",
        );
        query.push_bind(ends()).push(")) AS failed FROM accepted GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT ");
        query.push_bind(ROWS).push(") AS o))");
        let Json(day) = within(action, query.build_query_scalar().fetch_one(&mut *connection)).await?;
        Ok(day)
    }

    /// Returns the request of a submission as it was stored: with all defaults and without secrets, as JSON. `None` if no
    /// submission has this id.
    pub async fn request(&self, id: &SubmissionId) -> Result<Option<serde_json::Value>, Error> {
        let action = "reading the request of a submission";
        let mut connection = self.store.connection(action).await?;
        let mut query = QueryBuilder::new("SELECT request::text FROM submissions s WHERE id = ");
        query.push_bind(id.as_str()).push(" AND ");
        self.scope.push_condition(&mut query, "s");
        let text: Option<String> = within(action, query.build_query_scalar().fetch_optional(&mut *connection)).await?;
        text.map(|text| serde_json::from_str(&text).map_err(|error| Error::row(id.as_str(), error))).transpose()
    }

    /// Returns the keys of the properties that the request of a submission didn't have, by origin; `None` if that isn't
    /// known.
    pub async fn origins(&self, id: &SubmissionId) -> Result<Option<BTreeMap<String, Vec<String>>>, Error> {
        let action = "reading the origins of properties";
        let mut connection = self.store.connection(action).await?;
        let mut query = QueryBuilder::new("SELECT origins FROM submissions s WHERE id = ");
        query.push_bind(id.as_str()).push(" AND ");
        self.scope.push_condition(&mut query, "s");
        let origins: Option<Option<Json<_>>> =
            within(action, query.build_query_scalar().fetch_optional(&mut *connection)).await?;
        Ok(origins.flatten().map(|Json(origins)| origins))
    }
}

impl Store {
    /// Returns all leases, by name.
    pub async fn lease_records(&self) -> Result<Vec<LeaseRecord>, Error> {
        let action = "reading the leases";
        let mut connection = self.connection(action).await?;
        let statement = format!(
            "SELECT name, holder::text AS holder, epoch, {ALIVE} AS alive, expires_at FROM leases ORDER BY name LIMIT 1000"
        );
        within(action, sqlx::query_as(sqlx::AssertSqlSafe(statement)).fetch_all(&mut *connection)).await
    }

    /// Returns how far each watch has come.
    pub async fn watch_records(&self) -> Result<Vec<WatchRecord>, Error> {
        let action = "reading the positions of watches";
        let mut connection = self.connection(action).await?;
        let statement =
            sqlx::query_as("SELECT scope, resource_version, at FROM watch_positions ORDER BY scope LIMIT 1000");
        within(action, statement.fetch_all(&mut *connection)).await
    }
}
