//! Executors, written in batches: each batch is one statement that also updates the counts of their submissions.

mod row;

use sqlx::{QueryBuilder, types::Json};

use self::row::{ExecutorRow, Written};
use super::{
    error::{Error, within},
    row::{parse, readable},
    scoped::Scoped,
    store::Store,
};
use sparkgate_submission::{ExecutorKey, ExecutorRecord, ExecutorState, SubmissionId};

/// An executor that, by its row, has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveExecutor {
    pub key: ExecutorKey,
    pub namespace: String,
    pub pod_name: String,
    pub pod_uid: String,
}

impl Store {
    /// Writes executors, no two of which have the same key and owner. Labels alone make no executor: its owner has to be the
    /// recorded driver pod of its attempt, or the executor is known already and its pod no longer exists. A row only
    /// moves forwards (`ExecutorState::may_become`), so a late or repeated batch changes nothing, from whatever replica;
    /// executors of an unknown submission are skipped. Returns how many rows were new or changed.
    pub async fn write_executors(&self, executors: &[ExecutorRecord]) -> Result<u64, Error> {
        let rows: Vec<_> = executors.iter().map(Written::from).collect();
        let live = ExecutorState::LIVE.map(ExecutorState::as_str);
        // The submissions are locked first, in the order of every other statement that locks several. `state_before` holds the
        // value that a row had when it was overwritten, which no concurrent read could return.
        let written: i64 = within(
            "writing executors",
            sqlx::query_scalar(
                r#"
            WITH seen AS (
                SELECT * FROM jsonb_to_recordset($1) AS seen (
                    submission_id text, attempt integer, executor_id bigint, driver_uid text, pod_name text, pod_uid text, state text,
                    exit_code integer, reason text, message text, node text,
                    created_at timestamptz, started_at timestamptz, finished_at timestamptz,
                    pod_millicores bigint, pod_memory_bytes bigint, pod_since timestamptz)
            ), known AS (
                SELECT id, attempt AS present, pod_uid AS present_uid FROM submissions
                WHERE id IN (SELECT submission_id FROM seen)
                ORDER BY number FOR NO KEY UPDATE
            ), owned AS (
                SELECT seen.* FROM seen JOIN known ON id = submission_id
                WHERE CASE
                    WHEN driver_uid IS NULL THEN EXISTS (SELECT FROM executors e WHERE e.submission_id = id
                        AND e.attempt = seen.attempt AND e.executor_id = seen.executor_id)
                    WHEN seen.attempt = present THEN driver_uid = present_uid
                    ELSE driver_uid = (SELECT a.pod_uid FROM attempts a WHERE a.submission_id = id
                        AND a.attempt = seen.attempt)
                END
            ), written AS (
                INSERT INTO executors AS old (submission_id, attempt, executor_id, pod_name, pod_uid, state, exit_code,
                                              reason, message, node, created_at, started_at, finished_at, end_estimated,
                                              pod_millicores, pod_memory_bytes, pod_since)
                SELECT submission_id, attempt, executor_id, pod_name, pod_uid, state, exit_code,
                       reason, message, node, created_at, started_at,
                       CASE WHEN state <> ALL($2) THEN coalesce(finished_at, clock_timestamp()) END,
                       state <> ALL($2) AND finished_at IS NULL, pod_millicores, pod_memory_bytes, pod_since
                FROM owned
                ON CONFLICT (submission_id, attempt, executor_id) DO UPDATE SET
                    state_before = old.state, state = excluded.state, exit_code = excluded.exit_code,
                    reason = excluded.reason, message = excluded.message, node = coalesce(excluded.node, old.node),
                    created_at = coalesce(old.created_at, excluded.created_at),
                    started_at = coalesce(old.started_at, excluded.started_at), finished_at = excluded.finished_at,
                    end_estimated = excluded.end_estimated, pod_since = coalesce(old.pod_since, excluded.pod_since),
                    pod_millicores = coalesce(excluded.pod_millicores, old.pod_millicores),
                    pod_memory_bytes = coalesce(excluded.pod_memory_bytes, old.pod_memory_bytes)
                WHERE array_position($2, old.state) <= coalesce(array_position($2, excluded.state), cardinality($2) + 1)
                  AND (old.state, old.reason, old.message, old.node, old.started_at) IS DISTINCT FROM
                      (excluded.state, excluded.reason, excluded.message, coalesce(excluded.node, old.node),
                       coalesce(old.started_at, excluded.started_at))
                RETURNING submission_id, state, state_before
            ), moves AS (
                SELECT submission_id,
                       count(*) FILTER (WHERE state = 'PENDING')
                           - count(*) FILTER (WHERE state_before = 'PENDING') AS pending,
                       count(*) FILTER (WHERE state = 'RUNNING')
                           - count(*) FILTER (WHERE state_before = 'RUNNING') AS running,
                       count(*) FILTER (WHERE state = 'SUCCEEDED') AS succeeded,
                       count(*) FILTER (WHERE state = 'FAILED') AS failed,
                       count(*) FILTER (WHERE state = 'DELETED') AS deleted
                FROM written WHERE state IS DISTINCT FROM state_before GROUP BY submission_id
            ), counted AS (
                UPDATE submissions SET
                    executors_pending = executors_pending + pending,
                    executors_running = executors_running + running,
                    executors_succeeded = executors_succeeded + succeeded,
                    executors_failed = executors_failed + failed,
                    executors_deleted = executors_deleted + deleted
                FROM moves WHERE id = submission_id
            )
            SELECT count(*) FROM written
            "#,
            )
            .bind(Json(&rows))
            .bind(&live[..])
            .fetch_one(&self.patient),
        )
        .await?;
        Ok(written.unsigned_abs())
    }

