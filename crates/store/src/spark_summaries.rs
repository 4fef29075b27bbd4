//! What drivers said last of their jobs and stages.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::{Postgres, QueryBuilder, types::Json};

use super::{
    error::{Error, within},
    row::{parse, readable},
    scoped::Scoped,
    store::Store,
};
use sparkgate_spark::DriverNames;
use sparkgate_submission::SubmissionId;

/// The shortest time between two questions to a driver, in seconds.
const SHORTEST: f64 = 5.0;
/// For so long a driver is asked that often until it says when its first job was submitted, in seconds.
const BEFORE_JOBS: f64 = 300.0;
/// How long after the start of its first executor a driver is asked first, and how long after its own start at the latest, in seconds. The
/// first question makes a driver load its REST API, which takes seconds of CPU from a start that is still under way.
const AFTER_EXECUTOR: f64 = 5.0;
const WITHOUT_EXECUTORS: f64 = 60.0;

/// A driver that is to be asked for its jobs.
#[derive(Debug, Clone, PartialEq)]
pub struct AskedDriver {
    pub id: SubmissionId,
    pub attempt: i32,
    pub namespace: String,
    pub names: DriverNames,
    pub pod_uid: String,
}

/// What a driver said last.
#[derive(Debug, Clone, PartialEq)]
pub struct SparkSummary {
    /// The attempt whose driver said it.
    pub attempt: i32,
    pub read_at: DateTime<Utc>,
    pub summary: Value,
}

/// A successful run of a job, with what its driver said last.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow)]
pub struct RunUse {
    pub id: String,
    /// The Spark properties of its request, as an object.
    pub properties: Value,
    pub summary: Value,
}

#[derive(sqlx::FromRow)]
struct Row {
    id: String,
    attempt: i32,
    namespace: String,
    names: Json<DriverNames>,
    pod_uid: String,
}

impl TryFrom<Row> for AskedDriver {
    type Error = Error;

    fn try_from(row: Row) -> Result<Self, Error> {
        let Row { id, attempt, namespace, names, pod_uid } = row;
        Ok(Self { id: parse(&id, &id)?, attempt, namespace, names: names.0, pod_uid })
    }
}

impl Scoped {
    /// Returns up to `limit` successful runs of a name in a tenant whose driver said something, the newest first.
    pub async fn run_uses(&self, tenant: &str, name: &str, limit: u32) -> Result<Vec<RunUse>, Error> {
        let action = "reading what the runs of a job used";
        let mut connection = self.store.for_long_read(action).await?;
        let mut query = QueryBuilder::<Postgres>::new(
            "SELECT s.id, coalesce(s.request -> 'sparkProperties', '{}') AS properties, k.summary
             FROM submissions s JOIN spark_summaries k ON k.submission_id = s.id AND k.attempt = s.attempt
             WHERE k.summary IS NOT NULL AND s.state = 'FINISHED' AND s.tenant = ",
        );
        query.push_bind(tenant).push(" AND s.name = ").push_bind(name).push(" AND ");
        self.scope.push_condition(&mut query, "s");
        query.push(" ORDER BY s.number DESC LIMIT ").push_bind(i64::from(limit));
        within(action, query.build_query_as().fetch_all(&mut *connection)).await
    }
}

impl Store {
    /// Returns up to `limit` running drivers that are to be asked, and puts off the next question to each: by half of the time that it
    /// has run, and by `period` at most, but briefly as long as a young driver has no job. No other call returns them meanwhile. A driver
    /// that still starts is left alone.
    pub async fn drivers_to_ask(&self, period: Duration, limit: u32) -> Result<Vec<AskedDriver>, Error> {
        let statement = sqlx::query_as(
            "WITH due AS (
                 SELECT s.id, s.attempt, s.namespace, s.names, s.pod_uid,
                        extract(epoch FROM clock_timestamp() - coalesce(s.started_at, s.created_at))::float8 AS age,
                        k.attempt = s.attempt AND k.summary ->> 'first_job_at' IS NOT NULL AS has_jobs
                 FROM submissions s LEFT JOIN spark_summaries k ON k.submission_id = s.id
                 WHERE s.state = 'RUNNING' AND s.pod_uid IS NOT NULL
                     AND (k.submission_id IS NULL OR k.next_at <= clock_timestamp())
                     AND (coalesce(s.started_at, s.created_at) < clock_timestamp() - make_interval(secs => $6) OR EXISTS (
                         SELECT FROM executors x WHERE x.submission_id = s.id AND x.attempt = s.attempt
                             AND x.started_at < clock_timestamp() - make_interval(secs => $5)))
                 ORDER BY k.next_at NULLS FIRST, s.number
                 LIMIT $1
             ), taken AS (
                 INSERT INTO spark_summaries AS k (submission_id, next_at)
                 SELECT id, clock_timestamp()
                     + make_interval(secs => (0.75 + random() / 2) *
                         CASE WHEN age < $4 AND has_jobs IS NOT TRUE THEN $3 ELSE greatest($3, least($2, age / 2)) END)
                 FROM due
                 ON CONFLICT (submission_id) DO UPDATE SET next_at = EXCLUDED.next_at
                 WHERE k.next_at <= clock_timestamp()
                 RETURNING submission_id
             )
             SELECT id, attempt, namespace, names, pod_uid FROM due JOIN taken ON submission_id = id",
        )
        .bind(i64::from(limit))
        .bind(period.as_secs_f64())
        .bind(SHORTEST)
        .bind(BEFORE_JOBS)
        .bind(AFTER_EXECUTOR)
        .bind(WITHOUT_EXECUTORS)
        .fetch_all(&self.patient);
        let rows: Vec<Row> = within("looking for drivers to ask for their jobs", statement).await?;
        Ok(readable(rows.into_iter().map(AskedDriver::try_from)))
    }

    /// Records what a driver said, unless its submission has another attempt by now, or was deleted. When its first job was submitted
    /// stays: a driver forgets its oldest jobs.
    pub async fn write_spark_summary(&self, id: &SubmissionId, attempt: i32, summary: &Value) -> Result<(), Error> {
        let statement = sqlx::query(
            "UPDATE spark_summaries SET attempt = $2, read_at = clock_timestamp(), summary = $3::jsonb ||
                 CASE WHEN attempt = $2 AND summary -> 'first_job_at' <> 'null' THEN jsonb_build_object('first_job_at', summary -> 'first_job_at')
                     ELSE '{}' END
             WHERE submission_id = $1 AND (SELECT s.attempt FROM submissions s WHERE s.id = $1) = $2",
        )
        .bind(id.as_str())
        .bind(attempt)
        .bind(Json(summary))
        .execute(&self.patient);
        within("recording what a driver said of its jobs", statement).await?;
        Ok(())
    }
}
