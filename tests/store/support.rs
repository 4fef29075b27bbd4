//! Shared parts of the tests of the store on a real Postgres.

use std::time::Duration;

use sparkgate::{
    spark::{CreateSubmissionRequest, DriverNames},
    store::{Claimed, DEFAULT_TENANT, DatabaseSettings, Drawn, NewSubmission, Options, Store, replica},
    submission::{ExecutorRecord, ExecutorState, State, SubmissionId},
};
use sqlx::{ConnectOptions, PgPool};
use uuid::Uuid;

/// The longest duration of a lease: a longer one means that a clock went back.
pub(crate) const LEASE: Duration = Duration::from_secs(25);

/// Closes the connection of a pool of one, and waits until its server process has ended: it publishes its statistics then, in every
/// release of Postgres.
pub(crate) async fn publish_statistics(pool: &PgPool) {
    let mut connection = pool.acquire().await.unwrap();
    let pid: i32 = sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(&mut *connection).await.unwrap();
    connection.close().await.unwrap();
    let is_there = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1)";
    while sqlx::query_scalar(is_there).bind(pid).fetch_one(pool).await.unwrap() {}
}

/// Returns how many rows of submissions were read so far, with or without an index, as reported by closed connections.
pub(crate) async fn rows_read(pool: &PgPool) -> i64 {
    let read = "SELECT (coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::bigint
                FROM pg_stat_user_tables WHERE relname = 'submissions'";
    sqlx::query_scalar(read).fetch_one(pool).await.unwrap()
}

/// Closes a store, and returns how many rows have been read since `before`, by it as well: the server processes of its connections have
/// ended, and reported theirs.
pub(crate) async fn rows_read_until_the_end(store: Store, pool: &PgPool, before: i64) -> i64 {
    store.close().await;
    let is_there = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'sparkgate')";
    while sqlx::query_scalar(is_there).fetch_one(pool).await.unwrap() {}
    rows_read(pool).await - before
}

/// Connects as `serve` does, and waits until each pool has a connection: a request waits less than a second
/// for one, and this machine may be busy.
pub(crate) async fn connect(pool: &PgPool) -> Store {
    let url = pool.connect_options().to_url_lossy().to_string();
    let store = Store::connect(&DatabaseSettings { url, max_connections: 16 }).await.unwrap();
    while store.ping().await.is_err() || store.draw().await.is_err() {}
    store.live().await.unwrap();
    store
}

/// Begins a session whose lease holds.
pub(crate) async fn session(store: &Store) -> Uuid {
    let session = Uuid::new_v4();
    keep(store, session).await;
    session
}

/// The wait for a lease has a short timeout, too.
async fn keep(store: &Store, session: Uuid) {
    while !store.acquire_lease(&replica(session), session, LEASE).await.is_ok_and(|taken| taken) {}
}

pub(crate) async fn accept(store: &Store, pod: &str) -> SubmissionId {
    let drawn = draw(store).await;
    let id = drawn.id.clone();
    store.accept(new(drawn, pod)).await.unwrap();
    id
}

pub(crate) async fn draw(store: &Store) -> Drawn {
    loop {
        if let Ok(drawn) = store.draw().await {
            return drawn;
        }
    }
}

pub(crate) async fn claim_one(store: &Store, session: Uuid) -> Claimed {
    keep(store, session).await;
    let mut claimed = store.claim(session, 1, &[], &[]).await.unwrap();
    assert_eq!(claimed.len(), 1);
    claimed.remove(0)
}

pub(crate) async fn state(store: &Store, id: &SubmissionId) -> State {
    loop {
        if let Ok(found) = store.all().find(id).await {
            return found.unwrap().state;
        }
    }
}

pub(crate) fn new(drawn: Drawn, pod: &str) -> NewSubmission {
    NewSubmission {
        drawn,
        request: CreateSubmissionRequest { app_resource: "local:///app.jar".to_owned(), ..Default::default() },
        spark_version: "4.3.0".parse().unwrap(),
        spark_user: "tester".to_owned(),
        namespace: "spark".to_owned(),
        names: names(pod),
        manifest: r#"{"pod":1}"#.to_owned(),
        sealed: None,
        name: "job".to_owned(),
        owner: "tester".to_owned(),
        tenant: DEFAULT_TENANT.to_owned(),
        principal: "anonymous:anonymous".to_owned(),
        actor: None,
        options: Options::default(),
        bounds: Default::default(),
        queue: None,
        trace: None,
        fingerprint: Vec::new(),
        origins: Default::default(),
    }
}

pub(crate) fn names(pod: &str) -> DriverNames {
    DriverNames {
        app_id: "spark-1".to_owned(),
        resource_prefix: "p".to_owned(),
        driver_pod: pod.to_owned(),
        driver_service: "s".to_owned(),
        config_map: "c".to_owned(),
        local_dir: Uuid::nil(),
    }
}

/// Returns the first executor of the first attempt, whose driver pod is `u`.
pub(crate) fn executor(submission: &SubmissionId) -> ExecutorRecord {
    ExecutorRecord {
        submission: submission.clone(),
        attempt: 1,
        executor_id: 1,
        pod_name: "exec-1".to_owned(),
        pod_uid: "e1".to_owned(),
        driver_uid: Some("u".to_owned()),
        state: ExecutorState::Running,
        exit_code: None,
        reason: None,
        message: None,
        node: None,
        created_at: None,
        started_at: None,
        finished_at: None,
        reservation: None,
    }
}
