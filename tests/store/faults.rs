//! The store while others lock its rows, backends are killed, and the server accepts no writes.

use std::{
    collections::{BTreeSet, HashSet},
    time::Duration,
};

use sparkgate::{
    store::{Accepted, DatabaseSettings, Error, Horizon, NewSubmission, Scope, Store, replica},
    submission::{Outcome, Placement, State, StateChange},
};
use sqlx::{ConnectOptions, PgPool, postgres::PgPoolOptions};
use tokio::{io::AsyncWriteExt, net::TcpListener};
use uuid::Uuid;

use crate::support::{LEASE, accept, claim_one, connect, draw, executor, new, session, state};

#[sqlx::test]
async fn the_server_cancels_a_statement_that_waits_for_a_locked_row(pool: PgPool) {
    let store = connect(&pool).await;
    let (locked, free) = (accept(&store, "a").await, accept(&store, "b").await);
    let mut other = pool.acquire().await.unwrap();
    lock(&mut other, locked.as_str()).await;
    let error = store.all().request_kill(&locked, &Scope::installation(), None).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }) && error.is_contention(), "{error:?}");
    let error = store.advance(&locked, 1, None, &StateChange::Running, &Placement::default()).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }) && error.is_contention(), "{error:?}");
    assert!(
        store.all().request_kill(&free, &Scope::installation(), None).await.unwrap().live,
        "other rows aren't affected"
    );
    let waiting =
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    assert_eq!(sqlx::query_scalar::<_, i64>(waiting).fetch_one(&pool).await.unwrap(), 0, "no backend still waits");

    sqlx::raw_sql("ROLLBACK").execute(&mut *other).await.unwrap();
    assert_eq!(state(&store, &locked).await, State::Queued);
    assert!(store.all().request_kill(&locked, &Scope::installation(), None).await.unwrap().live);
    store.close().await;
    let error = store.all().request_kill(&free, &Scope::installation(), None).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }) && !error.is_contention(), "{error:?}");
}

#[sqlx::test]
async fn a_locked_row_delays_only_its_own_launch(pool: PgPool) {
    let store = connect(&pool).await;
    let holder = session(&store).await;
    let (locked, free) = (accept(&store, "a").await, accept(&store, "b").await);
    let claimed = store.claim(holder, 2, &[], &[]).await.unwrap();
    let [first, second] = &claimed[..] else { panic!("{claimed:?}") };
    let of = |uid: &str| Placement { pod_uid: Some(uid.to_owned()), ..Placement::default() };
    let mut other = pool.acquire().await.unwrap();
    lock(&mut other, locked.as_str()).await;
    // The two share their statements.
    let (held_up, goes_on) = tokio::join!(store.record_pod(&locked, 1, first.epoch, "u"), async {
        assert!(store.record_pod(&free, 1, second.epoch, "v").await.unwrap());
        store.advance(&free, 1, Some(second.epoch), &StateChange::Launched, &of("v")).await
    });
    assert!(goes_on.unwrap());
    let error = held_up.unwrap_err();
    assert!(error.is_contention(), "{error:?}");

    // It doesn't delay the clean-up of others either.
    let ended = "UPDATE submissions SET state = 'FAILED', finished_at = now() WHERE id = $1";
    sqlx::query(ended).bind(free.as_str()).execute(&pool).await.unwrap();
    store.note_pods_deleted(&[(locked.as_str(), 1), (free.as_str(), 1)]).await.unwrap();
    assert_eq!(store.ended_pods(Duration::ZERO, 10, None).await.unwrap(), []);
    sqlx::raw_sql("ROLLBACK").execute(&mut *other).await.unwrap();
    assert!(store.record_pod(&locked, 1, first.epoch, "u").await.unwrap());
    assert!(store.advance(&locked, 1, Some(first.epoch), &StateChange::Launched, &of("u")).await.unwrap());
    assert_eq!(state(&store, &locked).await, State::Pending);
}

