//! Usage on a real Postgres: what is counted, of which pods, for how long, on which days, for whom, and that it stays when
//! submissions are deleted.

use std::{collections::BTreeMap, time::Duration};

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use serde_json::json;
use sparkgate::{
    store::{GroupBy, Price, Prices, Scope, Scoped, Store, SubmissionUsage, UsageFilter, UsageReport},
    submission::{ExecutorRecord, ExecutorState, Outcome, Placement, Reservation, State, StateChange, SubmissionId},
};
use sparkgate_testing::SplitMix64;
use sqlx::PgPool;
use uuid::Uuid;

use crate::support::{accept, claim_one, executor, session};

const GIB: i64 = 1 << 30;
const DAY: Duration = Duration::from_secs(24 * 3600);

fn time(text: &str) -> DateTime<Utc> {
    DateTime::parse_from_rfc3339(text).unwrap().to_utc()
}

fn day(text: &str) -> NaiveDate {
    text.parse().unwrap()
}

/// All usage of two years.
fn all() -> UsageFilter {
    let labels = BTreeMap::new();
    UsageFilter {
        since: day("2020-01-01"),
        until: day("2022-01-01"),
        tenant: None,
        owner: None,
        namespace: None,
        labels,
    }
}

async fn report(store: &Store, filter: &UsageFilter, group_by: &[GroupBy]) -> UsageReport {
    store.all().usage(filter, group_by, &Prices::default(), 10_000).await.unwrap()
}

async fn of(store: &Store, id: &SubmissionId) -> SubmissionUsage {
    of_document(store.all(), id, &Prices::default()).await.unwrap()
}

/// Returns the usage in the document of a submission; `None` without one.
async fn of_document(scoped: Scoped, id: &SubmissionId, prices: &Prices) -> Option<SubmissionUsage> {
    scoped.document(id, prices.clone()).await.unwrap()?.usage
}

/// Returns the groups with their core-seconds and byte-seconds of drivers and executors, and the estimated core-seconds.
fn sums(report: &UsageReport) -> BTreeMap<String, [String; 5]> {
    let group = |values: &Vec<Option<String>>| {
        values.iter().map(|value| value.as_deref().unwrap_or("-")).collect::<Vec<_>>().join(" ")
    };
    let groups = report.groups.iter().map(|(values, usage)| {
        let amounts = [
            &usage.driver.core_seconds,
            &usage.driver.memory_byte_seconds,
            &usage.executors.core_seconds,
            &usage.executors.memory_byte_seconds,
            &usage.estimated.core_seconds,
        ];
        (group(values), amounts.map(Clone::clone))
    });
    groups.collect()
}

/// A submission whose driver pod had a core and a GiB.
struct Submission<'a> {
    tenant: &'a str,
    principal: &'a str,
    owner: &'a str,
    labels: &'a str,
    /// From when to when its pod counts; without an end it is running.
    pod: (DateTime<Utc>, Option<DateTime<Utc>>),
    millicores: i64,
    bytes: i64,
}

const PLAIN: Submission<'_> = Submission {
    tenant: "red",
    principal: "corp:alice",
    owner: "alice",
    labels: "{}",
    pod: (DateTime::UNIX_EPOCH, None),
    millicores: 1000,
    bytes: GIB,
};

/// Settles nothing of the tests' years yet.
async fn begin(pool: &PgPool) {
    sqlx::query("UPDATE usage_settled SET until = '2020-01-01Z'").execute(pool).await.unwrap();
}

/// Carries out what happens to ended submissions: two of them are settled, then all are deleted.
async fn grow_old(store: &Store, step: usize) {
    match step {
        0 => assert!(store.settle_usage(2, None).await.unwrap() > 0),
        _ => drop(store.delete_ended(DAY, 10, None).await.unwrap()),
    }
}

