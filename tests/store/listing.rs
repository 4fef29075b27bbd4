//! Lists over a million submissions: the reads for a page, as Postgres reports them.
use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde_json::Value;
use sparkgate::{
    service::{FailureReason, Filter, Submission},
    store::Store,
    submission::{FAILURE_RULES, FailureCode, ReasonIs, State},
};
use sqlx::PgPool;

/// Inserts the rows. One in a thousand is live, belongs to `rare` and has its label; the owner `common` has half of
/// them.
async fn fill(pool: &PgPool, rows: i64) {
    sqlx::query(
        r#"
        INSERT INTO submissions (id, number, state, request, spark_version, spark_user, namespace, names, created_at,
            finished_at, name, owner, labels, client_id)
        SELECT 'driver-20260101000000-' || n, n,
            CASE WHEN n % 1000 = 7 THEN 'RUNNING' WHEN n % 10 = 0 THEN 'FAILED' ELSE 'FINISHED' END,
            '{"clientSparkVersion": "", "appResource": "", "mainClass": "", "sparkProperties": {}}', '4.3.0', 'x',
            CASE WHEN n % 1000 = 7 THEN 'rare' ELSE 'spark' END,
            '{"appId": "", "resourcePrefix": "", "driverPod": "", "driverService": "", "configMap": "",
              "localDir": "00000000-0000-0000-0000-000000000000"}',
            timestamptz '2026-01-01' + n * interval '1 second', timestamptz '2026-01-01' + n * interval '1 second',
            CASE WHEN n % 1000 = 7 THEN 'rare-' || n ELSE 'job-' || n % 5000 END,
            CASE WHEN n % 1000 = 7 THEN 'rare' WHEN n % 2 = 0 THEN 'common' ELSE 'user-' || n % 100 END,
            CASE WHEN n % 1000 = 7 THEN jsonb_build_object('team', 'rare', 'run', n::text)
                 ELSE jsonb_build_object('team', 't' || n % 20, 'run', n::text) END,
            CASE WHEN n % 10 = 3 THEN 'run-' || n END
        FROM generate_series(1, $1) n
        "#,
    )
    .bind(rows)
    .execute(pool)
    .await
    .unwrap();
    sqlx::query("VACUUM (ANALYZE) submissions").execute(pool).await.unwrap();
}

/// Returns every filter, alone and combined with others.
fn filters() -> Vec<(&'static str, Filter)> {
    let text = |text: &str| Some(text.to_owned());
    let label = |value: &str| BTreeMap::from([("team".to_owned(), value.to_owned())]);
    let time = |text: &str| Some(text.parse::<DateTime<Utc>>().unwrap());
    let all = Filter::default;
    vec![
        ("none", all()),
        ("a rare state", Filter { states: vec![State::Running], ..all() }),
        ("two states, none there", Filter { states: vec![State::Queued, State::Pending], ..all() }),
        ("a common state", Filter { states: vec![State::Finished], ..all() }),
        ("common states", Filter { states: vec![State::Finished, State::Failed], ..all() }),
        ("a rare id", Filter { id_prefix: text("driver-2"), ..all() }),
        ("a rare name", Filter { name_prefix: text("rare-9"), ..all() }),
        ("no such name", Filter { name_prefix: text("none"), ..all() }),
        ("a common name", Filter { name_prefix: text("job"), ..all() }),
        ("a rare owner", Filter { owner: text("rare"), ..all() }),
        ("no such owner", Filter { owner: text("unknown"), ..all() }),
        ("a common owner", Filter { owner: text("common"), ..all() }),
        ("a rare namespace", Filter { namespace: text("rare"), ..all() }),
        ("a common namespace", Filter { namespace: text("spark"), ..all() }),
        ("a rare label", Filter { labels: label("rare"), ..all() }),
        ("no such label", Filter { labels: label("none"), ..all() }),
        ("an id of a client", Filter { client_id: text("run-3"), ..all() }),
        ("no such id of a client", Filter { client_id: text("none"), ..all() }),
        ("no such queue", Filter { queue: text("none"), ..all() }),
        ("the first", Filter { created_before: time("2026-01-01T00:01:00Z"), ..all() }),
        ("after the last", Filter { created_after: time("2027-01-01T00:00:00Z"), ..all() }),
        ("live ones of a common owner", Filter { states: vec![State::Running], owner: text("common"), ..all() }),
        ("a part of no name", Filter { name_part: text("none"), ..all() }),
        ("no such principal", Filter { principal: text("corp:none"), ..all() }),
        ("a code that no submission has", Filter { failure_codes: vec![FailureCode::Lost], ..all() }),
        ("a common code", Filter { failure_codes: vec![FailureCode::Unknown], ..all() }),
        ("failed ones of a common owner", Filter { states: vec![State::Failed], owner: text("common"), ..all() }),
    ]
}

/// Returns the number of blocks of 8 KiB that a page reads, and the plan.
async fn read(store: &Store, filter: &Filter) -> (u64, String) {
    let plan = &store.all().explain(filter, None, 50).await.unwrap()[0]["Plan"];
    let blocks = ["Shared Hit Blocks", "Shared Read Blocks"].map(|kind| plan[kind].as_u64().unwrap());
    (blocks.iter().sum(), scans(plan).join(", "))
}