/// Every pool has both limits, and they are below the caller's ten seconds.
#[sqlx::test]
async fn every_connection_has_the_limits_of_its_pool(pool: PgPool) {
    // Settings of a role or a database have no effect.
    let store = connect(&pool).await;
    let session = session(&store).await;
    accept(&store, "a").await;
    claim_one(&store, session).await;
    store.ping().await.unwrap();
    // The settings of a backend can't be read from another session, but the cancelled wait for a lock can, for each
    // pool.
    let mut other = pool.acquire().await.unwrap();
    let tables = "BEGIN; LOCK submissions, leases, manifests, submission_events, event_sequence";
    sqlx::raw_sql(tables).execute(&mut *other).await.unwrap();
    let drawn = draw(&store).await;
    let own = [replica(session)];
    let (request, accepted, worker, lease) = tokio::join!(
        store.last_number(),
        store.accept(new(drawn, "b")),
        store.live(),
        store.renew_leases(session, &own, LEASE)
    );
    for error in [request.unwrap_err(), accepted.unwrap_err(), worker.unwrap_err(), lease.unwrap_err()] {
        assert!(error.is_contention(), "{error:?}");
    }
    sqlx::raw_sql("ROLLBACK").execute(&mut *other).await.unwrap();
    assert_eq!(store.live().await.unwrap(), []);
}

/// A group of submissions that share a statement: an idempotency key that others hold affects its own submission only.
#[sqlx::test]
async fn a_locked_idempotency_key_fails_only_its_own_submission(pool: PgPool) {
    let store = connect(&pool).await;
    let earlier = accept(&store, "a").await;
    let mut other = pool.acquire().await.unwrap();
    // An insert of this key waits until the transaction ends.
    let held = "BEGIN; UPDATE submissions SET idempotency_key = 'held'";
    sqlx::raw_sql(held).execute(&mut *other).await.unwrap();
    let mut group = Vec::new();
    for key in 0..20 {
        group.push((draw(&store).await, if key == 7 { "held".to_owned() } else { format!("free {key}") }));
    }
    let accepting = group.into_iter().map(|(drawn, key)| {
        let mut keyed = new(drawn, "b");
        keyed.options.idempotency_key = Some(key);
        store.accept(keyed)
    });
    for (key, accepted) in futures::future::join_all(accepting).await.into_iter().enumerate() {
        match accepted {
            Ok(Accepted::New(_)) => assert_ne!(key, 7),
            Err(error) => assert!(key == 7 && error.is_contention(), "{key}: {error:?}"),
            other => panic!("{key}: {other:?}"),
        }
    }
    sqlx::raw_sql("ROLLBACK").execute(&mut *other).await.unwrap();
    assert_eq!(state(&store, &earlier).await, State::Queued);
}

/// The connections for leases: a row that others lock affects its own lease only.
#[sqlx::test]
async fn a_locked_lease_row_loses_only_its_own_lease(pool: PgPool) {
    let store = connect(&pool).await;
    let session = session(&store).await;
    for name in ["watch/a", "watch/b"] {
        assert!(store.acquire_lease(name, session, LEASE).await.unwrap());
    }
    let mut other = pool.acquire().await.unwrap();
    sqlx::raw_sql("BEGIN; SELECT FROM leases WHERE name = 'watch/a' FOR UPDATE").execute(&mut *other).await.unwrap();
    let names = [replica(session), "watch/a".to_owned(), "watch/b".to_owned()];
    let renewed = || async { store.renew_leases(session, &names, LEASE).await.unwrap().names };
    assert_eq!(renewed().await, HashSet::from([replica(session), "watch/b".to_owned()]));
    assert!(!store.acquire_lease("watch/a", Uuid::new_v4(), LEASE).await.unwrap(), "nor does this wait");
    sqlx::raw_sql("ROLLBACK").execute(&mut *other).await.unwrap();
    assert_eq!(renewed().await.len(), 3);
}

