//! A database that is a standby, as host names and poolers may lead to one during a failover.

use std::{
    fs::{File, Permissions},
    net::SocketAddr,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use sparkgate::store::{ConnectError, DatabaseSettings, Horizon, LostNumbers, Store};
use sparkgate_testing::{fault_proxy::FaultProxy, postgres::SCRIPT, process::free_address};
use sqlx::{Connection, PgConnection};
use tempfile::TempDir;
use tokio::time::{sleep, timeout};
use uuid::Uuid;

/// A Postgres server that ends with the test.
struct Postgres {
    dir: TempDir,
    port: u16,
    server: Option<Child>,
}

impl Postgres {
    async fn start() -> Self {
        let dir = TempDir::with_prefix("sparkgate-standby-").unwrap();
        // The server may run as another user.
        std::fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
        let mut postgres = Self { dir, port: free_address().port(), server: None };
        postgres.start_again().await;
        postgres
    }

    async fn start_again(&mut self) {
        self.stop();
        let log = File::create(self.file("log")).unwrap();
        let mut command = Command::new(SCRIPT);
        command.arg(self.file("server")).arg(self.port.to_string()).stdin(Stdio::null());
        self.server = Some(command.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap());
        self.connected().await;
    }

    /// Shuts the server down properly: a server that was killed has to be a primary to recover.
    fn stop(&mut self) {
        if let Some(mut server) = self.server.take() {
            Command::new("kill").args(["-INT", &server.id().to_string()]).status().unwrap();
            server.wait().unwrap();
        }
    }

    fn file(&self, name: &str) -> std::path::PathBuf {
        Path::join(self.dir.path(), name)
    }

    fn url(&self) -> Option<String> {
        self.url_at(self.address())
    }

    fn url_at(&self, address: SocketAddr) -> Option<String> {
        let password = std::fs::read_to_string(self.file("server/password")).ok()?;
        Some(format!("postgres://postgres:{password}@{address}/postgres"))
    }

    fn address(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.port).into()
    }

    /// Starts an asynchronous standby that gets nothing after this moment.
    async fn standby(&self) -> Self {
        let dir = TempDir::with_prefix("sparkgate-standby-").unwrap();
        std::fs::set_permissions(dir.path(), Permissions::from_mode(0o777)).unwrap();
        let mut standby = Self { dir, port: free_address().port(), server: None };
        let mut copy = tokio::process::Command::new(SCRIPT);
        copy.arg(self.file("server")).arg(self.port.to_string()).args(["--client", "pg_basebackup", "--pgdata"]);
        let copied = copy.arg(standby.file("server/data")).args(["--checkpoint=fast", "--no-sync"]).output().await;
        let copied = copied.unwrap();
        assert!(copied.status.success(), "{}", String::from_utf8_lossy(&copied.stderr));
        std::fs::copy(self.file("server/password"), standby.file("server/password")).unwrap();
        File::create(standby.file("server/data/standby.signal")).unwrap();
        standby.start_again().await;
        standby
    }

    async fn promote(&self) {
        sqlx::query("SELECT pg_promote()").execute(&mut self.connected().await).await.unwrap();
    }

    /// Returns a connection, once the server is up.
    async fn connected(&self) -> PgConnection {
        let connecting = async {
            loop {
                if let Some(url) = self.url()
                    && let Ok(connection) = PgConnection::connect(&url).await
                {
                    return connection;
                }
                sleep(Duration::from_millis(50)).await;
            }
        };
        timeout(Duration::from_secs(60), connecting).await.unwrap_or_else(|_| panic!("{}", self.log()))
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.file("log")).unwrap_or_default()
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.stop();
    }
}

#[tokio::test]
async fn a_standby_is_refused_and_not_read() {
    let mut postgres = Postgres::start().await;
    let settings = DatabaseSettings { url: postgres.url().unwrap(), max_connections: 3 };
    let store = Store::connect(&settings).await.unwrap();
    store.ping().await.unwrap();

    File::create(postgres.file("server/data/standby.signal")).unwrap();
    postgres.start_again().await;
    let refused = Store::connect(&settings).await.unwrap_err();
    assert!(matches!(refused, ConnectError::Standby { .. }) && refused.may_pass(), "{refused:?}");
    // The server answers queries, and this pool has worked with the server before.
    assert!(store.ping().await.is_err() && store.installation().await.is_err());

    sqlx::query("SELECT pg_promote()").execute(&mut postgres.connected().await).await.unwrap();
    store.installation().await.unwrap();
    Store::connect(&settings).await.unwrap().close().await;
}

