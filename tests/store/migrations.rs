//! Migrations that are interrupted, and repeated while the previous release runs.

use std::time::Duration;

use futures::{StreamExt, stream};
use sparkgate::store::{ConnectError, DatabaseSettings, Store};
use sparkgate_testing::wait::until;
use sqlx::{ConnectOptions, Connection, PgConnection, PgPool, postgres::PgConnectOptions};
use tokio::{task::JoinHandle, time::sleep};
use uuid::Uuid;

/// How many places are tried at once.
const AT_ONCE: usize = 4;

/// Creates the table that `sparkgate` creates in an empty database, so that a trigger can be added to it.
const TABLE: &str = "CREATE TABLE _sqlx_migrations (version BIGINT PRIMARY KEY, description TEXT NOT NULL,
    installed_on TIMESTAMPTZ NOT NULL DEFAULT now(), success BOOLEAN NOT NULL, checksum BYTEA NOT NULL,
    execution_time BIGINT NOT NULL)";

/// Counts DDL statements and recorded migrations as places, and terminates the backend at one of them, or at the first one after a
/// migration. The sequence keeps its count although the transaction is rolled back.
const INTERRUPT: &str = "
    CREATE SCHEMA interrupt;
    CREATE SEQUENCE interrupt.seen;
    CREATE TABLE interrupt.at (place bigint, finished bigint);
    INSERT INTO interrupt.at DEFAULT VALUES;
    CREATE TABLE interrupt.ends (version bigint, place bigint);
    CREATE FUNCTION interrupt.here(last bigint) RETURNS void LANGUAGE plpgsql AS $$
    BEGIN
        IF (SELECT nextval('interrupt.seen') = place OR last >= finished FROM interrupt.at) THEN
            PERFORM pg_terminate_backend(pg_backend_pid());
            PERFORM pg_sleep(60);
        END IF;
    END
    $$;
    CREATE FUNCTION interrupt.defining() RETURNS event_trigger LANGUAGE plpgsql AS
        'BEGIN PERFORM interrupt.here(max(version)) FROM public._sqlx_migrations; END';
    CREATE FUNCTION interrupt.recording() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        PERFORM interrupt.here(max(version)) FROM public._sqlx_migrations WHERE version < NEW.version;
        IF TG_WHEN = 'AFTER' THEN
            INSERT INTO interrupt.ends SELECT NEW.version, last_value FROM interrupt.seen;
        END IF;
        RETURN NEW;
    END
    $$;
    CREATE TRIGGER before_record BEFORE INSERT ON _sqlx_migrations
        FOR EACH ROW EXECUTE FUNCTION interrupt.recording();
    CREATE TRIGGER after_record AFTER INSERT ON _sqlx_migrations
        FOR EACH ROW EXECUTE FUNCTION interrupt.recording();
    CREATE EVENT TRIGGER before_definition ON ddl_command_start
        WHEN TAG IN ('CREATE TABLE', 'ALTER TABLE', 'CREATE INDEX', 'CREATE SEQUENCE', 'CREATE FUNCTION', 'CREATE TRIGGER')
        EXECUTE FUNCTION interrupt.defining()";

/// Describes the whole schema as text.
const SCHEMA: &str = "
    SELECT concat_ws(' ', 'column', a.attrelid::regclass, attnum, attname, format_type(atttypid, atttypmod), attnotnull,
        attidentity, attstorage, attcompression, attcollation::regcollation, pg_get_expr(adbin, adrelid)) AS word
    FROM pg_attribute a JOIN pg_class c ON c.oid = attrelid LEFT JOIN pg_attrdef d ON adrelid = attrelid AND adnum = attnum
    WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND attnum > 0
    UNION ALL
    SELECT concat_ws(' ', 'relation', relname, relkind, relpersistence, reloptions)
    FROM pg_class WHERE relnamespace = 'public'::regnamespace
    UNION ALL
    SELECT concat_ws(' ', 'index', pg_get_indexdef(indexrelid), indisvalid, indisready, indislive, indisprimary)
    FROM pg_index JOIN pg_class c ON c.oid = indexrelid WHERE relnamespace = 'public'::regnamespace
    UNION ALL
    SELECT concat_ws(' ', 'constraint', conrelid::regclass, conname, pg_get_constraintdef(oid), convalidated)
    FROM pg_constraint WHERE connamespace = 'public'::regnamespace
    UNION ALL
    SELECT concat_ws(' ', 'function', pg_get_functiondef(oid)) FROM pg_proc WHERE pronamespace = 'public'::regnamespace
    UNION ALL
    SELECT concat_ws(' ', 'trigger', pg_get_triggerdef(oid), tgenabled) FROM pg_trigger WHERE NOT tgisinternal
    UNION ALL
    SELECT concat_ws(' ', 'migration', version, success) FROM _sqlx_migrations
    ORDER BY word";

