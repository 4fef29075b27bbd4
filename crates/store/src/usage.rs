//! Usage: what pods reserved on their nodes, and for how long. Computed from the rows of submissions, attempts and executors when
//! it is read. Some time after their end, submissions are settled: what they used is added to the sums of each day, from which
//! reports read it then, and which stay when submissions are deleted.

pub(super) mod prices;

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, Utc};
use serde::Deserialize;
use sqlx::{FromRow, Postgres, QueryBuilder, Row, postgres::PgRow, types::Json};

pub use self::prices::{Price, Prices};
use super::{
    error::{Error, within},
    row::BELIEVED,
    scoped::Scoped,
    store::Store,
};

/// A sum of the cores and the memory that pods reserved, as exact decimal numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Used {
    pub core_seconds: String,
    pub memory_byte_seconds: String,
}

/// What drivers and executors used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Usage {
    pub driver: Used,
    pub executors: Used,
    pub total: Used,
    /// The part of the total that comes from pods whose node didn't report their end.
    pub estimated: Used,
    /// `None` without prices.
    pub cost: Option<String>,
}

/// What one submission used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubmissionUsage {
    pub total: Usage,
    /// Each attempt with a pod that reserved something, in ascending order.
    pub attempts: Vec<(i32, Usage)>,
}

/// By what usage is grouped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GroupBy {
    Day,
    Tenant,
    Owner,
    Namespace,
    /// The value of the label with this key.
    Label(String),
}

/// Whose usage is summed up, and of which days in UTC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageFilter {
    pub since: NaiveDate,
    /// The first day that isn't included.
    pub until: NaiveDate,
    pub tenant: Option<String>,
    pub owner: Option<String>,
    pub namespace: Option<String>,
    pub labels: BTreeMap<String, String>,
}

/// The usage of a range of days.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageReport {
    pub total: Usage,
    /// The values of each group, in the order in which groups were requested, and its usage.
    pub groups: Vec<(Vec<Option<String>>, Usage)>,
    /// There are more groups than the limit.
    pub more: bool,
}

/// Returns when the driver's container of the row `of` ended, as its node reports it in `said`, unless the gateway recorded it
/// earlier. NULL if the clock of the node can't be right: the end is before the start, which may become known at the same time
/// as `since`. Kubernetes truncates times to whole seconds.
pub(super) fn ended(said: &str, since: &str, of: &str) -> String {
    let start = format!("coalesce({of}.pod_since, {since}, {of}.started_at, {of}.queued_at, {of}.created_at)");
    format!("CASE WHEN {said} >= {start} - interval '1 s' THEN least({said}, clock_timestamp()) END")
}

/// Until when pods are counted that have not ended: the last full minute, so that repeated reads have the same result for a while.
const NOW: &str = "date_trunc('minute', now())";

/// Submissions are settled this long after their end, when the last observations of their executors are written.
const SETTLES: &str = "interval '70 minutes'";

/// The columns of `submissions` that [`pods`] needs.
pub(super) const COLUMNS: &str = "id, tenant, principal, owner, namespace, labels, created_at, attempt, pod_millicores,
    pod_memory_bytes, pod_since, started_at, pod_ended_at, finished_at";