    /// Returns the executors that have not ended, of the submissions in `namespace` or of all. A row that can't be read is
    /// logged and skipped.
    pub async fn live_executors(&self, namespace: Option<&str>) -> Result<Vec<LiveExecutor>, Error> {
        let rows: Vec<(String, i32, i64, String, String, String)> = within(
            "listing live executors",
            self.patient.read_all(
                sqlx::query_as(
                    "SELECT submission_id, executors.attempt, executor_id, namespace, pod_name, executors.pod_uid
             FROM executors JOIN submissions ON id = submission_id
             WHERE executors.state IN ('UNKNOWN', 'PENDING', 'RUNNING') AND ($1::text IS NULL OR namespace = $1)",
                )
                .bind(namespace),
            ),
        )
        .await?;
        Ok(readable(rows.into_iter().map(|(id, attempt, executor_id, namespace, pod_name, pod_uid)| {
            Ok(LiveExecutor { key: (parse(&id, &id)?, attempt, executor_id), namespace, pod_name, pod_uid })
        })))
    }
}

impl Scoped {
    /// Returns up to `limit` executors of a submission, ordered by attempt and id, starting after `after`.
    pub async fn executors(
        &self,
        id: &SubmissionId,
        after: Option<(i32, i64)>,
        limit: u32,
    ) -> Result<Vec<ExecutorRecord>, Error> {
        let (attempt, executor_id) = after.unwrap_or((i32::MIN, i64::MIN));
        let action = "reading a submission's executors";
        let mut connection = self.store.for_long_read(action).await?;
        let mut query = QueryBuilder::new(
            "SELECT e.attempt, executor_id, pod_name, e.pod_uid, e.state, e.exit_code, e.reason, e.message, e.node,
                    e.created_at, e.started_at, e.finished_at
             FROM executors e JOIN submissions s ON s.id = submission_id WHERE submission_id = ",
        );
        query.push_bind(id.as_str()).push(" AND (e.attempt, executor_id) > (").push_bind(attempt).push(", ");
        query.push_bind(executor_id).push(") AND ");
        self.scope.push_condition(&mut query, "s");
        query.push(" ORDER BY e.attempt, executor_id LIMIT ").push_bind(i64::from(limit));
        let rows: Vec<ExecutorRow> = within(action, query.build_query_as().fetch_all(&mut *connection)).await?;
        rows.into_iter().map(|row| row.of(id)).collect()
    }
}