/// The connections for requests: a dashboard whose lists hang leaves some to other requests.
#[sqlx::test]
async fn lists_that_hang_leave_connections_to_other_requests(pool: PgPool) {
    let store = connect(&pool).await;
    let id = accept(&store, "a").await;
    // Waits until all connections are open, however long that takes here.
    let all = store.all();
    while futures::future::join_all((0..4).map(|_| all.find(&id))).await.iter().any(Result::is_err) {}
    let mut other = pool.acquire().await.unwrap();
    sqlx::raw_sql("BEGIN; LOCK executors").execute(&mut *other).await.unwrap();
    let hanging: Vec<_> = (0..16)
        .map(|_| {
            let (store, id) = (store.clone(), id.clone());
            tokio::spawn(async move { while store.all().executors(&id, None, 10).await.is_err() {} })
        })
        .collect();
    let waiting =
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    while sqlx::query_scalar::<_, i64>(waiting).fetch_one(&pool).await.unwrap() < 2 {}
    for _ in 0..10 {
        assert!(store.all().find(&id).await.unwrap().is_some());
        store.ping().await.unwrap();
    }
    assert!(store.all().request_kill(&id, &Scope::installation(), None).await.unwrap().live);
    sqlx::raw_sql("ROLLBACK").execute(&mut *other).await.unwrap();
    for list in hanging {
        list.await.unwrap();
    }
}

/// The same connections: clients that kill submissions whose rows others hold leave them to other requests.
#[sqlx::test]
async fn kills_of_locked_rows_leave_connections_to_other_requests(pool: PgPool) {
    let store = connect(&pool).await;
    let (locked, free) = (accept(&store, "a").await, accept(&store, "b").await);
    let all = store.all();
    while futures::future::join_all((0..4).map(|_| all.find(&free))).await.iter().any(Result::is_err) {}
    let mut other = pool.acquire().await.unwrap();
    lock(&mut other, locked.as_str()).await;
    let killing: Vec<_> = (0..16)
        .map(|_| {
            let (store, locked) = (store.clone(), locked.clone());
            tokio::spawn(async move {
                while store.all().request_kill(&locked, &Scope::installation(), None).await.is_err() {}
            })
        })
        .collect();
    let tried =
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%WITH found AS%'
                 AND query NOT LIKE '%pg_stat_activity%'";
    while sqlx::query_scalar::<_, i64>(tried).fetch_one(&pool).await.unwrap() == 0 {}
    for _ in 0..10 {
        assert!(store.all().find(&free).await.unwrap().is_some());
    }
    assert!(store.all().request_kill(&free, &Scope::installation(), None).await.unwrap().live);
    sqlx::raw_sql("ROLLBACK").execute(&mut *other).await.unwrap();
    for kill in killing {
        kill.await.unwrap();
    }
    assert_eq!(state(&store, &locked).await, State::Killed);
}

#[sqlx::test]
async fn a_kill_of_all_leaves_out_a_locked_row_only(pool: PgPool) {
    let store = connect(&pool).await;
    let (locked, free) = (accept(&store, "a").await, accept(&store, "b").await);
    let mut other = pool.acquire().await.unwrap();
    lock(&mut other, locked.as_str()).await;
    let error = store.all().request_kill_of_all(None).await.unwrap_err();
    assert!(matches!(error, Error::InDoubt { .. }), "{error:?}");
    assert_eq!((state(&store, &free).await, state(&store, &locked).await), (State::Killed, State::Queued));
    let error = store.all().request_kill_of_all(None).await.unwrap_err();
    assert!(error.is_contention(), "nothing was killed: {error:?}");
    sqlx::raw_sql("ROLLBACK").execute(&mut *other).await.unwrap();
    assert_eq!(store.all().request_kill_of_all(None).await.unwrap(), 1);
    assert_eq!(state(&store, &locked).await, State::Killed);
}

async fn lock(connection: &mut sqlx::PgConnection, id: &str) {
    sqlx::raw_sql("BEGIN").execute(&mut *connection).await.unwrap();
    let row = sqlx::query("SELECT FROM submissions WHERE id = $1 FOR UPDATE").bind(id);
    assert_eq!(row.fetch_all(connection).await.unwrap().len(), 1);
}

