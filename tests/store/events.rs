//! The numbers of events on a real Postgres: a reader that resumes at a number misses no event, in whatever order
//! writes commit.

use std::time::Duration;

use futures::future::join_all;
use sparkgate::store::{Horizon, Store};
use sqlx::{ConnectOptions, Connection, PgConnection, PgPool};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// Inserts submissions `0..count`, without events.
async fn submissions(pool: &PgPool, count: i32) {
    sqlx::query(
        "INSERT INTO submissions (id, number, state, request, spark_version, spark_user, namespace, names, created_at)
         SELECT 'driver-20260101000000-' || lpad(n::text, 4, '0'), n, 'QUEUED', '{}', '4.3.0', 'tester', 'spark', '{}', now()
         FROM generate_series(0, $1 - 1) AS n",
    )
    .bind(count)
    .execute(pool)
    .await
    .unwrap();
}

async fn write(connection: &mut PgConnection, submission: usize, state: &str) -> i64 {
    sqlx::query_scalar("INSERT INTO submission_events (submission_id, attempt, state) VALUES ($1, 1, $2) RETURNING id")
        .bind(format!("driver-20260101000000-{submission:04}"))
        .bind(state)
        .fetch_one(connection)
        .await
        .unwrap()
}

/// A reader that resumes at its cursor, and keeps what it has read.
#[derive(Default)]
struct Reader {
    cursor: i64,
    seen: Vec<i64>,
}

impl Reader {
    /// Reads, by `column`, the ids of all events above the cursor.
    async fn read(&mut self, pool: &PgPool, column: &str) {
        let page = format!("SELECT {column}, id FROM submission_events WHERE {column} > $1 ORDER BY {column}");
        let page: Vec<(i64, i64)> =
            sqlx::query_as(sqlx::AssertSqlSafe(page)).bind(self.cursor).fetch_all(pool).await.unwrap();
        self.cursor = page.last().map_or(self.cursor, |(cursor, _)| *cursor);
        self.seen.extend(page.into_iter().map(|(_, id)| id));
    }
}

/// A deterministic random number generator.
struct Die(u64);

impl Die {
    fn throw(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides
    }
}

async fn connections(pool: &PgPool, count: usize) -> Vec<PgConnection> {
    let options = pool.connect_options();
    join_all((0..count).map(async |_| options.connect().await.unwrap())).await
}

#[sqlx::test]
async fn a_reader_sees_each_event_once_in_whatever_order_transactions_commit(pool: PgPool) {
    const WRITERS: usize = 8;
    submissions(&pool, WRITERS as i32).await;
    let store = Store::new(pool.clone());
    let (mut by_number, mut by_id) = (Reader::default(), Reader::default());
    let mut writers = connections(&pool, WRITERS).await;
    let mut open: Vec<Option<Vec<i64>>> = vec![None; WRITERS];
    let mut committed = Vec::new();
    let mut die = Die(7);
    for step in 0..400 {
        let writer = die.throw(WRITERS);
        let connection = &mut writers[writer];
        match (open[writer].take(), die.throw(4)) {
            (None, _) => {
                sqlx::query("BEGIN").execute(&mut *connection).await.unwrap();
                open[writer] = Some(vec![write(connection, writer, "PENDING").await]);
            }
            (Some(mut ids), 0) => {
                ids.push(write(connection, writer, "RUNNING").await);
                open[writer] = Some(ids);
            }
            (Some(_), 1) => drop(sqlx::query("ROLLBACK").execute(&mut *connection).await.unwrap()),
            (Some(ids), _) => {
                sqlx::query("COMMIT").execute(&mut *connection).await.unwrap();
                committed.extend(ids);
            }
        }
        if step % 3 == 0 {
            store.number_events(&Horizon::default()).await.unwrap();
        }
        by_number.read(&pool, "sequence").await;
        by_id.read(&pool, "id").await;
    }
    store.number_events(&Horizon::default()).await.unwrap();
    by_number.read(&pool, "sequence").await;
    by_id.read(&pool, "id").await;

    let missed = committed.iter().filter(|id| !by_id.seen.contains(id)).count();
    assert!(missed > 0, "a reader by id misses some events; otherwise these histories show nothing");
    let numbers: Vec<i64> =
        sqlx::query_scalar("SELECT sequence FROM submission_events ORDER BY sequence").fetch_all(&pool).await.unwrap();
    assert_eq!(numbers, (1..=committed.len() as i64).collect::<Vec<_>>(), "no number is missing or comes twice");
    // The events of one submission are in the order of their writes.
    let of_one: Vec<Vec<i64>> =
        sqlx::query_scalar("SELECT array_agg(id ORDER BY sequence) FROM submission_events GROUP BY submission_id")
            .fetch_all(&pool)
            .await
            .unwrap();
    assert!(of_one.iter().all(|ids| ids.is_sorted()), "{of_one:?}");
    by_number.seen.sort_unstable();
    committed.sort_unstable();
    assert_eq!(by_number.seen, committed);
}