/// The statements of a replica of the previous release, which runs whether its tables exist yet or not.
const OLD_REPLICA: [&str; 4] = [
    "INSERT INTO submissions (id, number, state, request, spark_version, spark_user, namespace, names, created_at)
     VALUES ('driver-20260101000000-0001', 1, 'QUEUED', '{}', '4.3.0', 'tester', 'spark', '{}', now())",
    "INSERT INTO submission_events (submission_id, attempt, state) SELECT id, 1, state FROM submissions",
    "UPDATE submissions SET state = 'RUNNING'",
    "DELETE FROM submissions",
];

/// The databases of one test on the server that all tests share.
struct Server {
    pool: PgPool,
    options: PgConnectOptions,
    prefix: String,
}

impl Server {
    fn of(pool: &PgPool) -> Self {
        let prefix = format!("sparkgate_{}", Uuid::new_v4().simple());
        Self { pool: pool.clone(), options: pool.connect_options().as_ref().clone(), prefix }
    }

    fn name(&self, suffix: &str) -> String {
        format!("{}_{suffix}", self.prefix)
    }

    async fn execute(&self, statement: String) {
        sqlx::raw_sql(sqlx::AssertSqlSafe(statement)).execute(&self.pool).await.unwrap();
    }

    async fn create(&self, suffix: &str, template: &str) -> PgConnectOptions {
        let name = self.name(suffix);
        self.execute(format!("CREATE DATABASE \"{name}\" TEMPLATE \"{template}\"")).await;
        self.options.clone().database(&name)
    }

    async fn drop(&self, suffix: &str) {
        self.execute(format!("DROP DATABASE \"{}\" WITH (FORCE)", self.name(suffix))).await;
    }
}

async fn migrate(options: &PgConnectOptions) -> Result<(), ConnectError> {
    let url = options.to_url_lossy().to_string();
    Store::connect(&DatabaseSettings { url, max_connections: 4 }).await?.close().await;
    Ok(())
}

async fn connection(options: &PgConnectOptions) -> PgConnection {
    options.connect().await.unwrap()
}

async fn execute(options: &PgConnectOptions, statement: &str) {
    let mut connection = connection(options).await;
    sqlx::raw_sql(sqlx::AssertSqlSafe(statement)).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

async fn schema(options: &PgConnectOptions) -> Vec<String> {
    let mut connection = connection(options).await;
    let words = sqlx::query_scalar(SCHEMA).fetch_all(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    words
}

/// Runs such a replica until it is aborted.
fn old_replica(options: PgConnectOptions) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut connection = connection(&options).await;
        for statement in OLD_REPLICA.iter().cycle() {
            let _ = sqlx::raw_sql(*statement).execute(&mut connection).await;
            // Other tests run on this machine.
            sleep(Duration::from_millis(5)).await;
        }
    })
}

/// Lets the next start be interrupted at this place from now on.
async fn interrupt_at(options: &PgConnectOptions, place: i64) {
    let statement = "UPDATE interrupt.at SET finished = NULL, place =";
    execute(options, &format!("SELECT setval('interrupt.seen', 1, false); {statement} {place}")).await;
}

/// Starts until this migration is finished; the next one is interrupted at its first place.
async fn finish(options: &PgConnectOptions, version: i64) {
    execute(options, &format!("UPDATE interrupt.at SET place = NULL, finished = {version}")).await;
    let recorded = "SELECT EXISTS (SELECT FROM _sqlx_migrations WHERE version = $1)";
    let mut eye = connection(options).await;
    while !sqlx::query_scalar::<_, bool>(recorded).bind(version).fetch_one(&mut eye).await.unwrap() {
        // The concurrent replica may lock a table for longer than a migration waits.
        if let Err(error) = migrate(options).await {
            assert!(error.may_pass(), "{version}: {error:?}");
        }
    }
    eye.close().await.unwrap();
}