/// At the `place`-th row that is written a fault occurs: the backend ends, or the disk is full. The sequence keeps its
/// count although the transaction is rolled back.
const FAULT: &str = "
    CREATE SCHEMA fault;
    CREATE SEQUENCE fault.seen;
    CREATE TABLE fault.at (place bigint, disk_full boolean);
    INSERT INTO fault.at VALUES (0, false);
    CREATE FUNCTION fault.here() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF nextval('fault.seen') = (SELECT place FROM fault.at) THEN
            IF (SELECT disk_full FROM fault.at) THEN
                RAISE 'no space left on device' USING ERRCODE = '53100';
            END IF;
            PERFORM pg_terminate_backend(pg_backend_pid());
            PERFORM pg_sleep(60);
        END IF;
        RETURN CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
    END
    $$";
const TABLES: [&str; 9] = [
    "submissions",
    "submission_events",
    "manifests",
    "leases",
    "executors",
    "attempts",
    "kept_logs",
    "event_sequence",
    "watch_positions",
];

/// A database in which the server fails in the middle of statements.
struct Faults<'a> {
    pool: &'a PgPool,
    disk_full: bool,
    /// The statements that were made to fail.
    failed: BTreeSet<&'static str>,
}

impl<'a> Faults<'a> {
    async fn of(pool: &'a PgPool, disk_full: bool) -> Self {
        let triggers = TABLES.map(|table| {
            format!(
                "CREATE TRIGGER fault BEFORE INSERT OR UPDATE OR DELETE ON {table} FOR EACH ROW EXECUTE FUNCTION fault.here();"
            )
        });
        let set = format!("{FAULT}; {}", triggers.concat());
        sqlx::raw_sql(sqlx::AssertSqlSafe(set)).execute(pool).await.unwrap();
        Self { pool, disk_full, failed: BTreeSet::new() }
    }

    /// Sets the row whose write fails next; 0 is none. A server reports an error before it releases the locks of the transaction,
    /// and some calls pass over locked rows, so this waits for the locks of the call before.
    async fn at(&self, place: i64) {
        let released = format!("BEGIN; LOCK TABLE {} IN EXCLUSIVE MODE; COMMIT", TABLES.join(", "));
        sqlx::raw_sql(sqlx::AssertSqlSafe(released)).execute(self.pool).await.unwrap();
        sqlx::query("SELECT setval('fault.seen', 1, false)").execute(self.pool).await.unwrap();
        let set = sqlx::query("UPDATE fault.at SET place = $1, disk_full = $2").bind(place).bind(self.disk_full);
        set.execute(self.pool).await.unwrap();
    }

    /// Returns all stored rows.
    async fn rows(&self) -> Vec<String> {
        let each = TABLES.map(|table| format!("SELECT '{table} ' || t::text AS row FROM {table} t"));
        let all = format!("{} ORDER BY row", each.join(" UNION ALL "));
        sqlx::query_scalar(sqlx::AssertSqlSafe(all)).fetch_all(self.pool).await.unwrap()
    }

    /// Makes a call fail at each row that it writes, and finally succeed: a failed call leaves no changes, and its
    /// error says that it may be retried.
    async fn everywhere<T>(&mut self, name: &'static str, call: impl AsyncFn() -> Result<T, Error>) -> T {
        let before = self.rows().await;
        for place in 1.. {
            self.at(place).await;
            match call().await {
                Ok(answer) => {
                    self.at(0).await;
                    assert!(place > 1, "{name} writes nothing");
                    return answer;
                }
                Err(error) if self.disk_full => {
                    assert!(matches!(error, Error::Unavailable { .. }) && !error.is_contention(), "{name}: {error:?}");
                }
                Err(error) => {
                    assert!(matches!(error, Error::Unavailable { .. } | Error::InDoubt { .. }), "{name}: {error:?}");
                }
            }
            self.failed.insert(name);
            assert_eq!(self.rows().await, before, "{name}, place {place}");
        }
        unreachable!()
    }
}

#[sqlx::test]
async fn a_backend_that_is_killed_in_a_statement_leaves_nothing_half_done(pool: PgPool) {
    let store = connect(&pool).await;
    let faults = Faults::of(&pool, false).await;
    life(&store, faults).await;
}