#[sqlx::test]
async fn concurrent_numbering_does_not_block_and_gives_no_number_twice(pool: PgPool) {
    const WRITERS: usize = 4;
    const EACH: usize = 150;
    submissions(&pool, WRITERS as i32).await;
    let stores = [Store::new(pool.clone()), Store::new(pool.clone())];
    let write_all = async |mut writer: PgConnection, submission: usize| {
        for _ in 0..EACH {
            write(&mut writer, submission, "PENDING").await;
        }
    };
    let writers = connections(&pool, WRITERS).await;
    let writing = join_all(writers.into_iter().enumerate().map(|(n, writer)| write_all(writer, n)));
    let number = async |store: &Store| {
        let mut numbered = 0;
        while store.numbered(&mut Horizon::default()).await.unwrap().last < (WRITERS * EACH) as i64 {
            numbered += store.number_events(&Horizon::default()).await.unwrap();
        }
        numbered
    };
    let mut reader = Reader::default();
    let mut reading = connections(&pool, 1).await.remove(0);
    let read = async {
        while reader.seen.len() < WRITERS * EACH {
            let page: Vec<i64> =
                sqlx::query_scalar("SELECT sequence FROM submission_events WHERE sequence > $1 ORDER BY sequence")
                    .bind(reader.cursor)
                    .fetch_all(&mut reading)
                    .await
                    .unwrap();
            reader.cursor = page.last().copied().unwrap_or(reader.cursor);
            reader.seen.extend(page);
        }
    };
    let all = async { tokio::join!(writing, number(&stores[0]), number(&stores[1]), read) };
    let all = tokio::time::timeout(Duration::from_secs(30), Box::pin(all)).await;
    let (_, one, two, ()) = all.expect("the reader has missed some");
    assert_eq!(one + two, (WRITERS * EACH) as u64);
    assert_eq!(reader.seen, (1..=(WRITERS * EACH) as i64).collect::<Vec<_>>());
}

/// Waits until another session holds the lock for numbering.
async fn somebody_numbers(pool: &PgPool) {
    let held = "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted AND database =
                    (SELECT oid FROM pg_database WHERE datname = current_database()))";
    let deadline = tokio::time::Instant::now() + Duration::from_secs(8);
    while !sqlx::query_scalar::<_, bool>(held).fetch_one(pool).await.unwrap() {
        assert!(tokio::time::Instant::now() < deadline, "no session holds it");
    }
}

#[sqlx::test]
async fn an_event_that_is_just_being_deleted_gets_no_number(pool: PgPool) {
    submissions(&pool, 2).await;
    let store = Store::new(pool.clone());
    let mut other = connections(&pool, 1).await.remove(0);
    for submission in [0, 1, 0, 1] {
        write(&mut other, submission, "PENDING").await;
    }
    #[expect(clippy::disallowed_methods, reason = "no caller drops the future")]
    let mut deleting = other.begin().await.unwrap();
    sqlx::query("DELETE FROM submissions WHERE number = 0").execute(&mut *deleting).await.unwrap();
    let first = tokio::spawn({
        let store = store.clone();
        async move { store.number_events(&Horizon::default()).await.unwrap() }
    });
    somebody_numbers(&pool).await;
    assert_eq!(store.number_events(&Horizon::default()).await.unwrap(), 0, "the second doesn't block");
    assert!(store.numbered(&mut Horizon::default()).await.unwrap().more);
    deleting.commit().await.unwrap();
    assert_eq!(first.await.unwrap(), 2);
    let numbers: Vec<i64> =
        sqlx::query_scalar("SELECT sequence FROM submission_events ORDER BY sequence").fetch_all(&pool).await.unwrap();
    assert_eq!(numbers, [1, 2]);
}

