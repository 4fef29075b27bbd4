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

/// How far back a sum goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Period {
    #[default]
    Day,
    Week,
    Month,
}

impl Period {
    pub const ALL: [Self; 3] = [Self::Day, Self::Week, Self::Month];

    /// Returns its length as a word: `24h`, `7d`, `30d`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Day => "24h",
            Self::Week => "7d",
            Self::Month => "30d",
        }
    }

    /// Returns the length of the parts that are counted, in hours, and their number.
    pub fn parts(self) -> (u32, u32) {
        match self {
            Self::Day => (1, 24),
            Self::Week => (6, 28),
            Self::Month => (24, 30),
        }
    }

    /// Returns its length in hours.
    pub fn hours(self) -> u32 {
        let (length, count) = self.parts();
        length * count
    }
}

/// What happened to a scope's submissions in a period up to now.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Recent {
    /// How many were accepted in each part of the period.
    pub accepted: Vec<PartCount>,
    /// How many ended in each part.
    pub ended: Vec<PartCount>,
    /// How long those that finished took, in seconds; `None` if none did.
    pub durations: Option<Durations>,
    ends: Vec<Ends>,
    /// The live ones, by state.
    pub live: Vec<StateCount>,
    /// Those that waited longest from their acceptance to the start of their first driver, among those accepted in that time.
    pub slowest: Vec<Start>,
    /// The owners with the most accepted submissions.
    pub owners: Vec<OwnerCount>,
}

/// A number of submissions of one part of a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct PartCount {
    /// 0 for the part that ends now.
    pub parts_ago: u32,
    pub count: u64,
}

/// How long runs took, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct Durations {
    pub median: f64,
    /// What nine of ten took at most.
    pub p90: f64,
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
    /// The holder's host, or its pod; `None` for a replica of an older release.
    pub host: Option<String>,
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

impl Recent {
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
    /// Sums up a period, in one statement. It reads two indexes of times, and those of live submissions. The time is that of the statement:
    /// Postgres uses no index for `clock_timestamp()`, which has another value for each row.
    pub async fn recent(&self, period: Period) -> Result<Recent, Error> {
        let action = "summing up a period";
        let mut connection = self.store.for_long_read(action).await?;
        let (length, count) = period.parts();
        let (seconds, hours) = (length * 3600, period.hours());
        let mut query = QueryBuilder::new(format!(
            "WITH accepted AS MATERIALIZED (
                 SELECT id, name, owner, state, created_at, started_at,
                        floor(extract(epoch FROM statement_timestamp() - created_at) / {seconds})::int AS parts_ago
                 FROM submissions s WHERE created_at > statement_timestamp() - interval '{hours} hours' AND ",
        ));
        self.scope.push_condition(&mut query, "s");
        query.push(format!(
            "), ended AS MATERIALIZED (
                 SELECT state, exit_code, reason, CASE state WHEN 'ERROR' THEN left(message, 300) END AS message,
                        CASE state WHEN 'FINISHED' THEN extract(epoch FROM finished_at - started_at)::float8 END AS took,
                        floor(extract(epoch FROM statement_timestamp() - finished_at) / {seconds})::int AS parts_ago
                 FROM submissions s WHERE finished_at > statement_timestamp() - interval '{hours} hours' AND ",
        ));
        self.scope.push_condition(&mut query, "s");
        query.push(") , live AS (SELECT state, CASE WHEN state IN ('QUEUED', 'LAUNCHING') THEN ").push(WAITED);
        query.push(" END AS waited FROM submissions s WHERE state IN ('QUEUED', 'LAUNCHING', 'KILLING') AND ");
        self.scope.push_condition(&mut query, "s");
        query.push(" UNION ALL SELECT state, NULL FROM submissions s WHERE state IN ('PENDING', 'RUNNING') AND ");
        self.scope.push_condition(&mut query, "s");
        query.push(format!(
            ")
             SELECT jsonb_build_object(
                 'accepted', (SELECT coalesce(jsonb_agg(h), '[]') FROM (
                     SELECT parts_ago, count(*) AS count FROM accepted WHERE parts_ago BETWEEN 0 AND {last} GROUP BY 1) AS h),
                 'ended', (SELECT coalesce(jsonb_agg(h), '[]') FROM (
                     SELECT parts_ago, count(*) AS count FROM ended WHERE parts_ago BETWEEN 0 AND {last} GROUP BY 1) AS h),
                 'durations', (SELECT CASE WHEN count(took) > 0 THEN jsonb_build_object(
                     'median', percentile_cont(0.5) WITHIN GROUP (ORDER BY took),
                     'p90', percentile_cont(0.9) WITHIN GROUP (ORDER BY took)) END FROM ended),
                 'ends', (SELECT coalesce(jsonb_agg(e), '[]') FROM (
                     SELECT state, exit_code, reason, message, count(*) AS count FROM ended GROUP BY 1, 2, 3, 4) AS e),
                 'live', (SELECT coalesce(jsonb_agg(l), '[]') FROM (
                     SELECT state, count(*) AS count, greatest(max(waited), 0)::bigint AS oldest FROM live GROUP BY 1) AS l),
                 'slowest', (SELECT coalesce(jsonb_agg(w), '[]') FROM (
                     SELECT id, name, owner, greatest(extract(epoch FROM started_at - created_at), 0)::bigint AS seconds
                     FROM accepted WHERE started_at IS NOT NULL ORDER BY started_at - created_at DESC LIMIT ",
            last = count - 1
        ));
        query.push_bind(ROWS).push(
            ") AS w),
                 'owners', (SELECT coalesce(jsonb_agg(o), '[]') FROM (
                     SELECT owner, count(*) AS accepted,
                            count(*) FILTER (WHERE state <> 'FINISHED' AND state = ANY(",
        );
        query.push_bind(ends()).push(")) AS failed FROM accepted GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT ");
        query.push_bind(ROWS).push(") AS o))");
        let Json(recent) = within(action, query.build_query_scalar().fetch_one(&mut *connection)).await?;
        Ok(recent)
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
            "SELECT name, holder::text AS holder, (SELECT host FROM replica_keys WHERE session = holder) AS host, epoch,
                    {ALIVE} AS alive, expires_at
             FROM leases ORDER BY name LIMIT 1000"
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