fn scans(plan: &Value) -> Vec<String> {
    let below = plan["Plans"].as_array().into_iter().flatten().flat_map(scans);
    let kind = plan["Node Type"].as_str().unwrap();
    let this = kind.contains("Scan").then(|| format!("{kind} {}", plan["Index Name"].as_str().unwrap_or_default()));
    this.into_iter().chain(below).collect()
}

#[sqlx::test]
async fn every_filter_has_an_index_and_a_page_costs_what_it_costs_in_a_small_table(pool: PgPool) {
    let store = Store::new(pool.clone());
    fill(&pool, 2000).await;
    let (small, _) = read(&store, &Filter::default()).await;
    sqlx::query("TRUNCATE submissions, submission_events, manifests CASCADE").execute(&pool).await.unwrap();
    fill(&pool, 1_000_000).await;
    let (large, how) = read(&store, &Filter::default()).await;
    assert!(large <= 2 * small, "the first page takes {large} blocks, and {small} in a small table: {how}");
    for (name, filter) in filters() {
        let (blocks, how) = read(&store, &filter).await;
        assert!(!how.contains("Seq Scan") && how.contains("Index"), "{name}: {how}");
        // The table has tens of thousands of blocks. A rare value is either found a thousand times and then sorted, or
        // found fifty times among the newest fifty thousand submissions: that depends on Postgres' sample of the
        // labels.
        assert!(blocks <= 4500, "{name}: {blocks} blocks by {how}");
    }
}

/// Returns all submissions that match, read page by page, and the number of pages.
async fn all(store: &Store, filter: &Filter) -> (Vec<Submission>, usize) {
    let (mut found, mut before, mut pages) = (Vec::new(), None, 0);
    loop {
        let page = store.all().submissions(filter, before, 5000).await.unwrap();
        found.extend(page.items);
        (before, pages) = (page.last, pages + 1);
        if !page.more {
            return (found, pages);
        }
    }
}

#[sqlx::test]
async fn a_filter_by_failure_code_selects_the_rows_that_have_the_code(pool: PgPool) {
    let store = Store::new(pool.clone());
    let listed = FAILURE_RULES.iter().flat_map(|rule| match rule.reason {
        ReasonIs::OneOf(reasons) => reasons,
        _ => &[],
    });
    let others = ["", "OutOfcpu", "WorkloadEvictedDueToPreempted", "SomethingElse"];
    let mut reasons: Vec<Option<&str>> = listed.copied().chain(others).map(Some).chain([None]).collect();
    reasons.sort_unstable();
    reasons.dedup();
    let messages =
        [None, Some(""), Some("words"), Some("exceeded quota: q"), Some("x: java.lang.OutOfMemoryError: heap")];
    sqlx::query(
        r#"
        INSERT INTO submissions (id, number, state, request, spark_version, spark_user, namespace, names, created_at, name,
            owner, exit_code, reason, message)
        SELECT 'driver-20260101000000-' || n, n, state, '{}', '4.3.0', 'x', 'spark',
            '{"appId": "", "resourcePrefix": "", "driverPod": "", "driverService": "", "configMap": "",
              "localDir": "00000000-0000-0000-0000-000000000000"}',
            now(), 'job-' || n, 'x', exit_code, reason, message
        FROM (SELECT *, row_number() OVER () AS n FROM unnest($1::text[]) state, unnest($2::integer[]) exit_code,
                  unnest($3::text[]) reason, unnest($4::text[]) message) AS row
        "#,
    )
    .bind(State::ALL.map(State::as_str))
    .bind([None, Some(0), Some(1), Some(52), Some(126), Some(137)])
    .bind(&reasons)
    .bind(messages)
    .execute(&pool)
    .await
    .unwrap();
    let (rows, _) = all(&store, &Filter::default()).await;
    assert_eq!(rows.len(), 10 * 6 * reasons.len() * messages.len());
    for code in FailureCode::ALL {
        let has_code = |row: &&Submission| FailureReason::of(row).is_some_and(|why| why.code == *code);
        let expected: Vec<i64> = rows.iter().filter(has_code).map(|row| row.number).collect();
        let (found, _) = all(&store, &Filter { failure_codes: vec![*code], ..Filter::default() }).await;
        assert!(!expected.is_empty(), "{code}");
        assert_eq!(found.iter().map(|row| row.number).collect::<Vec<_>>(), expected, "{code}");
    }
    let both = Filter { failure_codes: vec![FailureCode::Lost, FailureCode::Evicted], ..Filter::default() };
    assert!(all(&store, &both).await.0.iter().any(|row| row.state == State::Failed));

    // A page looks at 20,000 rows of such a filter, and the next one goes on behind them.
    let none = Filter { name_part: Some("none".to_owned()), ..Filter::default() };
    let (found, pages) = all(&store, &none).await;
    assert_eq!((found.len(), pages), (0, rows.len().div_ceil(20_000)));
    let oldest = Filter { name_part: Some("JOB-1".to_owned()), ..Filter::default() };
    assert_eq!(all(&store, &oldest).await.0.last().map(|row| row.number), Some(1));
}