#[sqlx::test]
async fn a_number_does_not_come_again_after_its_event_was_deleted(pool: PgPool) {
    submissions(&pool, 2).await;
    let store = Store::new(pool.clone());
    let mut connection = connections(&pool, 1).await.remove(0);
    for state in ["QUEUED", "KILLED"] {
        write(&mut connection, 0, state).await;
    }
    assert_eq!(store.number_events(&Horizon::default()).await.unwrap(), 2);
    let ended = "UPDATE submissions SET state = 'KILLED', finished_at = now() - interval '2 days' WHERE number = 0";
    sqlx::query(ended).execute(&pool).await.unwrap();
    assert_eq!(store.delete_ended(DAY, 10, None).await.unwrap(), 1);
    write(&mut connection, 1, "QUEUED").await;
    store.number_events(&Horizon::default()).await.unwrap();
    let changes = store.events(0, 10).await.unwrap();
    assert_eq!(changes.iter().map(|change| change.sequence).collect::<Vec<_>>(), [Some(3)]);
}

#[sqlx::test]
async fn changes_of_one_submission_are_paged_and_know_what_was_before(pool: PgPool) {
    submissions(&pool, 2).await;
    let store = Store::new(pool.clone());
    let mut connection = connections(&pool, 1).await.remove(0);
    for (submission, state) in [(0, "QUEUED"), (1, "QUEUED"), (0, "LAUNCHING"), (0, "PENDING")] {
        write(&mut connection, submission, state).await;
    }
    store.number_events(&Horizon::default()).await.unwrap();
    write(&mut connection, 0, "RUNNING").await;
    let id = "driver-20260101000000-0000".parse().unwrap();
    let changes = store.all().submission_events(&id, 1, 10).await.unwrap().unwrap();
    let changes: Vec<_> = changes.iter().map(|it| (it.sequence, it.state.as_str(), it.previous.as_deref())).collect();
    let expected = [
        (Some(3), "LAUNCHING", Some("QUEUED")),
        (Some(4), "PENDING", Some("LAUNCHING")),
        (None, "RUNNING", Some("PENDING")),
    ];
    assert_eq!(changes, expected);
    assert_eq!(store.all().submission_events(&id, 0, 1).await.unwrap().unwrap()[0].previous, None);
    assert_eq!(
        store.all().submission_events(&"driver-20260101000000-0009".parse().unwrap(), 0, 1).await.unwrap(),
        None
    );
}

/// Sequences are not part of logical replication, and a restored dump may lack their last steps.
#[sqlx::test]
async fn events_stay_in_order_when_the_sequence_of_their_ids_goes_back(pool: PgPool) {
    submissions(&pool, 1).await;
    let (store, mut horizon) = (Store::new(pool.clone()), Horizon::default());
    let mut connection = connections(&pool, 1).await.remove(0);
    let move_ids = async |to: i64| {
        let moved = sqlx::query("SELECT setval(pg_get_serial_sequence('submission_events', 'id'), $1)").bind(to);
        moved.execute(&pool).await.unwrap();
    };
    move_ids(1000).await;
    for state in ["QUEUED", "LAUNCHING"] {
        write(&mut connection, 0, state).await;
    }
    let settled = async {
        while !format!("{horizon:?}").contains("after: 1002") {
            publish(&store, &mut horizon).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), settled).await.unwrap();

    move_ids(1).await;
    write(&mut connection, 0, "PENDING").await;
    for _ in 0..2 {
        publish(&store, &mut horizon).await;
    }
    write(&mut connection, 0, "RUNNING").await;
    let id = "driver-20260101000000-0000".parse().unwrap();
    let events = store.all().submission_events(&id, 0, 10).await.unwrap().unwrap();
    let events: Vec<_> = events.iter().map(|it| (it.sequence, it.state.as_str(), it.previous.as_deref())).collect();
    let expected = [
        (Some(1), "QUEUED", None),
        (Some(2), "LAUNCHING", Some("QUEUED")),
        (Some(3), "PENDING", Some("LAUNCHING")),
        (None, "RUNNING", Some("PENDING")),
    ];
    assert_eq!(events, expected);

    store.move_event_ids().await.unwrap();
    assert_eq!(write(&mut connection, 0, "FINISHED").await, 1003);
    store.move_event_ids().await.unwrap();
    assert_eq!(write(&mut connection, 0, "FINISHED").await, 1004, "it isn't behind any more");
}

