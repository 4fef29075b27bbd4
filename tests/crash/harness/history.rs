//! Submissions that ended long before the run, as a database has them that is years old.

use serde_json::json;
use sqlx::PgPool;

/// The beginning of their ids.
const PREFIX: &str = "driver-20200101000000-";
/// How many rows one statement writes.
const BATCH: i64 = 20_000;

/// What there was before the run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct History {
    /// The highest number of an old submission; numbers begin at 0.
    pub(crate) number: i64,
    /// The highest number of an old event.
    pub(crate) event: i64,
}

impl History {
    /// A new database.
    pub(crate) const NONE: Self = Self { number: -1, event: 0 };

    pub(crate) fn has(id: &str) -> bool {
        id.starts_with(PREFIX)
    }

    /// Writes `count` submissions that finished in the last 80 days, with an event for each of their states. No replica runs yet.
    pub(crate) async fn write(pool: &PgPool, namespace: &str, tenant: &str, count: i64) -> Self {
        let rows = "WITH new AS (
                SELECT number, $5::text || lpad(number::text, 7, '0') AS id, 'old-' || number AS name,
                    now() - interval '80 days' * (1 - number::float8 / $6::bigint) AS at
                FROM generate_series($3::bigint, $4::bigint) AS number
            ), accepted AS (
                INSERT INTO submissions (id, number, state, request, spark_version, namespace, tenant, principal, names,
                    spark_user, created_at, queued_at, name, owner, labels, fingerprint, pod_uid, started_at, finished_at,
                    exit_code, pod_deleted_at)
                SELECT id, number, 'FINISHED', $7::jsonb, '4.3.0', $1::text, $2::text, 'old', jsonb_build_object('appId', id, 'resourcePrefix', name, 'driverPod', name,
                        'driverService', name, 'configMap', name, 'localDir', md5(id)::uuid), 'old',
                    at, at, name, 'old', '{}', decode(md5(id), 'hex'), md5(id), at, at, 0, at
                FROM new ORDER BY number RETURNING id, created_at, number
            )
            INSERT INTO submission_events (submission_id, attempt, at, state, sequence)
            SELECT id, 1, created_at, state, (number - 1) * 5 + place
            FROM accepted, unnest(ARRAY['QUEUED', 'LAUNCHING', 'PENDING', 'RUNNING', 'FINISHED'])
                WITH ORDINALITY AS s (state, place)
            ORDER BY number, place";
        let request = json!({"action": "CreateSubmissionRequest", "clientSparkVersion": "4.3.0", "appArgs": [],
            "appResource": "local:///opt/app.jar", "mainClass": "org.example.Main", "environmentVariables": {},
            "sparkProperties": {"spark.kubernetes.namespace": namespace, "spark.app.name": "old"}});
        for first in (1..=count).step_by(BATCH as usize) {
            let last = count.min(first + BATCH - 1);
            let batch = sqlx::query(rows).bind(namespace).bind(tenant).bind(first).bind(last).bind(PREFIX).bind(count);
            let batch = batch.bind(request.to_string());
            batch.execute(pool).await.unwrap();
        }
        let history = Self { number: count, event: count * 5 };
        let counters = format!(
            "SELECT setval('submission_number', {count});
             UPDATE event_sequence SET last = {last}; UPDATE webhook_cursor SET last = {last};
             ANALYZE submissions; ANALYZE submission_events",
            last = history.event
        );
        sqlx::raw_sql(sqlx::AssertSqlSafe(counters)).execute(pool).await.unwrap();
        history
    }
}
