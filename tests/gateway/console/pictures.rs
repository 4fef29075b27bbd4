//! The pictures of the docs: each is drawn from the pages as they are, and written with `SPARKGATE_WRITE_DOCS=1`.

use std::{fs, path::Path};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::json;
use sparkgate::store::{LogEnd, Store};
use sparkgate_testing::browser::Browser;
use sqlx::PgPool;

use crate::console::site::Site;

const LOG: &str = "\
2026-01-02T03:04:05.000000001Z 26/01/02 03:04:05 INFO SparkContext: Running Spark version 4.3.0
2026-01-02T03:04:09.000000002Z reading s3a://lake/orders/2026-01-02
2026-01-02T03:05:41.000000003Z orders: 1204339
2026-01-02T03:06:02.000000004Z Traceback (most recent call last):
2026-01-02T03:06:02.000000005Z   File \"/opt/app/orders.py\", line 41, in <module>
2026-01-02T03:06:02.000000006Z     priced = orders.join(prices, on=\"sku\").select(\"sku\", \"price_eur\")
2026-01-02T03:06:02.000000007Z pyspark.errors.exceptions.captured.AnalysisException: [UNRESOLVED_COLUMN.WITH_SUGGESTION] A column with name `price_eur` cannot be resolved. Did you mean one of the following? [`price`, `sku`]. SQLSTATE: 42703
2026-01-02T03:06:02.000000008Z 26/01/02 03:06:02 INFO ShutdownHookManager: Shutdown hook called
";
const MESSAGE: &str = "the driver exited with code 1 (Error): pyspark.errors.exceptions.captured.AnalysisException: \
    [UNRESOLVED_COLUMN.WITH_SUGGESTION] A column with name `price_eur` cannot be resolved. Did you mean one of the following? [`price`, `sku`]. SQLSTATE: 42703";
const ACCESS: &str = "
authentication: {}
tenants:
  red: {namespaces: [red], defaultQueue: interactive}
  blue: {namespaces: [blue], defaultQueue: interactive}
capacity: {cores: 400}
queues:
  interactive: {weight: 3}
  nightly: {weight: 1, caps: {submissions: 20}}
limits: {writes: 100000/s, reads: 100000/s, failedLogins: 100000/s}
";
/// Two replicas, each with a watch.
const REPLICAS: &str = "
    WITH replicas (id, host, scope) AS (
        VALUES (gen_random_uuid(), 'sparkgate-6d5f8c7b9-4xk2p', 'red'), (gen_random_uuid(), 'sparkgate-6d5f8c7b9-w8mzt', 'blue')
    ), hosts AS (
        INSERT INTO replica_keys (session, known, host) SELECT id, '{}', host FROM replicas
    ), positions AS (
        INSERT INTO watch_positions (scope, resource_version, at) SELECT scope, '481516', now() FROM replicas
    )
    INSERT INTO leases (name, holder, expires_at)
    SELECT name, id, clock_timestamp() + interval '20 seconds' FROM replicas, unnest(ARRAY['replica/' || id, 'watch/' || scope]) AS name";
/// The states of a run, three seconds after each other.
const EVENTS: &str = "
    INSERT INTO submission_events (submission_id, attempt, at, state)
    SELECT id, 1, started_at + (n - 3) * interval '3 seconds', states.state
    FROM submissions s, unnest(ARRAY['LAUNCHING', 'PENDING', 'RUNNING']) WITH ORDINALITY AS states (state, n) WHERE id = $1
    UNION ALL SELECT id, 1, finished_at, state FROM submissions WHERE id = $1 AND finished_at IS NOT NULL";
const ERROR: &str = "state = 'FAILED', exit_code = 1, reason = 'Error', pod_uid = 'uid'";

/// What the submissions did: name, owner, columns, minutes since the acceptance, minutes of the run.
const RUNS: [(&str, &str, &str, u32, u32); 12] = [
    ("orders-nightly", "ada", "state = 'FINISHED', exit_code = 0, pod_uid = 'uid'", 2900, 12),
    ("orders-nightly", "ada", "state = 'FINISHED', exit_code = 0, pod_uid = 'uid'", 1460, 13),
    ("sessionize", "grace", "state = 'FINISHED', exit_code = 0, pod_uid = 'uid'", 700, 44),
    (
        "train-ranking",
        "emmy",
        "state = 'FAILED', exit_code = 137, reason = 'OOMKilled', message = 'the driver exited with code 137 (OOMKilled)', pod_uid = 'uid'",
        610,
        95,
    ),
    ("features-hourly", "emmy", "state = 'FINISHED', exit_code = 0, pod_uid = 'uid'", 300, 6),
    ("features-hourly", "emmy", "state = 'FINISHED', exit_code = 0, pod_uid = 'uid'", 240, 7),
    ("invoices", "mary", "state = 'KILLED', reason = 'UserRequest'", 200, 3),
    ("features-hourly", "emmy", "state = 'FINISHED', exit_code = 0, pod_uid = 'uid'", 180, 6),
    ("backfill-2025", "grace", "state = 'FINISHED', exit_code = 0, pod_uid = 'uid'", 150, 80),
    ("features-hourly", "emmy", "state = 'FINISHED', exit_code = 0, pod_uid = 'uid'", 120, 6),
    ("sessionize", "grace", "state = 'FINISHED', exit_code = 0, pod_uid = 'uid'", 60, 41),
    ("orders-nightly", "ada", ERROR, 20, 2),
];

pub(super) async fn played(pool: PgPool) -> (Site, Vec<String>) {
    let site = Site::with(pool, ACCESS).await;
    let ids = site.submit(RUNS.len() + 2).await;
    for (id, (name, owner, columns, ago, took)) in ids.iter().zip(RUNS) {
        let at = format!("clock_timestamp() - interval '{ago} minutes'");
        let times = format!(
            "created_at = {at}, started_at = {at} + interval '9 seconds', finished_at = {at} + interval '{took} minutes'"
        );
        let named = format!("name = '{name}', owner = '{owner}', principal = 'corp:{owner}', executors_succeeded = 4");
        site.set(id, &format!("{columns}, {times}, {named}")).await;
    }
    let failed = &ids[RUNS.len() - 1];
    site.set(failed, &format!("message = '{}', labels = '{{\"team\": \"orders\"}}'", MESSAGE.replace('\'', "''")))
        .await;
    let log = LogEnd { text: LOG.as_bytes().to_vec(), cut: false };
    Store::new(site.world.pool.clone()).keep_log(&failed.parse().unwrap(), 1, Some(log), &[]).await.unwrap();
    site.let_run(&ids[RUNS.len()]).await;
    site.set(&ids[RUNS.len()], "name = 'clicks-stream', owner = 'grace', principal = 'corp:grace', labels = '{\"team\": \"clicks\"}', queue = 'interactive', created_at = clock_timestamp() - interval '6 minutes', started_at = clock_timestamp() - interval '5 minutes'").await;
    site.set(&ids[RUNS.len() + 1], "name = 'report', owner = 'mary', principal = 'corp:mary', queue = 'nightly'").await;
    for id in &ids[..=RUNS.len()] {
        let begun = "UPDATE submission_events SET at = (SELECT created_at FROM submissions WHERE id = $1) WHERE submission_id = $1";
        for statement in [begun, EVENTS] {
            sqlx::query(statement).bind(id).execute(&site.world.pool).await.unwrap();
        }
    }
    sqlx::query(REPLICAS).execute(&site.world.pool).await.unwrap();
    (site, ids)
}

#[sqlx::test]
async fn the_pictures_of_the_docs_are_pages_as_they_are(pool: PgPool) {
    let (site, ids) = played(pool).await;
    let (failed, running) = (&ids[RUNS.len() - 1], &ids[RUNS.len()]);
    let pictures = [
        ("submissions", 1280, 720, "light", "submissions".to_owned()),
        ("failure", 1280, 900, "light", format!("submissions/{failed}")),
        ("submission", 1280, 800, "dark", format!("submissions/{running}")),
        ("rerun", 1280, 620, "light", format!("submissions/{failed}/rerun")),
        ("compare", 1280, 760, "light", format!("submissions/{failed}/configuration?with={}", ids[1])),
        ("log", 1280, 520, "dark", format!("submissions/{failed}/logs?ownOutput=true")),
        ("job", 1280, 900, "light", "jobs/orders-nightly".to_owned()),
        ("overview", 1280, 800, "dark", "overview".to_owned()),
        ("operator", 1280, 800, "light", "operator".to_owned()),
        ("phone", 390, 800, "dark", "submissions".to_owned()),
    ];
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut browser = Browser::start(&site.key).await;
    for (name, width, height, scheme, page) in &pictures {
        browser.set_appearance(*width, scheme).await;
        let metrics = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": *width < 500});
        browser.call("Emulation.setDeviceMetricsOverride", metrics).await;
        browser.open(&site.url(&format!("/console/{page}"))).await;
        let shown = browser.call("Page.captureScreenshot", json!({"format": "png"})).await;
        let bytes = STANDARD.decode(shown["data"].as_str().unwrap()).unwrap();
        assert!(bytes.len() > 5000, "{name} is empty");
        if std::env::var_os("SPARKGATE_WRITE_DOCS").is_some() {
            fs::write(root.join(format!("docs/use/console/{name}.png")), bytes).unwrap();
        }
    }
    for entry in fs::read_dir(root.join("docs/use/console")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let is_drawn = pictures.iter().any(|(drawn, ..)| name == format!("{drawn}.png"));
        assert!(is_drawn, "no test draws {name}");
    }
}