/// Otherwise the next event of its submission could be numbered before it.
#[sqlx::test]
async fn an_event_that_a_slow_transaction_commits_late_gets_the_next_number(pool: PgPool) {
    submissions(&pool, 10).await;
    let (store, mut horizon) = (Store::new(pool.clone()), Horizon::default());
    let mut slow = connections(&pool, 1).await.remove(0);
    sqlx::query("BEGIN").execute(&mut slow).await.unwrap();
    let left = write(&mut slow, 0, "QUEUED").await;
    for _ in 0..5 {
        many_events(&pool, 100).await;
        publish(&store, &mut horizon).await;
    }
    sqlx::query("COMMIT").execute(&mut slow).await.unwrap();
    let next = write(&mut slow, 0, "LAUNCHING").await;
    publish(&store, &mut horizon).await;
    let number = "SELECT sequence FROM submission_events WHERE id = $1";
    for (id, expected) in [(left, 501), (next, 502)] {
        let number: i64 = sqlx::query_scalar(number).bind(id).fetch_one(&pool).await.unwrap();
        assert_eq!(number, expected);
    }
}

#[sqlx::test]
async fn events_below_the_horizon_are_not_read_again(pool: PgPool) {
    submissions(&pool, 10).await;
    let (store, mut horizon) = (Store::new(pool.clone()), Horizon::default());
    many_events(&pool, 100).await;
    let moved = async {
        // Transactions of other databases delay the horizon, too.
        while !format!("{horizon:?}").contains("after: 100") {
            publish(&store, &mut horizon).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), moved).await.unwrap();
    // Only the horizon hides it.
    sqlx::query("UPDATE submission_events SET sequence = NULL WHERE sequence = 50").execute(&pool).await.unwrap();
    assert!(!store.numbered(&mut horizon).await.unwrap().more);
    assert!(store.numbered(&mut Horizon::default()).await.unwrap().more);
}

/// Runs one round of a publisher.
async fn publish(store: &Store, horizon: &mut Horizon) {
    if store.numbered(horizon).await.unwrap().more {
        store.number_events(horizon).await.unwrap();
    }
    store.numbered(horizon).await.unwrap();
}

async fn many_events(pool: &PgPool, count: i32) {
    sqlx::query(
        "INSERT INTO submission_events (submission_id, attempt, state)
         SELECT 'driver-20260101000000-000' || n % 10, 1, 'PENDING' FROM generate_series(1, $1) AS n",
    )
    .bind(count)
    .execute(pool)
    .await
    .unwrap();
}

/// A table of any size: the number of reads doesn't grow with it.
#[sqlx::test]
async fn the_next_events_are_found_by_an_index(pool: PgPool) {
    submissions(&pool, 10).await;
    many_events(&pool, 20_000).await;
    let store = Store::new(pool.clone());
    while store.number_events(&Horizon::default()).await.unwrap() > 0 {}
    sqlx::query("VACUUM ANALYZE submission_events").execute(&pool).await.unwrap();
    for (statement, index) in [
        (
            "SELECT id FROM submission_events WHERE sequence IS NULL ORDER BY id LIMIT 1000",
            "submission_events_unnumbered",
        ),
        (
            "SELECT * FROM submission_events WHERE sequence > 19000 ORDER BY sequence LIMIT 1000",
            "submission_events_sequence",
        ),
    ] {
        let plan: Vec<String> =
            sqlx::query_scalar(sqlx::AssertSqlSafe(format!("EXPLAIN {statement}"))).fetch_all(&pool).await.unwrap();
        assert!(plan.join("\n").contains(index), "{plan:?}");
    }
}