/// Returns the part of a `WITH` list that adds `pods`: the drivers and executors of the submissions in `these`, which has the
/// columns [`COLUMNS`], and from when to when they count.
///
/// An executor whose end its node didn't report counts until its end was recorded, or until the end of its attempt if that came
/// first. One whose end its node did report counts until then, however long it outlived its driver. A pod without a node reserves
/// nothing.
pub(super) fn pods(these: &str) -> String {
    let of_submission = "id, tenant, principal, owner, namespace, labels";
    // Accepted after the end of its pod: by a clock of the database that was ahead.
    let possible = |ended: &str| format!("CASE WHEN created_at <= coalesce({ended}, now()) THEN created_at END");
    let (accepted, accepted_before) =
        (possible("pod_ended_at, finished_at"), possible("a.pod_ended_at, a.finished_at"));
    format!(
        "tries AS (
             SELECT {of_submission}, {accepted} AS accepted_at, attempt, pod_millicores, pod_memory_bytes, coalesce(pod_since, started_at) AS since,
                    pod_ended_at, coalesce(pod_ended_at, finished_at) AS ended_at
             FROM {these}
             UNION ALL
             SELECT {of_submission}, {accepted_before}, a.attempt, a.pod_millicores, a.pod_memory_bytes, coalesce(a.pod_since, a.started_at),
                    a.pod_ended_at, coalesce(a.pod_ended_at, a.finished_at)
             FROM attempts a JOIN (SELECT {of_submission}, created_at FROM {these}) AS these ON id = submission_id
         ), pods AS (
             SELECT {of_submission}, attempt, true AS is_driver, pod_millicores AS millicores, pod_memory_bytes AS bytes,
                    greatest(since, accepted_at) AS since, coalesce(ended_at, {NOW}) AS until,
                    pod_ended_at IS NULL AND ended_at IS NOT NULL AS is_estimated
             FROM tries WHERE since IS NOT NULL
             UNION ALL
             SELECT {of_submission}, t.attempt, false, e.pod_millicores, e.pod_memory_bytes,
                    greatest(coalesce(e.pod_since, e.started_at), accepted_at),
                    CASE WHEN e.finished_at IS NULL OR end_estimated THEN least(coalesce(e.finished_at, {NOW}), ended_at)
                        ELSE e.finished_at END,
                    end_estimated OR (e.finished_at IS NULL AND ended_at IS NOT NULL)
             FROM executors e JOIN tries t ON submission_id = id AND e.attempt = t.attempt
             WHERE coalesce(e.pod_since, e.started_at) IS NOT NULL
         )"
    )
}

/// The columns of `pods` for a part of their time, of so many `seconds`: amounts for drivers and executors.
const AMOUNTS: &str = "CASE WHEN is_driver THEN cores ELSE 0 END AS driver_cores,
    CASE WHEN is_driver THEN memory ELSE 0 END AS driver_memory,
    CASE WHEN is_driver THEN 0 ELSE cores END AS executor_cores,
    CASE WHEN is_driver THEN 0 ELSE memory END AS executor_memory,
    CASE WHEN is_estimated THEN cores ELSE 0 END AS estimated_cores,
    CASE WHEN is_estimated THEN memory ELSE 0 END AS estimated_memory";

/// Exact: numeric multiplication doesn't round.
fn amounts(seconds: &str) -> String {
    format!(
        "LATERAL (SELECT {seconds} AS seconds) AS span,
         LATERAL (SELECT seconds * coalesce(millicores, 0) * 0.001 AS cores, seconds * coalesce(bytes, 0) AS memory) AS amount"
    )
}

/// The seconds between two times, as an exact number.
fn seconds(from: &str, to: &str) -> String {
    format!("greatest(extract(epoch FROM {to} - {from}), 0)")
}

/// The days in UTC that the pods of `pods` touch, with the seconds of each.
fn days() -> String {
    let midnight = |days: &str| format!("(first_day + {days})::timestamp AT TIME ZONE 'UTC'");
    let (from, to) = (format!("greatest(since, {})", midnight("n")), format!("least(until, {})", midnight("n + 1")));
    let amounts = amounts(&seconds(&from, &to));
    format!(
        "pods,
         LATERAL (SELECT (since AT TIME ZONE 'UTC')::date AS first_day, (until AT TIME ZONE 'UTC')::date AS last_day) AS range,
         LATERAL generate_series(0, last_day - first_day) AS n,
         {amounts}"
    )
}

