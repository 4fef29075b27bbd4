//! The store behind `PgBouncer`, in each of its modes.

use std::{
    fs::Permissions,
    net::TcpListener,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use sparkgate::store::{ConnectError, DatabaseSettings, Inspection, Store};
use sqlx::{ConnectOptions, Connection, PgConnection, PgPool};
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

use crate::support::{accept, claim_one, session};

/// A pooler that ends with the test.
struct Pooler {
    dir: TempDir,
    url: String,
    process: Child,
}

impl Pooler {
    async fn start(pool: &PgPool, mode: &str) -> Self {
        let dir = TempDir::with_prefix("sparkgate-pgbouncer-").unwrap();
        std::fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
        let server = pool.connect_options();
        let to = format!("host={} port={}", server.get_host(), server.get_port());
        let (user, database) = (server.get_username(), server.get_database().unwrap());
        let password = server.to_url_lossy().password().unwrap_or_default().to_owned();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let settings = format!(
            "[databases]\n{database} = {to} user={user} password={password}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {port}\nunix_socket_dir =\nauth_type = any\npool_mode = {mode}\ndefault_pool_size = 40\n\
             ignore_startup_parameters = extra_float_digits\n"
        );
        std::fs::write(dir.path().join("pgbouncer.ini"), settings).unwrap();
        let process = program(dir.path()).spawn().unwrap();
        let url = format!("postgres://{user}@127.0.0.1:{port}/{database}");
        let pooler = Self { dir, url, process };
        let connecting = async {
            while PgConnection::connect(&pooler.url).await.is_err() {
                sleep(Duration::from_millis(50)).await;
            }
        };
        let log = || std::fs::read_to_string(pooler.dir.path().join("log")).unwrap_or_default();
        timeout(Duration::from_secs(30), connecting).await.unwrap_or_else(|_| panic!("{}", log()));
        pooler
    }

    async fn inspect(&self) -> Result<Inspection, ConnectError> {
        Store::inspect(&DatabaseSettings { url: self.url.clone(), max_connections: 4 }).await
    }

    async fn connect(&self, max_connections: u32) -> Result<Store, ConnectError> {
        Store::connect(&DatabaseSettings { url: self.url.clone(), max_connections }).await
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Returns the command; `PgBouncer` refuses to run as root.
fn program(dir: &Path) -> Command {
    let debian = Path::new("/usr/sbin/pgbouncer");
    let name = if debian.exists() { debian } else { Path::new("pgbouncer") };
    let mut command = Command::new(name);
    if std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0) {
        command.args(["-u", "nobody"]);
    }
    let log = std::fs::File::create(dir.join("log")).unwrap();
    command.arg(dir.join("pgbouncer.ini")).stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
    command
}

#[sqlx::test]
async fn a_pooler_in_transaction_mode_is_refused_with_advice(pool: PgPool) {
    let pooler = Pooler::start(&pool, "transaction").await;
    let error = pooler.connect(16).await.unwrap_err();
    assert!(matches!(error, ConnectError::MixedSessions { .. }) && !error.may_pass(), "{error:?}");
    assert!(error.to_string().contains("pool_mode = session"), "{error}");
    assert!(matches!(pooler.inspect().await, Err(ConnectError::MixedSessions { .. })), "nor is it inspected");
}

#[sqlx::test]
async fn a_pooler_in_session_mode_works(pool: PgPool) {
    let pooler = Pooler::start(&pool, "session").await;
    let store = pooler.connect(16).await.unwrap();
    assert_eq!(pooler.inspect().await.unwrap().migrations.missing, [0_i64; 0]);
    while store.ping().await.is_err() || store.draw().await.is_err() {}
    let session = session(&store).await;
    let id = accept(&store, "a").await;
    let claimed = claim_one(&store, session).await;
    assert_eq!(claimed.id, id);
    assert!(store.record_pod(&id, 1, claimed.epoch, "u").await.unwrap().is_some());
    store.close().await;
}