#[sqlx::test]
async fn a_full_disk_stores_nothing_and_is_an_outage(pool: PgPool) {
    let store = connect(&pool).await;
    let faults = Faults::of(&pool, true).await;
    life(&store, faults).await;
}

/// Accepts a submission; a result in doubt counts as a failure.
async fn accepted(store: &Store, new: NewSubmission) -> Result<Accepted, Error> {
    match store.accept(new).await? {
        Accepted::InDoubt(_, error) => Err(error),
        certain => Ok(certain),
    }
}

/// Runs every statement that writes, through the life of two attempts.
async fn life(store: &Store, mut faults: Faults<'_>) {
    let holder = Uuid::new_v4();
    let own = sparkgate::store::replica(holder);
    let names = [own.clone()];
    assert!(faults.everywhere("acquire_lease", async || store.acquire_lease(&own, holder, LEASE).await).await);
    assert_eq!(
        faults.everywhere("renew_leases", async || store.renew_leases(holder, &names, LEASE).await).await.names,
        HashSet::from([own.clone()])
    );

    let drawn = draw(store).await;
    let id = drawn.id.clone();
    faults.everywhere("accept", async || accepted(store, new(drawn.clone(), "a")).await).await;
    let budget = "UPDATE submissions SET max_retries_infrastructure = 1";
    sqlx::query(budget).execute(faults.pool).await.unwrap();

    let claimed = faults.everywhere("claim", async || store.claim(holder, 1, &[], &[]).await).await.remove(0);
    let why = Some((None, "no answer"));
    faults.everywhere("retry_later", async || store.retry_later(&claimed, Duration::ZERO, why).await).await;
    let claimed = claim_one(store, holder).await;
    assert!(faults.everywhere("record_pod", async || store.record_pod(&id, 1, claimed.epoch, "u").await).await);
    let placement = Placement { pod_uid: Some("u".to_owned()), ..Placement::default() };
    let launched = async || store.advance(&id, 1, Some(claimed.epoch), &StateChange::Launched, &placement).await;
    assert!(faults.everywhere("launched", launched).await);
    faults.everywhere("note_waiting", async || store.note_waiting(&id, 1, "Unschedulable", "no node").await).await;
    let running = async || store.advance(&id, 1, None, &StateChange::Running, &placement).await;
    assert!(faults.everywhere("advance", running).await);
    let executors = [executor(&id)];
    assert_eq!(faults.everywhere("write_executors", async || store.write_executors(&executors).await).await, 1);
    // A server also releases advisory locks after it reported the error: the next call may still find this one taken.
    let number = async || loop {
        match store.number_events(&Horizon::default()).await {
            Ok(0) => {}
            numbered => return numbered,
        }
    };
    assert_eq!(faults.everywhere("number_events", number).await, 4);

    let lost = StateChange::Ended(Outcome::new(State::Lost, "Vanished", "gone"));
    assert!(faults.everywhere("retry", async || store.advance(&id, 1, None, &lost, &placement).await).await);
    assert_eq!(store.all().attempts(&id).await.unwrap().len(), 2);
    sqlx::query("UPDATE submissions SET not_before = NULL, deadline = now()").execute(faults.pool).await.unwrap();
    let claimed = claim_one(store, holder).await;
    let before = store.attempt_before(&claimed).await.unwrap().unwrap();
    let kept = async || store.keep_attempt(&claimed, &before.names, "{}", None).await;
    assert!(faults.everywhere("keep_attempt", kept).await);
    assert_eq!(faults.everywhere("kill_overdue", async || store.kill_overdue(10, None).await).await.killed, 1);
    faults.everywhere("release", async || store.release(&claimed).await).await;
    let killed = StateChange::Ended(Outcome::new(State::Killed, "StartTimeout", "too late"));
    assert!(faults.everywhere("end", async || store.advance(&id, 2, None, &killed, &placement).await).await);
    faults.everywhere("keep_log", async || store.keep_log(&id, 2, None, &[]).await).await;

    let other = accept(store, "b").await;
    assert!(
        faults
            .everywhere("request_kill", async || store.all().request_kill(&other, &Scope::installation(), None).await)
            .await
            .live
    );
    assert_eq!(faults.everywhere("clear_ended", async || store.all().clear_ended(None).await).await, 2);
    let these = [id.as_str()];
    faults.everywhere("put_clean_up_off", async || store.put_clean_up_off(&these, Duration::ZERO).await).await;
    let these = [(id.as_str(), 1), (id.as_str(), 2)];
    faults.everywhere("note_pods_deleted", async || store.note_pods_deleted(&these).await).await;
    let old = "UPDATE submissions SET pod_deleted_at = now() - interval '1 day' WHERE pod_deleted_at IS NOT NULL";
    sqlx::query(old).execute(faults.pool).await.unwrap();
    sqlx::query(sqlx::AssertSqlSafe(old.replace("submissions", "attempts"))).execute(faults.pool).await.unwrap();
    let deleted = faults.everywhere("delete_ended", async || store.delete_ended(Duration::ZERO, 10, None).await).await;
    assert_eq!(deleted, 2);
    faults.everywhere("keep_watch_position", async || store.keep_watch_position("*", "7").await).await;
    faults.everywhere("end_leases", async || store.end_leases(holder).await).await;
    assert_eq!(faults.failed.len(), 24, "{:?}", faults.failed);
}