/// Returns the part of a `WITH` list that adds what the pods of `pods` used to the sums of each day.
pub(super) fn kept() -> String {
    let days = days();
    format!(
        "spent AS (
             SELECT first_day + n AS day, tenant, principal, owner, namespace, labels, {AMOUNTS}
             FROM {days}
             WHERE since < until AND seconds > 0
         ), kept AS (
             INSERT INTO usage_by_day AS u (day, key, tenant, principal, owner, namespace, labels, driver_core_seconds,
                 driver_memory_byte_seconds, executor_core_seconds, executor_memory_byte_seconds, estimated_core_seconds,
                 estimated_memory_byte_seconds)
             SELECT day, sha256(convert_to(jsonb_build_array(tenant, principal, owner, namespace, labels)::text, 'UTF8')),
                    tenant, principal, owner, namespace, labels, sum(driver_cores), sum(driver_memory), sum(executor_cores),
                    sum(executor_memory), sum(estimated_cores), sum(estimated_memory)
             FROM spent GROUP BY day, tenant, principal, owner, namespace, labels ORDER BY 1, 2
             ON CONFLICT (day, key) DO UPDATE SET
                 driver_core_seconds = u.driver_core_seconds + excluded.driver_core_seconds,
                 driver_memory_byte_seconds = u.driver_memory_byte_seconds + excluded.driver_memory_byte_seconds,
                 executor_core_seconds = u.executor_core_seconds + excluded.executor_core_seconds,
                 executor_memory_byte_seconds = u.executor_memory_byte_seconds + excluded.executor_memory_byte_seconds,
                 estimated_core_seconds = u.estimated_core_seconds + excluded.estimated_core_seconds,
                 estimated_memory_byte_seconds = u.estimated_memory_byte_seconds + excluded.estimated_memory_byte_seconds
         )"
    )
}

/// Appends the sums of the amounts, and the cost by the columns `core_price` and `gib_price` of each row.
fn push_sums(query: &mut QueryBuilder<Postgres>, prices: &Prices) {
    let sum = |of: &str| format!("trim_scale(coalesce(sum({of}), 0))::text");
    for (amount, name) in [
        ("driver_cores", "driver_cores"),
        ("driver_memory", "driver_memory"),
        ("executor_cores", "executor_cores"),
        ("executor_memory", "executor_memory"),
        ("driver_cores + executor_cores", "cores"),
        ("driver_memory + executor_memory", "memory"),
        ("estimated_cores", "estimated_cores"),
        ("estimated_memory", "estimated_memory"),
    ] {
        query.push(sum(amount)).push(" AS ").push(name).push(", ");
    }
    if prices.are_set() {
        // Summed up before it is divided and rounded.
        query.push(
            "trim_scale(round(coalesce(sum((driver_cores + executor_cores) * core_price * 1073741824
                 + (driver_memory + executor_memory) * gib_price), 0) / 1073741824 / 3600, 6))::text AS cost",
        );
    } else {
        query.push("NULL::text AS cost");
    }
}

/// Appends the price of each row by its tenant.
fn push_prices(query: &mut QueryBuilder<Postgres>, prices: &Prices) {
    if !prices.are_set() {
        return;
    }
    let (tenants, of_tenants): (Vec<_>, Vec<_>) =
        prices.of_tenant.iter().map(|(tenant, price)| (tenant.clone(), price.clone())).unzip();
    let (cores, gibs): (Vec<_>, Vec<_>) = of_tenants.into_iter().map(|price| (price.core_hour, price.gib_hour)).unzip();
    let other =
        |part: fn(&Price) -> &String| prices.other.as_ref().map_or_else(|| "0".to_owned(), |it| part(it).clone());
    query.push(", LATERAL (SELECT coalesce(max(core_hour), ").push_bind(other(|price| &price.core_hour));
    query.push("::numeric) AS core_price, coalesce(max(gib_hour), ").push_bind(other(|price| &price.gib_hour));
    query.push("::numeric) AS gib_price FROM unnest(").push_bind(tenants).push("::text[], ").push_bind(cores);
    query.push("::numeric[], ").push_bind(gibs).push("::numeric[]) AS priced (of_tenant, core_hour, gib_hour)");
    query.push(" WHERE of_tenant = tenant) AS price");
}