/// Each place has a database of its own, which is a copy of the one before its migration: the time grows with the number of places.
#[sqlx::test(migrations = false)]
async fn an_interrupted_migration_is_completed_by_the_next_start(pool: PgPool) {
    let server = Server::of(&pool);
    let whole = server.create("whole", "template0").await;
    execute(&whole, TABLE).await;
    execute(&whole, INTERRUPT).await;
    let mut before = "before".to_owned();
    server.create(&before, &server.name("whole")).await;
    migrate(&whole).await.unwrap();
    let mut connection = connection(&whole).await;
    let ends: Vec<(i64, i64)> =
        sqlx::query_as("SELECT * FROM interrupt.ends ORDER BY place").fetch_all(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    assert_eq!(ends.len(), sqlx::migrate!().iter().count());
    assert!(ends.last().unwrap().1 > 60, "places to interrupt it at: {ends:?}");

    let mut begin = 0;
    let mut expected = Vec::new();
    for (version, end) in ends {
        let after = format!("after_{version}");
        let uninterrupted = server.create(&after, &server.name(&before)).await;
        finish(&uninterrupted, version).await;
        expected = schema(&uninterrupted).await;
        let (server, before_it, expected) = (&server, &before, &expected);
        stream::iter(1..=end - begin)
            .for_each_concurrent(AT_ONCE, async |place| {
                let name = format!("at_{place}");
                let one = server.create(&name, &server.name(before_it)).await;
                interrupt_at(&one, place).await;
                let beside = old_replica(one.clone());
                let error = migrate(&one).await.unwrap_err();
                assert!(error.may_pass(), "place {place} of {version}: {error:?}");
                finish(&one, version).await;
                beside.abort();
                assert_eq!(schema(&one).await, *expected, "place {place} of {version}");
                server.drop(&name).await;
            })
            .await;
        server.drop(&before).await;
        (before, begin) = (after, end);
    }
    assert_eq!(schema(&whole).await, expected);
    server.drop(&before).await;
    server.drop("whole").await;
}

#[sqlx::test(migrations = false)]
async fn an_index_that_was_left_half_done_is_built_anew(pool: PgPool) {
    let server = Server::of(&pool);
    let whole = server.create("whole", "template0").await;
    migrate(&whole).await.unwrap();
    let expected = schema(&whole).await;
    let migrator = sqlx::migrate!();
    for migration in migrator.iter().filter(|migration| migration.no_tx) {
        let one = server.create("one", "template0").await;
        let mut beside = connection(&one).await;
        migrator.run_to(migration.version - 1, &mut beside).await.unwrap();
        // An old replica is in the middle of a write to both tables: building the index waits for it.
        let lock = "BEGIN; LOCK submissions, submission_events IN ROW EXCLUSIVE MODE";
        sqlx::raw_sql(lock).execute(&mut beside).await.unwrap();
        let migrating = tokio::spawn({
            let one = one.clone();
            async move { migrate(&one).await }
        });
        let mut other = connection(&one).await;
        let kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()
            AND wait_event_type = 'Lock' AND query LIKE '%CREATE%INDEX CONCURRENTLY%'";
        until("the migration waits for a lock", async || {
            sqlx::query(kill).fetch_all(&mut other).await.unwrap().len() == 1
        })
        .await;
        assert!(migrating.await.unwrap().unwrap_err().may_pass());
        let invalid = "SELECT count(*) FROM pg_index WHERE NOT indisvalid";
        let invalid: i64 = sqlx::query_scalar(invalid).fetch_one(&mut other).await.unwrap();
        assert_eq!(invalid, 1, "{}", migration.description);

        sqlx::raw_sql("COMMIT").execute(&mut beside).await.unwrap();
        migrate(&one).await.unwrap();
        assert_eq!(schema(&one).await, expected, "{}", migration.description);
        server.drop("one").await;
    }
    server.drop("whole").await;
}

/// How long a request waits for the database.
const PATIENT: &str = "SET statement_timeout = '2s'";

/// A backup reads a table for hours. A replica of the previous release accepts submissions meanwhile.
#[sqlx::test(migrations = false)]
async fn a_migration_waits_for_a_table_for_a_moment_even_if_an_index_is_to_be_built_too(pool: PgPool) {
    let server = Server::of(&pool);
    let one = server.create("one", "template0").await;
    let mut backup = connection(&one).await;
    // The next one adds columns, and a later one builds an index.
    sqlx::migrate!().run_to(16, &mut backup).await.unwrap();
    let snapshot = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM submissions LIMIT 1";
    sqlx::raw_sql(snapshot).execute(&mut backup).await.unwrap();
    let migrating = tokio::spawn({
        let one = one.clone();
        async move { migrate(&one).await }
    });
    let (mut replica, mut eye) = (connection(&one).await, connection(&one).await);
    sqlx::raw_sql(PATIENT).execute(&mut replica).await.unwrap();
    let waits =
        "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
        AND application_name = 'sparkgate')";
    let (mut tries, mut waited, mut accepted) = (0, false, 0);
    until("the migration tries again", async || {
        let now: bool = sqlx::query_scalar(waits).fetch_one(&mut eye).await.unwrap();
        tries += u32::from(waited && !now);
        waited = now;
        for statement in [OLD_REPLICA[0], OLD_REPLICA[3]] {
            sqlx::raw_sql(statement).execute(&mut replica).await.unwrap_or_else(|error| panic!("try {tries}: {error}"));
            accepted += 1;
        }
        tries >= 3
    })
    .await;
    assert!(!migrating.is_finished() && accepted > 6, "{accepted}");
    sqlx::raw_sql("COMMIT").execute(&mut backup).await.unwrap();
    migrating.await.unwrap().unwrap();
    drop((backup, replica, eye));
    server.drop("one").await;
}

