//! When the steps of starts happened: of the last runs of a job, and of the attempts that started since the last look.

use chrono::{DateTime, Utc};
use sqlx::{Postgres, QueryBuilder};

use super::{
    error::{Error, within},
    row::ends,
    scoped::Scoped,
    store::Store,
};
use sparkgate_submission::LATE;

/// The joins for the start of the attempt of a row `s`: its event, and the first of its executors.
pub(super) const RECORDED: &str = "LEFT JOIN LATERAL (
                 SELECT e.at AS objects_at FROM submission_events e
                 WHERE e.submission_id = s.id AND e.attempt = s.attempt AND e.state = 'PENDING' ORDER BY e.id LIMIT 1) AS objects ON true
             LEFT JOIN LATERAL (
                 SELECT min(x.created_at) AS executor_created_at, min(x.started_at) AS executor_started_at
                 FROM (SELECT x.created_at, x.started_at FROM executors x WHERE x.submission_id = s.id AND x.attempt = s.attempt
                     ORDER BY x.executor_id LIMIT 16) AS x) AS first ON true";
/// The join for the first job of that attempt.
const FIRST_JOB: &str = "LEFT JOIN spark_summaries k ON k.submission_id = s.id AND k.attempt = s.attempt";
/// The columns of a [`StartTimes`].
const COLUMNS: &str = "coalesce(s.attempt, 0) AS attempt, s.admitted_at, s.started_at, (k.summary ->> 'first_job_at')::timestamptz AS first_job_at,
             s.queued_at AS attempt_queued_at, objects_at, s.pod_since AS node_at, executor_created_at, executor_started_at";

/// The time after the start of a driver in which the first steps of Spark are recorded.
const SETTLED: &str = "interval '5 minutes'";

/// What is recorded of the start of an attempt, beside its row. Times of Kubernetes are whole seconds.
#[derive(Debug, Clone, Default, PartialEq, sqlx::FromRow)]
pub struct StartupTimes {
    pub attempt_queued_at: Option<DateTime<Utc>>,
    /// All its objects existed.
    pub objects_at: Option<DateTime<Utc>>,
    /// Its node accepted the pod.
    pub node_at: Option<DateTime<Utc>>,
    /// The pod of the first executor was created, and its container started.
    pub executor_created_at: Option<DateTime<Utc>>,
    pub executor_started_at: Option<DateTime<Utc>>,
}

/// When the steps of an attempt's start happened, as far as they are known. Times of Kubernetes are whole seconds.
#[derive(Debug, Clone, Default, PartialEq, sqlx::FromRow)]
pub struct StartTimes {
    pub attempt: i32,
    pub admitted_at: Option<DateTime<Utc>>,
    pub started_at: Option<DateTime<Utc>>,
    /// As the driver says.
    pub first_job_at: Option<DateTime<Utc>>,
    #[sqlx(flatten)]
    pub recorded: StartupTimes,
}

/// A start in a tenant.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow)]
pub struct TenantStart {
    pub tenant: String,
    #[sqlx(flatten)]
    pub times: StartTimes,
}

/// The result of one look at new starts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NewStarts {
    pub starts: Vec<TenantStart>,
    /// There may be more.
    pub more: bool,
}

#[derive(sqlx::FromRow)]
struct Row {
    seen: i64,
    #[sqlx(flatten)]
    start: TenantStart,
}

impl Scoped {
    /// Returns when the steps of the starts of the last `runs` runs of a name in a tenant happened. Runs whose driver hasn't started are
    /// left out, and of the others all attempts but the last.
    pub async fn job_starts(&self, tenant: &str, name: &str, runs: u32) -> Result<Vec<StartTimes>, Error> {
        let action = "reading the starts of a job";
        let mut connection = self.store.for_long_read(action).await?;
        let mut query = QueryBuilder::<Postgres>::new(format!(
            "SELECT {COLUMNS} FROM (
                 SELECT s.id, s.attempt, s.admitted_at, s.started_at, coalesce(s.queued_at, s.created_at) AS queued_at, s.pod_since
                 FROM submissions s WHERE s.tenant = "
        ));
        query.push_bind(tenant).push(" AND s.name = ").push_bind(name).push(" AND ");
        self.scope.push_condition(&mut query, "s");
        query.push(" ORDER BY s.number DESC LIMIT ").push_bind(i64::from(runs));
        query.push(format_args!(") AS s {RECORDED} {FIRST_JOB} WHERE s.started_at IS NOT NULL"));
        within(action, query.build_query_as().fetch_all(&mut *connection)).await
    }
}

impl Store {
    /// Returns the attempts whose drivers started at least five minutes ago, and which no call has returned before, among the next `limit`
    /// events. An attempt that was never seen running counts from its end.
    pub async fn new_starts(&self, limit: u32) -> Result<NewStarts, Error> {
        // The event before which all are old enough is the last one: none is passed over.
        let statement = format!(
            "WITH position AS MATERIALIZED (SELECT sequence AS last FROM measured_starts FOR UPDATE
             ), next AS MATERIALIZED (
                 SELECT e.sequence, e.submission_id, e.attempt, e.state, e.reason, e.at <= clock_timestamp() - {SETTLED} AS is_old
                 FROM submission_events e WHERE e.sequence > (SELECT last FROM position) ORDER BY e.sequence LIMIT $1
             ), seen AS MATERIALIZED (
                 SELECT * FROM next WHERE sequence < coalesce((SELECT min(sequence) FROM next WHERE NOT is_old), sequence + 1)
             ), moved AS (
                 UPDATE measured_starts SET sequence = (SELECT max(sequence) FROM seen) WHERE EXISTS (SELECT FROM seen)
             ), started AS (
                 SELECT n.submission_id, n.attempt FROM seen n WHERE n.state = 'RUNNING' AND n.reason IS DISTINCT FROM '{LATE}'
                 UNION ALL
                 SELECT n.submission_id, n.attempt FROM seen n WHERE n.state = ANY ($2) AND NOT EXISTS (
                     SELECT FROM submission_events r
                     WHERE r.submission_id = n.submission_id AND r.attempt = n.attempt AND r.state = 'RUNNING')
             ), ours AS (
                 SELECT s.id, s.tenant, n.attempt, CASE WHEN a.attempt IS NULL THEN s.admitted_at END AS admitted_at,
                     CASE WHEN a.attempt IS NULL THEN s.started_at ELSE a.started_at END AS started_at,
                     coalesce(a.queued_at, s.queued_at, s.created_at) AS queued_at,
                     CASE WHEN a.attempt IS NULL THEN s.pod_since ELSE a.pod_since END AS pod_since
                 FROM started n JOIN submissions s ON s.id = n.submission_id
                 LEFT JOIN attempts a ON a.submission_id = n.submission_id AND a.attempt = n.attempt
             )
             SELECT (SELECT count(*) FROM seen) AS seen, coalesce(s.tenant, '') AS tenant, {COLUMNS}
             FROM (SELECT) AS always LEFT JOIN ours s ON s.started_at IS NOT NULL {RECORDED} {FIRST_JOB}"
        );
        let statement = sqlx::query_as(sqlx::AssertSqlSafe(statement)).bind(i64::from(limit)).bind(ends());
        let rows: Vec<Row> = within("looking for new starts", statement.fetch_all(&self.patient)).await?;
        let more = rows.first().is_some_and(|row| row.seen >= i64::from(limit));
        // Without a start, there is one row of nothing.
        let starts = rows.into_iter().map(|row| row.start).filter(|start| start.times.attempt > 0);
        Ok(NewStarts { starts: starts.collect(), more })
    }
}
