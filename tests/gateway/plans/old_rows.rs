//! Rows of submissions that ended, as a database has them that is years old.

use sqlx::PgPool;

/// Writes submissions of the tenant `t` that finished within the last 80 days, with what belongs to each. Everything about them is
/// done.
pub(super) async fn write(pool: &PgPool, count: i64) {
    let statements = [
        "INSERT INTO submissions (id, number, state, request, spark_version, namespace, tenant, principal, names, spark_user,
             created_at, queued_at, name, owner, labels, fingerprint, pod_uid, started_at, finished_at, exit_code, pod_deleted_at,
             settled)
         SELECT 'driver-20200101000000-' || lpad(n::text, 7, '0'), n, 'FINISHED', '{}', '4.3.0', 'default', 't', 'old', '{}', 'old',
             at, at, 'old', 'old', '{}', '\\x00', md5(n::text), at, at, 0, at, true
         FROM (SELECT n, now() - interval '80 days' * (1 - n::float8 / $1) AS at FROM generate_series(1, $1) AS n) AS old",
        "INSERT INTO submission_events (submission_id, attempt, at, state, sequence)
         SELECT id, 1, created_at, 'FINISHED', number FROM submissions WHERE $1 > 0 ORDER BY number",
        "INSERT INTO attempts (submission_id, attempt, state, names, pod_uid, finished_at, pod_deleted_at)
         SELECT id, 1, 'LOST', '{}', 'u', finished_at, finished_at FROM submissions WHERE $1 > 0 ORDER BY number",
        "INSERT INTO executors (submission_id, attempt, executor_id, pod_name, pod_uid, state, created_at, finished_at)
         SELECT id, 1, 1, 'e', 'u', 'DELETED', created_at, finished_at FROM submissions WHERE $1 > 0 ORDER BY number",
        "INSERT INTO audit (at, principal, request_id, action, tenant, submission_id, verdict)
         SELECT created_at, 'old', 'r', 'submit', 't', id, 'allowed' FROM submissions WHERE $1 > 0 ORDER BY number",
        "INSERT INTO webhooks (id, tenant, principal, url, format, own, states, labels, secrets, since)
         SELECT 'w', 't', 'old', 'http://127.0.0.1:1/', 'cloudevents', false, '{}', '{}', '', 0 WHERE $1 > 0",
        "INSERT INTO webhook_deliveries (webhook_id, submission_id, sequence, event, status, queued_at, ended_at)
         SELECT 'w', id, number, '{}', 'dead', created_at, now() FROM submissions WHERE $1 > 0 ORDER BY number",
        "INSERT INTO connect_sessions (submission_id, tenant, principal, name, idle_timeout, created_at, ended_at)
         SELECT id, 't', 'old', 'old', 60, created_at, finished_at FROM submissions WHERE $1 > 0 ORDER BY number",
        "INSERT INTO queue_admissions (queue, tenant, admitted_at, waited_seconds)
         SELECT 'q', 't', now() - interval '1 hour' * n / $1, 1 FROM generate_series(1, $1) AS n",
    ];
    for statement in statements {
        sqlx::query(statement).bind(count).execute(pool).await.unwrap_or_else(|error| panic!("{error}: {statement}"));
    }
    let counters = format!(
        "SELECT setval('submission_number', {count}); UPDATE event_sequence SET last = {count};
         UPDATE webhook_cursor SET last = {count}; UPDATE measured_starts SET sequence = {count}; ANALYZE"
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(counters)).execute(pool).await.unwrap();
}