const OID: &str = "SELECT indexrelid::oid::int8 FROM pg_index WHERE indexrelid = to_regclass('submissions_of_livy')";

#[sqlx::test(migrations = false)]
async fn an_index_that_an_ended_process_was_building_is_finished_and_not_built_again(pool: PgPool) {
    let server = Server::of(&pool);
    let one = server.create("one", "template0").await;
    let mut beside = connection(&one).await;
    sqlx::migrate!().run_to(32, &mut beside).await.unwrap();
    sqlx::raw_sql("BEGIN; LOCK submissions IN ROW EXCLUSIVE MODE").execute(&mut beside).await.unwrap();
    let start = || {
        let one = one.clone();
        tokio::spawn(async move { migrate(&one).await })
    };
    let first = start();
    let mut eye = connection(&one).await;
    until("the migration has its lock", async || {
        sqlx::query_scalar::<_, i64>(OID).fetch_optional(&mut eye).await.unwrap().is_some()
    })
    .await;
    let oid: i64 = sqlx::query_scalar(OID).fetch_one(&mut eye).await.unwrap();
    // SIGTERM.
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    let next = start();
    // It waits for the backend of the first, which waits for the transaction.
    let asks = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database()
        AND query LIKE 'SELECT pg_try_advisory_lock%')";
    until("the next one waits for the first", async || sqlx::query_scalar(asks).fetch_one(&mut eye).await.unwrap())
        .await;
    assert!(!next.is_finished());
    sqlx::raw_sql("COMMIT").execute(&mut beside).await.unwrap();
    next.await.unwrap().unwrap();
    assert_eq!(sqlx::query_scalar::<_, i64>(OID).fetch_one(&mut eye).await.unwrap(), oid);
    let count = "SELECT count(*) FROM _sqlx_migrations WHERE version = 33 AND success";
    assert_eq!(sqlx::query_scalar::<_, i64>(count).fetch_one(&mut eye).await.unwrap(), 1);
    drop((beside, eye));
    server.drop("one").await;
}

#[sqlx::test(migrations = false)]
async fn another_index_of_the_same_name_is_replaced(pool: PgPool) {
    let server = Server::of(&pool);
    let whole = server.create("whole", "template0").await;
    migrate(&whole).await.unwrap();
    let expected = schema(&whole).await;
    for other in ["(number)", "(number) WHERE wire = 'livy'", "(id) WHERE wire = 'livy' AND livy_deleted_at IS NULL"] {
        let one = server.create("one", "template0").await;
        let mut connection = connection(&one).await;
        sqlx::migrate!().run_to(32, &mut connection).await.unwrap();
        connection.close().await.unwrap();
        execute(&one, &format!("CREATE INDEX submissions_of_livy ON submissions {other}")).await;
        migrate(&one).await.unwrap();
        assert_eq!(schema(&one).await, expected, "{other}");
        server.drop("one").await;
    }
    server.drop("whole").await;
}