async fn insert(pool: &PgPool, number: i64, of: &Submission<'_>) -> String {
    let id = format!("driver-20200101000000-{number:06}");
    sqlx::query(
        "INSERT INTO submissions (id, number, state, request, spark_version, spark_user, namespace, names, created_at, tenant,
             principal, owner, labels, pod_uid, started_at, pod_since, pod_ended_at, finished_at, pod_millicores, pod_memory_bytes,
             pod_deleted_at)
         VALUES ($1, $2, CASE WHEN $3::timestamptz IS NULL THEN 'RUNNING' ELSE 'FINISHED' END, '{}', '4.3.0', 'tester', 'spark',
             $11, $4, $5, $6, $7, $8::jsonb, 'u', $4, $4, $3, $3, $9, $10, $3)",
    )
    .bind(&id)
    .bind(number)
    .bind(of.pod.1)
    .bind(of.pod.0)
    .bind(of.tenant)
    .bind(of.principal)
    .bind(of.owner)
    .bind(of.labels)
    .bind(of.millicores)
    .bind(of.bytes)
    .bind(json!({"appId": "a", "resourcePrefix": "b", "driverPod": "c", "driverService": "d", "configMap": "e", "localDir": Uuid::nil()}))
    .execute(pool)
    .await
    .unwrap();
    id
}

#[sqlx::test]
async fn usage_of_a_submission_is_that_of_all_its_attempts_and_executors(pool: PgPool) {
    let store = Store::new(pool.clone());
    let holder = session(&store).await;
    let id = accept(&store, "a").await;
    assert_eq!(of_document(store.all(), &id, &Prices::default()).await, None, "it waits");
    sqlx::query(
        "UPDATE submissions SET max_retries_infrastructure = 1, created_at = now() - interval '3 h',
             queued_at = now() - interval '3 h'",
    )
    .execute(&pool)
    .await
    .unwrap();
    let now: DateTime<Utc> = sqlx::query_scalar("SELECT date_trunc('second', now())").fetch_one(&pool).await.unwrap();
    let ago = |minutes| Some(now - TimeDelta::minutes(minutes));
    let reservation = |millicores, since| Reservation { millicores, memory_bytes: 2 * GIB, since };
    let pod = |uid: &str, since, ended_at| Placement {
        pod_uid: Some(uid.to_owned()),
        started_at: since,
        ended_at,
        reservation: Some(reservation(500, since)),
        ..Placement::default()
    };
    let launch = async |attempt, uid: &str| {
        let claim = claim_one(&store, holder).await.epoch;
        assert!(store.record_pod(&id, attempt, claim, uid).await.unwrap().is_some());
        let launched = Placement { pod_uid: Some(uid.to_owned()), ..Placement::default() };
        assert!(store.advance(&id, attempt, Some(claim), &StateChange::Launched, &launched).await.unwrap());
    };
    launch(1, "u").await;
    assert!(store.advance(&id, 1, None, &StateChange::Running, &pod("u", ago(100), None)).await.unwrap());
    // Two executors overlap; one of them vanishes unseen, and counts until the end of the driver.
    let one = ExecutorRecord { reservation: Some(reservation(1000, ago(90))), ..executor(&id) };
    let other =
        ExecutorRecord { executor_id: 2, pod_name: "exec-2".to_owned(), pod_uid: "e2".to_owned(), ..one.clone() };
    store.write_executors(&[one.clone(), other]).await.unwrap();
    let ended = ExecutorRecord { state: ExecutorState::Succeeded, finished_at: ago(70), ..one };
    store.write_executors(&[ended]).await.unwrap();
    // It ended in the absence of the gateway: the time of its node counts.
    let evicted = StateChange::Ended(Outcome::new(State::Failed, "Evicted", "no room"));
    assert!(store.advance(&id, 1, None, &evicted, &pod("u", ago(100), ago(60))).await.unwrap());
    let vanished = ExecutorRecord::vanished((id.clone(), 1, 2), "exec-2".to_owned(), "e2".to_owned());
    let expected_first = ("1200", "3000"); // 0.5 cores for 40 minutes; a core for 20 minutes and one for 30
    let used = of(&store, &id).await;
    let (attempt, first) = &used.attempts[0];
    assert_eq!(
        (*attempt, first.driver.core_seconds.as_str(), first.executors.core_seconds.as_str()),
        (1, expected_first.0, expected_first.1)
    );
    assert_eq!(first.estimated.core_seconds, "1800", "of the executor that is still said to run");
    store.write_executors(&[vanished]).await.unwrap();
    assert_eq!(of(&store, &id).await, used, "the end of the attempt came first");

    // The next attempt has other pods. The clock of its node can't be right, so its end is the time at which it was recorded.
    sqlx::query("UPDATE submissions SET not_before = NULL, queued_at = now() - interval '30 min'")
        .execute(&pool)
        .await
        .unwrap();
    launch(2, "v").await;
    let finished = StateChange::Ended(Outcome::new(State::Finished, "Completed", "done"));
    assert!(store.advance(&id, 2, None, &finished, &pod("v", ago(20), ago(300))).await.unwrap());
    let used = of(&Store::new(pool.clone()), &id).await;
    let [(1, again), (2, second)] = used.attempts.as_slice() else { panic!("{used:?}") };
    assert_eq!(again, first, "it is over");
    let seconds: f64 = second.driver.core_seconds.parse::<f64>().unwrap() / 0.5;
    assert!((1200.0..1500.0).contains(&seconds), "from 20 minutes ago until now: {seconds}");
    assert_eq!(second.estimated, second.driver);
    assert_eq!(second.executors.core_seconds, "0");
    let total: f64 = used.total.total.core_seconds.parse().unwrap();
    assert!((total - 4200.0 - seconds * 0.5).abs() < 1e-6, "{total}");
    let memory: f64 = used.attempts[0].1.total.memory_byte_seconds.parse().unwrap();
    assert_eq!(memory, 2.0 * GIB as f64 * 60.0 * (40.0 + 20.0 + 30.0));
}

