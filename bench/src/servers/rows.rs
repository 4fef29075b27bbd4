//! Submissions inserted as rows: live ones with their pods, and ended ones as history.

use std::time::Duration;

use anyhow::Context;
use sparkgate_testing::request::request;
use sqlx::{AssertSqlSafe, PgConnection, types::Json};

use super::Database;

/// How many rows one statement writes.
const BATCH: usize = 10_000;

/// Returns the id of submission `number`.
pub(crate) fn id(number: usize) -> String {
    format!("driver-20261121000000-{number:04}")
}

/// Returns the name of its application.
pub(crate) fn name(number: usize) -> String {
    format!("nightly-orders-{number}")
}

/// Returns the name of its driver pod.
pub(crate) fn pod(number: usize) -> String {
    format!("nightly-orders-{number}-{number:016x}-driver")
}

/// Returns the uid of its driver pod, unless another one was given.
pub(crate) fn uid(number: usize) -> String {
    format!("5b0c9a3e-0000-4000-8000-{number:012}")
}

/// Adds submissions in the namespace `default`, `PENDING` or `RUNNING`, numbered from `first` on. Their driver pods
/// have these uids.
pub(crate) async fn live(database: &Database, state: &str, first: usize, uids: &[String]) -> anyhow::Result<()> {
    let states: &[&str] = if state == "RUNNING" {
        &["QUEUED", "LAUNCHING", "PENDING", "RUNNING"]
    } else {
        &["QUEUED", "LAUNCHING", "PENDING"]
    };
    let mut connection = database.connect().await?;
    for (batch, uids) in uids.chunks(BATCH).enumerate() {
        write(&mut connection, states, first + batch * BATCH, uids, "now()").await?;
    }
    settle(&mut connection).await
}

/// Adds submissions that have `FINISHED` within the last `span` and whose pods are gone, numbered from `first` on.
pub(crate) async fn history(database: &Database, first: usize, count: usize, span: Duration) -> anyhow::Result<()> {
    let mut connection = database.connect().await?;
    write_history(&mut connection, first, count, span).await?;
    settle(&mut connection).await
}

/// Does the same from number 1 on in an empty database: the indexes that keep no rule are built afterwards, which takes a
/// fraction of the time.
pub(crate) async fn old_history(database: &Database, count: usize, span: Duration) -> anyhow::Result<()> {
    let mut connection = database.connect().await?;
    let indexes = "SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid) FROM pg_index
        WHERE indrelid IN ('submissions'::regclass, 'submission_events'::regclass) AND NOT indisunique";
    let indexes: Vec<(String, String)> = sqlx::query_as(indexes).fetch_all(&mut connection).await?;
    sqlx::query("SET maintenance_work_mem = '1GB'").execute(&mut connection).await?;
    for (name, _) in &indexes {
        sqlx::query(AssertSqlSafe(format!("DROP INDEX {name}"))).execute(&mut connection).await?;
    }
    write_history(&mut connection, 1, count, span).await?;
    for (_, definition) in indexes {
        sqlx::query(AssertSqlSafe(definition)).execute(&mut connection).await?;
    }
    settle(&mut connection).await
}

async fn write_history(
    connection: &mut PgConnection,
    first: usize,
    count: usize,
    span: Duration,
) -> anyhow::Result<()> {
    let states = ["QUEUED", "LAUNCHING", "PENDING", "RUNNING", "FINISHED"];
    let seconds = span.as_secs();
    let at = format!("now() - interval '{seconds} seconds' * (1 - (number - {first})::float8 / {count})");
    for begin in (0..count).step_by(BATCH) {
        let numbers = first + begin..first + count.min(begin + BATCH);
        let uids: Vec<_> = numbers.map(uid).collect();
        write(connection, &states, first + begin, &uids, &at).await?;
    }
    Ok(())
}

