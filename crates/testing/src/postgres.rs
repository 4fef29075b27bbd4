//! A Postgres whose data survive SIGKILL, its backups and its standby.

use std::{
    path::{Path, PathBuf},
    process::Command,
    str::FromStr,
    time::Duration,
};

use rustix::process::Signal;
use sqlx::{
    ConnectOptions, Connection, PgConnection, PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};

use crate::{
    documented_grants, documented_restore,
    guard::guard,
    process::{Process, free_port, until},
};

/// The script that becomes a server, or runs a client program on one.
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/postgres");
/// The role of the gateway, which may not change the schema.
const GATEWAY: &str = "sparkgate";

/// A server that syncs to disk. It ends when it is dropped; its data stay until the end of this process.
pub struct Postgres {
    directory: PathBuf,
    pub port: u16,
    process: Option<Process>,
}

impl Postgres {
    /// Returns a server that isn't started yet, with its data in a directory of this name.
    pub fn new(name: &str) -> Self {
        Self { directory: guard().directory().join(name), port: free_port(), process: None }
    }

    /// Starts it, if it doesn't run.
    pub fn start(&mut self) {
        if self.process.as_mut().is_some_and(|process| process.ended().is_none()) {
            return;
        }
        let mut command = self.script();
        self.process = Some(Process::spawn(&mut command, &self.directory.with_extension("log")));
    }

    fn script(&self) -> Command {
        let mut command = Command::new(SCRIPT);
        command.arg(&self.directory).arg(self.port.to_string());
        command
    }

    /// Runs a client program to its end.
    async fn client(&self, program: &str, arguments: &[&str]) {
        let mut command = tokio::process::Command::from(self.script());
        let output = command.args(["--client", program]).args(arguments).output().await.unwrap();
        assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Sends SIGKILL to all of its processes.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// Shuts it down properly: a server that was killed has to be a primary to recover.
    pub async fn stop(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.signal(Signal::INT);
            until("Postgres shuts down", Duration::from_secs(60), async || process.ended().is_some()).await;
        }
    }

    /// Waits until it accepts connections. A start that came too soon after a kill is repeated.
    pub async fn ready(&mut self) {
        until("Postgres is ready", Duration::from_secs(60), async || {
            self.start();
            let Some(options) = self.options("postgres") else { return false };
            let connected = tokio::time::timeout(Duration::from_secs(5), options.connect()).await;
            matches!(connected, Ok(Ok(_)))
        })
        .await;
    }

    /// Creates a database; returns a pool of direct connections to it.
    pub async fn create_database(&self, name: &str) -> PgPool {
        let mut server = self.connect().await;
        let create = sqlx::AssertSqlSafe(format!("CREATE DATABASE \"{name}\""));
        sqlx::query(create).execute(&mut server).await.unwrap();
        server.close().await.unwrap();
        self.pool(name)
    }

    /// Returns a pool of direct connections to a database.
    pub fn pool(&self, name: &str) -> PgPool {
        let pool = PgPoolOptions::new().max_connections(4).acquire_timeout(Duration::from_secs(5));
        pool.connect_lazy_with(self.options(name).unwrap())
    }

    /// Migrates a database as its owner, and lets the gateway's role use it.
    pub async fn migrate(&self, program: &Path, database: &str, pool: &PgPool) {
        let mut command = tokio::process::Command::new(program);
        command.arg("migrate").env("SPARKGATE_DATABASE_URL", self.url(database, self.port).unwrap());
        let output = command.output().await.unwrap();
        assert!(output.status.success(), "sparkgate migrate: {}", String::from_utf8_lossy(&output.stderr));
        let password = self.password().unwrap();
        // Runs that share the server may create the role at the same time.
        let create = format!(
            "DO $$ BEGIN CREATE ROLE {GATEWAY} LOGIN PASSWORD '{password}';
             EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$;
             REVOKE CREATE ON SCHEMA public FROM PUBLIC; {}",
            documented_grants(GATEWAY)
        );
        sqlx::raw_sql(sqlx::AssertSqlSafe(create)).execute(pool).await.unwrap();
    }

    /// Writes a database to a file and returns its path.
    pub async fn dump(&self, database: &str) -> String {
        let file = self.directory.join(format!("{database}.dump")).display().to_string();
        self.client("pg_dump", &["--format=custom", "--file", &file, database]).await;
        file
    }