impl UsageFilter {
    fn push_to(&self, query: &mut QueryBuilder<Postgres>) {
        for (column, value) in [("tenant", &self.tenant), ("owner", &self.owner), ("namespace", &self.namespace)] {
            if let Some(value) = value {
                query.push(format_args!(" AND {column} = ")).push_bind(value.clone());
            }
        }
        if !self.labels.is_empty() {
            query.push(" AND labels <> '{}' AND labels @> ").push_bind(Json(self.labels.clone()));
        }
    }
}

/// The beginning of a day in UTC.
const MIDNIGHT: &str = "::timestamp AT TIME ZONE 'UTC')";

/// How far usage is settled by time: only of submissions from before they were marked. A statement that settles names the version,
/// and changes nothing under another one: of two concurrent ones, one settles.
#[derive(Debug, Clone, Copy, sqlx::FromRow)]
pub(super) struct Settled {
    pub(super) until: DateTime<Utc>,
    pub(super) version: i64,
}

impl Store {
    pub(super) async fn usage_settled(&self) -> Result<Settled, Error> {
        let statement = sqlx::query_as("SELECT until, version FROM usage_settled").fetch_one(&self.patient);
        within("reading how far usage is settled", statement).await
    }

    /// Adds what up to about `limit` submissions used to the sums of each day, those that ended first, and returns how many. Settles
    /// none while the clock of the database is past `believed_until`.
    pub async fn settle_usage(&self, limit: u32, believed_until: Option<DateTime<Utc>>) -> Result<u64, Error> {
        let Settled { until, version } = self.usage_settled().await?;
        let (pods, kept) = (pods("these"), kept());
        // A submission is marked, whenever it ended. Those without a mark that ended in the same microsecond are settled together. The
        // time moves on with both, for the release before.
        let statement = format!(
            "WITH marked AS (
                 SELECT id AS due, finished_at AS due_since FROM submissions
                 WHERE NOT settled AND finished_at < now() - {SETTLES}
                 ORDER BY finished_at LIMIT $2 FOR NO KEY UPDATE SKIP LOCKED
             ), unmarked AS (
                 SELECT id AS due, finished_at AS due_since FROM submissions
                 WHERE settled IS NULL AND finished_at >= $1 AND finished_at < now() - {SETTLES}
                 ORDER BY finished_at FETCH FIRST $2 ROWS WITH TIES
             ), next AS (
                 SELECT greatest($1, least((SELECT {reached} FROM marked), (SELECT {reached} FROM unmarked))) AS next_until,
                     EXISTS (SELECT FROM marked) OR EXISTS (SELECT FROM unmarked) AS are_some
             ), begun AS (
                 UPDATE usage_settled SET until = next_until, version = version + 1, marks = marks + 1 FROM next
                 WHERE version = $3 AND {BELIEVED} AND (are_some OR next_until > $1 + interval '10 minutes')
                 RETURNING true
             ), these AS (
                 UPDATE submissions SET settled = true
                 FROM (SELECT * FROM marked UNION ALL SELECT * FROM unmarked) AS due
                 WHERE id = due AND EXISTS (SELECT FROM begun) AND settled IS NOT TRUE
                 RETURNING {COLUMNS}
             ), {pods}, {kept}
             SELECT count(*) FROM these",
            reached = format_args!(
                "CASE WHEN count(*) < $2 THEN now() - {SETTLES} ELSE max(due_since) + interval '1 microsecond' END"
            ),
        );
        let statement = sqlx::query_scalar(sqlx::AssertSqlSafe(statement))
            .bind(until)
            .bind(i64::from(limit))
            .bind(version)
            .bind(believed_until)
            .fetch_one(&self.patient);
        let count: i64 = within("settling usage", statement).await?;
        Ok(count.unsigned_abs())
    }
}