/// A driver left it behind, and it was deleted much later.
#[sqlx::test]
async fn an_executor_counts_until_its_observed_end_however_late(pool: PgPool) {
    let store = Store::new(pool.clone());
    let holder = session(&store).await;
    let id = accept(&store, "a").await;
    sqlx::query("UPDATE submissions SET created_at = now() - interval '9 h', queued_at = now() - interval '9 h'")
        .execute(&pool)
        .await
        .unwrap();
    let now: DateTime<Utc> = sqlx::query_scalar("SELECT date_trunc('second', now())").fetch_one(&pool).await.unwrap();
    let ago = |hours| Some(now - TimeDelta::hours(hours));
    let claim = claim_one(&store, holder).await.epoch;
    assert!(store.record_pod(&id, 1, claim, "u").await.unwrap().is_some());
    let reservation = |since| Some(Reservation { millicores: 1000, memory_bytes: GIB, since });
    let pod = Placement {
        pod_uid: Some("u".to_owned()),
        started_at: ago(8),
        ended_at: ago(7),
        reservation: reservation(ago(8)),
        ..Placement::default()
    };
    let finished = StateChange::Ended(Outcome::new(State::Finished, "Completed", "done"));
    let left = ExecutorRecord { reservation: reservation(ago(8)), ..executor(&id) };
    store.write_executors(std::slice::from_ref(&left)).await.unwrap();
    assert!(store.advance(&id, 1, None, &finished, &pod).await.unwrap());
    store
        .write_executors(&[ExecutorRecord { state: ExecutorState::Failed, finished_at: ago(3), ..left }])
        .await
        .unwrap();
    let used = of(&store, &id).await.total;
    assert_eq!((used.driver.core_seconds.as_str(), used.executors.core_seconds.as_str()), ("3600", "18000"));
    assert_eq!(used.estimated.core_seconds, "0");
}

#[sqlx::test]
async fn a_node_whose_clock_is_ahead_does_not_add_to_usage(pool: PgPool) {
    let store = Store::new(pool.clone());
    let holder = session(&store).await;
    let id = accept(&store, "a").await;
    let claimed = claim_one(&store, holder).await;
    assert!(store.record_pod(&id, 1, claimed.epoch, "u").await.unwrap().is_some());
    let ahead = |hours| Some(Utc::now() + TimeDelta::hours(hours));
    let reservation = Some(Reservation { millicores: 1000, memory_bytes: GIB, since: ahead(10) });
    let placement =
        Placement { pod_uid: Some("u".to_owned()), reservation, ended_at: ahead(20), ..Placement::default() };
    let finished = StateChange::Ended(Outcome::new(State::Finished, "Completed", "done"));
    assert!(store.advance(&id, 1, Some(claimed.epoch), &finished, &placement).await.unwrap());
    let used: f64 = of(&store, &id).await.total.total.core_seconds.parse().unwrap();
    assert!(used < 60.0, "{used}");
}