/// Writes one submission for each uid, with an event for each of its states, and without its objects: no measurement
/// with such rows reads them. The usage of ended ones counts as settled: otherwise the gateway would settle all of them while it is measured.
/// `at` is the SQL expression of the time of acceptance, by `number`.
async fn write(
    connection: &mut PgConnection,
    states: &[&str],
    first: usize,
    uids: &[String],
    at: &str,
) -> anyhow::Result<()> {
    let of = |name: fn(usize) -> String| (first..first + uids.len()).map(name).collect::<Vec<_>>();
    let statement = format!(
        "WITH new AS (
            SELECT *, {at} AS at
            FROM unnest($2::text[], $3::text[], $4::text[], $5::text[]) WITH ORDINALITY AS u (id, name, pod, uid, place),
                LATERAL (SELECT $1 + place - 1 AS number) AS n
        ), accepted AS (
            INSERT INTO submissions (id, number, state, request, spark_version, namespace, names, spark_user, created_at,
                queued_at, name, owner, labels, fingerprint, pod_uid, node, pod_ip, started_at, finished_at, exit_code,
                pod_deleted_at, settled)
            SELECT id, number, $6, $7, '4.3.0', 'default', jsonb_build_object(
                    'appId', 'spark-' || md5(id), 'resourcePrefix', name || '-' || left(md5(id), 16), 'driverPod', pod,
                    'driverService', name || '-' || left(md5(id), 16) || '-driver-svc',
                    'configMap', 'spark-drv-' || left(md5(id), 16) || '-conf-map', 'localDir', uid),
                'etl', at, at, name, 'etl', '{{\"team\": \"orders\"}}', decode(md5(id) || md5(uid), 'hex'), uid,
                CASE WHEN $6 <> 'PENDING' THEN 'ip-10-0-17-21.eu-central-1.compute.internal' END,
                CASE WHEN $6 <> 'PENDING' THEN '10.0.29.143' END, CASE WHEN $6 <> 'PENDING' THEN at END,
                CASE WHEN $6 = 'FINISHED' THEN at END, CASE WHEN $6 = 'FINISHED' THEN 0 END,
                CASE WHEN $6 = 'FINISHED' THEN at END, $6 = 'FINISHED'
            FROM new ORDER BY number
            RETURNING id, attempt, created_at, number
        ), last AS (
            UPDATE event_sequence SET last = last + $9 RETURNING last - $9 AS before
        )
        INSERT INTO submission_events (submission_id, attempt, at, state, sequence)
        SELECT id, attempt, created_at, state, before + row_number() OVER (ORDER BY number, place)
        FROM last, accepted, unnest($8::text[]) WITH ORDINALITY AS s (state, place) ORDER BY number, place"
    );
    let request: serde_json::Value = serde_json::from_slice(&request(first, "default"))?;
    let statement = sqlx::query(AssertSqlSafe(statement))
        .bind(i64::try_from(first)?)
        .bind(of(id))
        .bind(of(name))
        .bind(of(pod))
        .bind(uids)
        .bind(states.last().copied().unwrap_or_default())
        .bind(Json(request))
        .bind(states)
        .bind(i64::try_from(uids.len() * states.len())?);
    statement.execute(connection).await.context("writing submissions")?;
    Ok(())
}

/// Sets the sequence so that the next submission gets the next number.
async fn settle(connection: &mut PgConnection) -> anyhow::Result<()> {
    let number = "SELECT setval('submission_number', (SELECT max(number) FROM submissions))";
    sqlx::query(number).execute(&mut *connection).await?;
    vacuum(connection).await
}

/// Lets Postgres know the tables' sizes, as autovacuum does after a while.
pub(crate) async fn vacuum(connection: &mut PgConnection) -> anyhow::Result<()> {
    for table in ["submissions", "submission_events"] {
        sqlx::query(AssertSqlSafe(format!("VACUUM ANALYZE {table}"))).execute(&mut *connection).await?;
    }
    Ok(())
}

/// Returns the name of a queue.
pub(crate) fn queue(number: usize) -> String {
    format!("queue-{number}")
}

/// Adds submissions that wait for their admission in `queues` queues, each with a tenant, numbered from `first` on.
pub(crate) async fn waiting(database: &Database, first: usize, count: usize, queues: usize) -> anyhow::Result<()> {
    let mut connection = database.connect().await?;
    sqlx::query(
        "INSERT INTO submissions (id, number, state, request, spark_version, spark_user, namespace, names, created_at, tenant,
             queue, priority, queue_rank, claimed_by, cost_pods, cost_millicores, cost_memory_bytes, cost_driver_millicores,
             cost_driver_memory_bytes)
         SELECT 'driver-20261121000000-' || lpad(n::text, 6, '0'), n, 'QUEUED', $4, '4.3.0', 'bench', 'default', '{}', now(),
             'tenant-' || n % $3, 'queue-' || n % $3, 0, n, '00000000-0000-0000-0000-000000000002', 3, 3000, 3221225472, 1000,
             1073741824
         FROM generate_series($1, $1 + $2 - 1) AS n",
    )
    .bind(i64::try_from(first)?)
    .bind(i64::try_from(count)?)
    .bind(i64::try_from(queues)?)
    .bind(Json(serde_json::json!({})))
    .execute(&mut connection)
    .await?;
    settle(&mut connection).await
}

/// Lets the admitted submissions wait for their admission again.
pub(crate) async fn wait_again(database: &Database) -> anyhow::Result<()> {
    let again = "UPDATE submissions SET state = 'QUEUED', admitted_at = NULL, queue_rank = number,
            claimed_by = '00000000-0000-0000-0000-000000000002' WHERE queue IS NOT NULL AND admitted_at IS NOT NULL";
    sqlx::query(again).execute(&mut database.connect().await?).await?;
    Ok(())
}