/// The sums that [`push_sums`] selects.
#[derive(Debug, Deserialize, sqlx::FromRow)]
pub(super) struct Sums {
    /// The attempt that they are of, in what [`push_usage`] returns; `None` for all attempts.
    #[sqlx(default)]
    attempt: Option<i32>,
    driver_cores: String,
    driver_memory: String,
    executor_cores: String,
    executor_memory: String,
    cores: String,
    memory: String,
    estimated_cores: String,
    estimated_memory: String,
    cost: Option<String>,
}

impl From<Sums> for Usage {
    fn from(of: Sums) -> Self {
        let used = |core_seconds, memory_byte_seconds| Used { core_seconds, memory_byte_seconds };
        Self {
            driver: used(of.driver_cores, of.driver_memory),
            executors: used(of.executor_cores, of.executor_memory),
            total: used(of.cores, of.memory),
            estimated: used(of.estimated_cores, of.estimated_memory),
            cost: of.cost,
        }
    }
}

impl From<Vec<Sums>> for SubmissionUsage {
    fn from(all: Vec<Sums>) -> Self {
        let (mut total, mut attempts) = (Usage::none(), Vec::new());
        for one in all {
            match one.attempt {
                Some(attempt) => attempts.push((attempt, one.into())),
                // The set of all attempts has a row even if there are none.
                None => total = one.into(),
            }
        }
        Self { total, attempts }
    }
}