#[sqlx::test]
async fn a_submission_that_crosses_midnight_counts_on_each_day_and_stays_when_it_is_deleted(pool: PgPool) {
    let store = Store::new(pool.clone());
    begin(&pool).await;
    let pod = (time("2020-03-01T23:00:00Z"), Some(time("2020-03-03T00:30:00.5Z")));
    insert(&pool, 1, &Submission { pod, labels: r#"{"team": "data"}"#, ..PLAIN }).await;
    let by = [GroupBy::Day, GroupBy::Label("team".to_owned())];
    let expected: BTreeMap<String, [String; 5]> = [
        ("2020-03-01 data", "3600", "3865470566400"),
        ("2020-03-02 data", "86400", "92771293593600"),
        ("2020-03-03 data", "1800.5", "1933272154112"),
    ]
    .map(|(group, cores, memory)| (group.to_owned(), [cores, memory, "0", "0", "0"].map(str::to_owned)))
    .into();
    for step in 0..3 {
        assert_eq!(sums(&report(&store, &all(), &by).await), expected);
        let one_day = UsageFilter { since: day("2020-03-02"), until: day("2020-03-03"), ..all() };
        assert_eq!(report(&store, &one_day, &[]).await.total.total.core_seconds, "86400");
        let other = UsageFilter { labels: [("team".to_owned(), "web".to_owned())].into(), ..all() };
        assert_eq!(report(&store, &other, &[]).await.total.total.core_seconds, "0");
        grow_old(&store, step).await;
    }
    let left: i64 = sqlx::query_scalar("SELECT count(*) FROM submissions").fetch_one(&pool).await.unwrap();
    assert_eq!(left, 0);
}

#[sqlx::test]
async fn usage_of_foreign_submissions_is_not_counted(pool: PgPool) {
    let store = Store::new(pool.clone());
    begin(&pool).await;
    let hour = (time("2020-03-01T10:00:00Z"), Some(time("2020-03-01T11:00:00Z")));
    for (number, (tenant, principal)) in
        [("red", "corp:alice"), ("red", "corp:bob"), ("blue", "corp:alice"), ("default", "x")].into_iter().enumerate()
    {
        insert(&pool, number as i64, &Submission { tenant, principal, pod: hour, ..PLAIN }).await;
    }
    let scopes = [
        (Scope::of(vec!["red".to_owned()], vec![], "corp:alice"), "7200"),
        (Scope::of(vec!["red".to_owned()], vec!["blue".to_owned()], "corp:alice"), "10800"),
        (Scope::of(vec![], vec!["red".to_owned()], "corp:bob"), "3600"),
        (Scope::of(vec![], vec![], "corp:bob"), "0"),
        (Scope::installation(), "14400"),
    ];
    for step in 0..3 {
        for (scope, expected) in &scopes {
            let report = store.scoped(scope).usage(&all(), &[GroupBy::Tenant], &Prices::default(), 10).await.unwrap();
            assert_eq!(report.total.total.core_seconds, *expected, "{scope:?}");
            let id = "driver-20200101000000-000002".parse().unwrap();
            let one = of_document(store.scoped(scope), &id, &Prices::default()).await;
            let sees_it = *expected != "0" && scope.covers("blue", "corp:alice");
            assert!(one.is_none() || sees_it, "{scope:?}");
        }
        grow_old(&store, step).await;
    }
}

#[sqlx::test]
async fn costs_are_sums_by_the_price_of_each_tenant(pool: PgPool) {
    let store = Store::new(pool.clone());
    begin(&pool).await;
    let hour = (time("2020-03-01T10:00:00Z"), Some(time("2020-03-01T11:00:00Z")));
    insert(&pool, 1, &Submission { tenant: "red", pod: hour, ..PLAIN }).await;
    insert(&pool, 2, &Submission { tenant: "blue", pod: hour, millicores: 1, bytes: 1, ..PLAIN }).await;
    let price = |core: &str, gib: &str| Price { core_hour: core.to_owned(), gib_hour: gib.to_owned() };
    let prices =
        Prices { of_tenant: [("blue".to_owned(), price("100", "0"))].into(), other: Some(price("0.04", "0.005")) };
    let report = store.all().usage(&all(), &[GroupBy::Tenant], &prices, 10).await.unwrap();
    let costs: Vec<_> = report.groups.iter().map(|(_, usage)| usage.cost.as_deref()).collect();
    assert_eq!((costs, report.total.cost.as_deref()), (vec![Some("0.1"), Some("0.045")], Some("0.145")));
    let id = "driver-20200101000000-000001".parse().unwrap();
    assert_eq!(of_document(store.all(), &id, &prices).await.unwrap().total.cost.as_deref(), Some("0.045"));
    assert_eq!(of(&store, &id).await.total.cost, None, "without prices");
    // A limit on groups is noticed.
    let one = store.all().usage(&all(), &[GroupBy::Tenant], &prices, 1).await.unwrap();
    assert!(one.more && one.groups.len() == 1 && !report.more);
}

#[sqlx::test]
async fn sums_beyond_64_bits_are_exact(pool: PgPool) {
    let store = Store::new(pool.clone());
    begin(&pool).await;
    let years = (time("2020-01-01T00:00:00.000001Z"), Some(time("2021-12-31T00:00:00Z")));
    for number in 0..3 {
        insert(&pool, number, &Submission { pod: years, millicores: i64::MAX, bytes: i64::MAX, ..PLAIN }).await;
    }
    let micros = i128::from((years.1.unwrap() - years.0).num_microseconds().unwrap());
    // 3 × micros × MAX has 6 digits after the point for bytes, and 9 for cores.
    let product = 3_i128.checked_mul(micros).unwrap().checked_mul(i128::from(i64::MAX)).unwrap();
    for step in 0..3 {
        let total = report(&store, &all(), &[]).await.total.total;
        assert_eq!(total.memory_byte_seconds, decimal(product, 6));
        assert_eq!(total.core_seconds, decimal(product, 9));
        grow_old(&store, step).await;
    }
}

#[sqlx::test]
async fn concurrent_replicas_settle_and_delete_each_submission_once(pool: PgPool) {
    let store = Store::new(pool.clone());
    begin(&pool).await;
    let hour = (time("2020-03-01T10:00:00Z"), Some(time("2020-03-01T11:00:00Z")));
    for number in 0..30 {
        let later = TimeDelta::seconds(number);
        insert(&pool, number, &Submission { pod: (hour.0 + later, hour.1.map(|end| end + later)), ..PLAIN }).await;
    }
    loop {
        let settle = || store.settle_usage(3, None);
        let delete = || store.delete_ended(DAY, 2, None);
        let (one, two, three, four) = tokio::join!(settle(), delete(), settle(), delete());
        assert!([one, two, three, four].iter().all(Result::is_ok));
        assert_eq!(report(&store, &all(), &[]).await.total.total.core_seconds, "108000");
        let left: i64 = sqlx::query_scalar("SELECT count(*) FROM submissions").fetch_one(&pool).await.unwrap();
        if left == 0 {
            break;
        }
    }
}

#[sqlx::test]
async fn usage_is_settled_some_time_after_the_end_and_only_by_a_clock_that_is_believed(pool: PgPool) {
    let store = Store::new(pool.clone());
    begin(&pool).await;
    let ago = |minutes| Utc::now() - TimeDelta::minutes(minutes);
    insert(&pool, 1, &Submission { pod: (ago(200), Some(ago(72))), ..PLAIN }).await;
    insert(&pool, 2, &Submission { pod: (ago(200), Some(ago(60))), ..PLAIN }).await;
    insert(&pool, 3, &Submission { pod: (ago(200), None), ..PLAIN }).await;
    assert_eq!(store.settle_usage(10, Some(ago(1))).await.unwrap(), 0);
    assert_eq!(store.settle_usage(10, Some(ago(-1))).await.unwrap(), 1);
    assert_eq!(store.settle_usage(10, None).await.unwrap(), 0, "it is settled already");
}

/// Writes a number with so many digits after the point, without trailing zeros.
fn decimal(number: i128, digits: u32) -> String {
    let one = 10_i128.pow(digits);
    let fraction = format!("{:0width$}", number % one, width = digits as usize);
    format!("{}.{fraction}", number / one).trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// What a pod adds to the model: amounts in millionths of a second.
#[derive(Default, Clone)]
struct Model(BTreeMap<String, [i128; 5]>);

impl Model {
    fn add(
        &mut self,
        owner: &str,
        is_driver: bool,
        (millicores, bytes): (i64, i64),
        span: (i64, i64),
        is_estimated: bool,
    ) {
        const DAY: i64 = 86_400_000_000;
        for day in span.0.div_euclid(DAY)..=span.1.div_euclid(DAY) {
            let micros = i128::from((span.1.min((day + 1) * DAY) - span.0.max(day * DAY)).max(0));
            if micros == 0 || span.1 <= span.0 {
                continue;
            }
            let date = DateTime::UNIX_EPOCH.date_naive() + TimeDelta::days(day);
            let sums = self.0.entry(format!("{date} {owner}")).or_default();
            let (cores, memory) = (micros * i128::from(millicores), micros * i128::from(bytes));
            let at = if is_driver { 0 } else { 2 };
            sums[at] += cores;
            sums[at + 1] += memory;
            if is_estimated {
                sums[4] += cores;
            }
        }
    }

    fn sums(&self) -> BTreeMap<String, [String; 5]> {
        let digits = [9, 6, 9, 6, 9];
        let group = |(group, sums): (&String, &[i128; 5])| {
            (group.clone(), std::array::from_fn(|nth| decimal(sums[nth], digits[nth])))
        };
        self.0.iter().map(group).collect()
    }
}

#[sqlx::test]
async fn sums_equal_those_of_a_model_before_between_and_after_deletions(pool: PgPool) {
    let store = Store::new(pool.clone());
    for seed in 0..6 {
        begin(&pool).await;
        let mut random = SplitMix64::new(seed);
        let mut below = |limit: i64| (random.next() % limit.unsigned_abs()) as i64;
        let begin = time("2020-06-01T00:00:00Z").timestamp_micros();
        let at = |micros: i64| DateTime::from_timestamp_micros(micros).unwrap();
        let mut model = Model::default();
        for number in 0..40 {
            let owner = ["alice", "=bob()", "O'Neil \"x\""][below(3) as usize];
            let start = begin + below(5 * 86_400_000_000);
            let end = start + below(2 * 86_400_000_000);
            let (millicores, bytes) = (below(4000), below(8 * GIB));
            let pod = (at(start), Some(at(end)));
            let id =
                insert(&pool, seed as i64 * 100 + number, &Submission { owner, pod, millicores, bytes, ..PLAIN }).await;
            let driver_is_estimated = below(4) == 0;
            if driver_is_estimated {
                sqlx::query("UPDATE submissions SET pod_ended_at = NULL WHERE id = $1")
                    .bind(&id)
                    .execute(&pool)
                    .await
                    .unwrap();
            }
            model.add(owner, true, (millicores, bytes), (start, end), driver_is_estimated);
            for executor in 0..below(6) {
                let since = start + below(end - start + 1);
                let said = since + below(2 * 86_400_000_000);
                let (millicores, bytes) = (below(4000), below(8 * GIB));
                // Reported, recorded without a report, still said to run, never on a node.
                let kind = below(4);
                sqlx::query(
                    "INSERT INTO executors (submission_id, attempt, executor_id, pod_name, pod_uid, state, pod_since, finished_at,
                         end_estimated, pod_millicores, pod_memory_bytes)
                     VALUES ($1, 1, $2, '', '', CASE WHEN $5 >= 2 THEN 'RUNNING' ELSE 'DELETED' END,
                         CASE WHEN $5 <> 3 THEN $3 END, CASE WHEN $5 < 2 THEN $4 END, $5 = 1, $6, $7)",
                )
                .bind(&id)
                .bind(executor)
                .bind(at(since))
                .bind(at(said))
                .bind(kind)
                .bind(millicores)
                .bind(bytes)
                .execute(&pool)
                .await
                .unwrap();
                let until = match kind {
                    0 => said,
                    1 => said.min(end),
                    _ => end,
                };
                if kind != 3 {
                    model.add(owner, false, (millicores, bytes), (since, until), kind != 0);
                }
            }
        }
        let by = [GroupBy::Day, GroupBy::Owner];
        let expected = model.sums();
        loop {
            let whole = report(&store, &all(), &by).await;
            assert_eq!(sums(&whole), expected, "seed {seed}");
            // Parts of the range add up, too.
            let (mut parts, mut from) = (BTreeMap::new(), day("2020-05-31"));
            while from < day("2020-06-12") {
                let until = from + TimeDelta::days(1 + below(3));
                parts.extend(sums(&report(&store, &UsageFilter { since: from, until, ..all() }, &by).await));
                from = until;
            }
            assert_eq!(parts, expected, "seed {seed}");
            match below(2) {
                0 => drop(store.settle_usage(1 + below(15) as u32, None).await.unwrap()),
                _ => drop(store.delete_ended(DAY, 1 + below(15) as u32, None).await.unwrap()),
            }
            let left: i64 = sqlx::query_scalar("SELECT count(*) FROM submissions").fetch_one(&pool).await.unwrap();
            if left == 0 {
                break;
            }
        }
        assert_eq!(sums(&report(&store, &all(), &by).await), expected, "seed {seed}");
        sqlx::query("DELETE FROM usage_by_day").execute(&pool).await.unwrap();
    }
}