/// A pooler may redirect a connection from the primary to another server, and a primary may stop accepting writes.
#[tokio::test]
async fn a_connection_is_checked_for_a_standby_repeatedly() {
    let postgres = Postgres::start().await;
    let settings = DatabaseSettings { url: postgres.url().unwrap(), max_connections: 3 };
    let store = Store::connect(&settings).await.unwrap();
    store.ping().await.unwrap();
    let read_only = async |yes: bool| {
        let mut connection = postgres.connected().await;
        let set = format!("ALTER SYSTEM SET default_transaction_read_only = {yes}");
        sqlx::query(sqlx::AssertSqlSafe(set)).execute(&mut connection).await.unwrap();
        sqlx::query("SELECT pg_reload_conf()").execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    };
    let becomes = async |well: bool| {
        let so = async { while store.ping().await.is_ok() != well {} };
        timeout(Duration::from_secs(30), so).await.unwrap();
    };
    read_only(true).await;
    becomes(false).await;
    read_only(false).await;
    becomes(true).await;
}

/// A primary that was only cut off for a while goes on to accept writes. A lease that is renewed there, while claims are made on
/// the new primary, would be worth nothing.
#[tokio::test]
async fn connections_to_the_old_primary_are_closed_once_one_leads_to_the_new_one() {
    let old = Postgres::start().await;
    let proxy = FaultProxy::start(old.address()).await;
    let settings = DatabaseSettings { url: old.url_at(proxy.address()).unwrap(), max_connections: 6 };
    let store = Store::connect(&settings).await.unwrap();
    let holder = Uuid::new_v4();
    let acquire = async |name: &str| store.acquire_lease(name, holder, Duration::from_secs(20)).await;
    let acquired = async { while !acquire("before").await.is_ok_and(|acquired| acquired) {} };
    timeout(Duration::from_secs(30), acquired).await.unwrap();
    let new = old.standby().await;
    new.promote().await;
    proxy.redirect(new.address());

    // All connections but those of leases.
    let others = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
        WHERE application_name = 'sparkgate' AND query NOT LIKE '%lock_timeout = 500;%' AND query NOT LIKE '%leases%'";
    let ended: i64 = sqlx::query_scalar(others).fetch_one(&mut old.connected().await).await.unwrap();
    assert!(ended > 0, "no connection of requests");
    let mut on_new = new.connected().await;
    let follows = async {
        loop {
            let _ = store.ping().await;
            let _ = acquire("after").await;
            let held = "SELECT EXISTS (SELECT FROM leases WHERE name = 'after')";
            if sqlx::query_scalar::<_, bool>(held).fetch_one(&mut on_new).await.unwrap() {
                return;
            }
        }
    };
    timeout(Duration::from_secs(60), follows).await.expect("leases are acquired on the old primary");
}

/// Events that the standby lacks were numbered before: their numbers aren't given to others.
#[tokio::test]
async fn a_promoted_standby_continues_above_all_numbers_that_may_be_lost() {
    let mut old = Postgres::start().await;
    let settings = |server: &Postgres| DatabaseSettings { url: server.url().unwrap(), max_connections: 6 };
    let store = Store::connect(&settings(&old)).await.unwrap();
    let publish = async |store: &Store, server: &Postgres| {
        let event = "INSERT INTO submission_events (submission_id, attempt, state) VALUES ('driver-1', 1, 'QUEUED')";
        sqlx::query(event).execute(&mut server.connected().await).await.unwrap();
        while store.numbered(&mut Horizon::default()).await.unwrap().more {
            store.number_events(&Horizon::default()).await.unwrap();
        }
        store.numbered(&mut Horizon::default()).await.unwrap()
    };
    assert_eq!(publish(&store, &old).await.last, 1);
    let new = old.standby().await;
    assert_eq!(publish(&store, &old).await.last, 2, "the standby doesn't get this one");
    store.close().await;
    old.stop();
    new.promote().await;

    let store = Store::connect(&settings(&new)).await.unwrap();
    let found = store.numbered(&mut Horizon::default()).await.unwrap();
    assert!(found.is_new_history && found.last == 1, "{found:?}");
    let found = publish(&store, &new).await;
    assert_eq!(found.lost, Some(LostNumbers { after: 1, until: found.last - 1 }));
    assert!(!found.is_new_history && found.last > 1_000_000, "{found:?}");
    let epoch: i64 =
        sqlx::query_scalar("SELECT lowest_claim_epoch()").fetch_one(&mut new.connected().await).await.unwrap();
    assert!(epoch > 1_000_000, "no claim has the number of a lost one: {epoch}");
    store.close().await;
}