/// Appends a query whose value is what submission `s` used, up to the last full minute while it runs: an array of [`Sums`].
pub(super) fn push_usage(query: &mut QueryBuilder<Postgres>, prices: &Prices) {
    // Without a `FROM`, the columns are those of the row that the statement reads anyway.
    query.push("WITH these AS (SELECT ").push(COLUMNS);
    let amounts = amounts(&seconds("since", "until"));
    query.push(format_args!(
        "), {}, spent AS (SELECT tenant, attempt, {AMOUNTS} FROM pods, {amounts})
         SELECT jsonb_agg(to_jsonb(used) ORDER BY attempt NULLS FIRST) FROM (SELECT attempt, ",
        pods("these")
    ));
    push_sums(query, prices);
    query.push(" FROM spent");
    push_prices(query, prices);
    query.push(" GROUP BY GROUPING SETS ((attempt), ())) AS used");
}

impl Scoped {
    /// Returns what the submissions of the scope used in a range of days, in at most `limit` groups.
    pub async fn usage(
        &self,
        filter: &UsageFilter,
        group_by: &[GroupBy],
        prices: &Prices,
        limit: u32,
    ) -> Result<UsageReport, Error> {
        let action = "computing usage";
        let mut query = QueryBuilder::<Postgres>::new("WITH these AS (");
        self.push_unsettled(&mut query, filter);
        query.push("), ").push(pods("these")).push(", spent AS (");
        // Only if they are asked for, usage is divided into days.
        self.push_spent(&mut query, filter, group_by.contains(&GroupBy::Day));
        query.push("), grouped AS (SELECT spent.*");
        let groups: Vec<String> = (0..group_by.len()).map(|nth| format!("group_{nth}")).collect();
        for (group, by) in groups.iter().zip(group_by) {
            match by {
                GroupBy::Day => query.push(", to_char(day, 'YYYY-MM-DD')"),
                GroupBy::Tenant => query.push(", tenant"),
                GroupBy::Owner => query.push(", owner"),
                GroupBy::Namespace => query.push(", namespace"),
                GroupBy::Label(key) => query.push(", labels ->> ").push_bind(key.clone()),
            };
            // Bytewise, and so the same in every database.
            query.push(format_args!(" COLLATE \"C\" AS {group}"));
        }
        query.push(" FROM spent) SELECT ");
        for group in &groups {
            query.push(group).push(", ");
        }
        push_sums(&mut query, prices);
        query.push(" FROM grouped");
        push_prices(&mut query, prices);
        let names = groups.join(", ");
        if groups.is_empty() {
            query.push(" GROUP BY ()");
        } else {
            // The total comes first.
            query.push(format_args!(
                " GROUP BY GROUPING SETS (({names}), ()) ORDER BY GROUPING({names}) DESC, {names} LIMIT "
            ));
            query.push_bind(i64::from(limit) + 2);
        }
        let mut connection = self.store.for_long_read(action).await?;
        let rows = within(action, query.build().fetch_all(&mut *connection)).await?;
        let read = |row: &PgRow| {
            let values: Result<Vec<Option<String>>, _> = (0..groups.len()).map(|nth| row.try_get(nth)).collect();
            Ok((values?, Sums::from_row(row)?.into()))
        };
        let mut rows =
            within(action, async { rows.iter().map(read).collect::<Result<Vec<_>, _>>() }).await?.into_iter();
        let total = rows.next().map_or_else(Usage::none, |(_, total)| total);
        let mut groups: Vec<_> = rows.collect();
        let more = groups.len() > limit as usize;
        groups.truncate(limit as usize);
        Ok(UsageReport { total, groups, more })
    }

    /// Appends a query of the submissions that aren't in the sums of days yet.
    fn push_unsettled(&self, query: &mut QueryBuilder<Postgres>, filter: &UsageFilter) {
        // Executors may have ended long after their drivers.
        for (nth, these) in [
            " AND NOT settled AND finished_at IS NOT NULL",
            " AND settled IS NULL AND finished_at >= (SELECT until FROM usage_settled)",
            " AND finished_at IS NULL AND state IN ('QUEUED', 'LAUNCHING', 'PENDING', 'RUNNING', 'KILLING')",
        ]
        .into_iter()
        .enumerate()
        {
            query.push(if nth == 0 { "SELECT " } else { " UNION ALL SELECT " }).push(COLUMNS);
            query.push(" FROM submissions s WHERE true").push(these);
            // By a clock that was ahead, a submission is accepted after its end.
            query.push(" AND least(created_at, finished_at) < (").push_bind(filter.until).push(MIDNIGHT);
            query.push(" AND ");
            self.scope.push_condition(query, "s");
            filter.push_to(query);
        }
    }

    /// Appends a query of what was used: by the pods of the unsettled submissions, and by settled ones on each day.
    fn push_spent(&self, query: &mut QueryBuilder<Postgres>, filter: &UsageFilter, by_day: bool) {
        query.push("SELECT tenant, owner, namespace, labels, ");
        if by_day {
            query.push("first_day + n AS day, ").push(AMOUNTS).push(" FROM ").push(days());
            query.push(" WHERE since < until AND seconds > 0 AND first_day + n >= ").push_bind(filter.since);
            query.push(" AND first_day + n < ").push_bind(filter.until);
        } else {
            query.push("NULL::date AS day, ").push(AMOUNTS).push(" FROM pods, LATERAL (SELECT greatest(since, ");
            query.push_bind(filter.since).push("::timestamp AT TIME ZONE 'UTC') AS from_time, least(until, ");
            query.push_bind(filter.until).push("::timestamp AT TIME ZONE 'UTC') AS to_time) AS part, ");
            query.push(amounts(&seconds("from_time", "to_time"))).push(" WHERE seconds > 0");
        }
        query.push(
            " UNION ALL SELECT tenant, owner, namespace, labels, day, driver_core_seconds, driver_memory_byte_seconds,
                 executor_core_seconds, executor_memory_byte_seconds, estimated_core_seconds, estimated_memory_byte_seconds
             FROM usage_by_day u WHERE day >= ",
        );
        query.push_bind(filter.since).push(" AND day < ").push_bind(filter.until).push(" AND ");
        self.scope.push_condition(query, "u");
        filter.push_to(query);
    }
}

impl Usage {
    fn none() -> Self {
        let none = || Used { core_seconds: "0".to_owned(), memory_byte_seconds: "0".to_owned() };
        Self { driver: none(), executors: none(), total: none(), estimated: none(), cost: None }
    }
}