/// Of the kind that a dump or a forgotten session has.
#[sqlx::test]
async fn an_open_snapshot_is_seen_by_an_inspection(pool: PgPool) {
    let url = pool.connect_options().to_url_lossy().to_string();
    let mut other = pool.acquire().await.unwrap();
    let snapshot = "SET application_name = 'dump'; BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM submissions";
    sqlx::raw_sql(snapshot).execute(&mut *other).await.unwrap();
    let inspection = Store::inspect(&DatabaseSettings { url, max_connections: 4 }).await.unwrap();
    let snapshots = &inspection.server.snapshots;
    assert!(snapshots.iter().any(|it| it.holder.starts_with("dump (pid ") && it.seconds.is_some()), "{snapshots:?}");
    assert!(inspection.server.sees_all);
}

#[sqlx::test]
async fn a_read_only_server_is_unavailable(pool: PgPool) {
    let store = connect(&pool).await;
    let session = session(&store).await;
    let id = accept(&store, "a").await;
    let drawn = draw(&store).await;
    read_only(&pool, "on").await;
    let errors = [
        store.claim(session, 1, &[], &[]).await.err(),
        store.renew_leases(session, &[replica(session)], LEASE).await.err(),
        accepted(&store, new(drawn, "b")).await.err(),
        store.all().request_kill(&id, &Scope::installation(), None).await.err(),
    ];
    for error in errors {
        // If the connection ends because of the change, the result of the statement is in doubt.
        assert!(matches!(error, Some(Error::Unavailable { .. } | Error::InDoubt { .. })), "{error:?}");
    }
    read_only(&pool, "off").await;
    let rows: i64 = sqlx::query_scalar("SELECT count(*) FROM submissions").fetch_one(&pool).await.unwrap();
    assert_eq!((rows, state(&store, &id).await), (1, State::Queued));
}

/// Sets it for the database from now on, and for each open connection.
async fn read_only(pool: &PgPool, value: &str) {
    let set = format!(
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = {value}', current_database()); END $$;
         SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = current_database() AND application_name = 'sparkgate'"
    );
    let mut own = pool.acquire().await.unwrap();
    sqlx::raw_sql("SET default_transaction_read_only = off").execute(&mut *own).await.unwrap();
    sqlx::raw_sql(sqlx::AssertSqlSafe(set)).execute(&mut *own).await.unwrap();
}

/// As with a server that is killed while it answers.
#[tokio::test]
async fn a_connection_that_breaks_in_its_handshake_is_an_outage() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("postgres://u@{}/x", listener.local_addr().unwrap());
    let server = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.write_all(&[0]).await;
        }
    });
    let store = Store::new(PgPoolOptions::new().connect_lazy(&url).unwrap());
    let error = store.installation().await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
    server.abort();
}