    /// Replaces a database by its dump, which is first restored under another name. Connections to the old one end.
    pub async fn restore(&self, database: &str, dump: &str) {
        let (restored, lost) = (format!("{database}-restored"), format!("{database}-lost"));
        self.client("createdb", &[&restored]).await;
        self.client("pg_restore", &["--exit-on-error", "--dbname", &restored, dump]).await;
        self.after_restore(&restored).await;
        let mut server = self.connect().await;
        run(&mut server, &format!("ALTER DATABASE \"{database}\" ALLOW_CONNECTIONS false")).await;
        let end = format!("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '{database}'");
        run(&mut server, &end).await;
        run(&mut server, &format!("ALTER DATABASE \"{database}\" RENAME TO \"{lost}\"")).await;
        run(&mut server, &format!("ALTER DATABASE \"{restored}\" RENAME TO \"{database}\"")).await;
    }

    /// Runs the statements that follow every restore, with a shorter pause.
    pub async fn after_restore(&self, database: &str) {
        let mut connection = self.options(database).unwrap().connect().await.unwrap();
        run(&mut connection, &documented_restore().replace("10 minutes", "5 seconds")).await;
    }

    /// Copies the running server's data: a base backup, or a standby with `-R`.
    pub async fn copy(&self, name: &str, arguments: &[&str]) -> Self {
        let directory = self.directory.join(name);
        let (data, from) = (directory.join("data").display().to_string(), format!("application_name={name}"));
        let all = [&["--pgdata", &data, "--checkpoint=fast", "--no-sync", "--dbname", &from], arguments].concat();
        self.client("pg_basebackup", &all).await;
        std::fs::copy(self.directory.join("password"), directory.join("password")).unwrap();
        Self { directory, port: free_port(), process: None }
    }

    /// Starts a synchronous standby: from now on, a commit is on both servers before it is answered.
    pub async fn synchronous_standby(&self) -> Self {
        let mut standby = self.copy("standby", &["--write-recovery-conf"]).await;
        standby.ready().await;
        let mut primary = self.connect().await;
        run(&mut primary, "ALTER SYSTEM SET synchronous_standby_names = 'standby'").await;
        run(&mut primary, "SELECT pg_reload_conf()").await;
        until("the standby is synchronous", Duration::from_secs(60), async || {
            let state = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'";
            let synchronous: i64 = sqlx::query_scalar(state).fetch_one(&mut primary).await.unwrap();
            synchronous == 1
        })
        .await;
        standby
    }

    /// Starts a standby that gets nothing after this moment.
    pub async fn standby_left_behind(&self) -> Self {
        let mut standby = self.copy("standby", &[]).await;
        standby.make_standby();
        standby.ready().await;
        standby
    }

    /// Makes this a standby from its next start on.
    pub fn make_standby(&self) {
        std::fs::File::create(self.directory.join("data/standby.signal")).unwrap();
    }

    /// Makes a standby the primary.
    pub async fn promote(&self) {
        run(&mut self.connect().await, "SELECT pg_promote()").await;
    }

    /// Returns a connection to the database `postgres`.
    pub async fn connect(&self) -> PgConnection {
        self.options("postgres").unwrap().connect().await.unwrap()
    }

    /// Replaces this server's data by a copy of it, and starts.
    pub async fn go_back_to(&mut self, copy: Self) {
        self.kill();
        self.directory.clone_from(&copy.directory);
        self.ready().await;
    }

    /// Returns the URL of a database behind `port`, for the gateway.
    pub fn gateway_url(&self, database: &str, port: u16) -> Option<String> {
        self.url_of(GATEWAY, database, port)
    }

    /// Returns the URL of a database behind `port`, for its owner.
    pub fn url(&self, database: &str, port: u16) -> Option<String> {
        self.url_of("postgres", database, port)
    }

    fn url_of(&self, role: &str, database: &str, port: u16) -> Option<String> {
        Some(format!("postgres://{role}:{}@127.0.0.1:{port}/{database}", self.password()?))
    }

    fn password(&self) -> Option<String> {
        std::fs::read_to_string(self.directory.join("password")).ok()
    }

    fn options(&self, database: &str) -> Option<PgConnectOptions> {
        PgConnectOptions::from_str(&self.url(database, self.port)?).ok()
    }
}

async fn run(connection: &mut PgConnection, statements: &str) {
    sqlx::raw_sql(sqlx::AssertSqlSafe(statements.to_owned())).execute(connection).await.unwrap();
}
