//! A database that is a standby, as host names and poolers may lead to one during a failover.

use std::{
    fs::{File, Permissions},
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use sparkgate::store::{ConnectError, DatabaseSettings, Store};
use sqlx::{Connection, PgConnection};
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

use crate::process::free_address;

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
        let mut command = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/crash/postgres"));
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
        let password = std::fs::read_to_string(self.file("server/password")).ok()?;
        Some(format!("postgres://postgres:{password}@127.0.0.1:{}/postgres", self.port))
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
