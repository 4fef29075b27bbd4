//! `sparkgate doctor`: each check once without and once with what it looks for.

use std::{
    collections::BTreeMap,
    fs::{self, Permissions},
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use k8s_openapi::api::{
    core::v1::{Pod, ResourceQuota, ServiceAccount},
    rbac::v1::Role,
};
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use rcgen::{CertificateParams, KeyPair};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use sparkgate_testing::{
    gateway::{Gateway, sparkgate, until},
    kube_apiserver::{ADMIN, KubeApiserver},
};
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tempfile::TempDir;
use uuid::Uuid;

use crate::crash::Place;

const PAGE: &str = include_str!("../../docs/operate/operations.md");

/// A gateway's database and namespace that have what they need.
struct Patient {
    place: Place,
    server: &'static KubeApiserver,
    dir: TempDir,
}

/// What doctor prints: exit code, and the worst level of each check.
struct Report {
    code: Option<i32>,
    levels: BTreeMap<String, String>,
    text: String,
}

impl Patient {
    async fn new() -> Self {
        let server = KubeApiserver::start().await;
        let place = Place::new(server).await;
        // A server of tests forgets, which is faster.
        let patient = Self { place, server, dir: TempDir::new().unwrap() };
        patient.durable().await;
        // The first gateway migrates the database and assigns it to the cluster.
        let (command, address) = patient.place.command();
        assert!(Gateway::start(command, address, false).terminate());
        patient.write("keys", &format!("k1:{}=\n", "A".repeat(43)), 0o600);
        patient.write("defaults.conf", "spark.kubernetes.container.image spark:4.3.0\n", 0o644);
        patient
    }

    async fn durable(&self) {
        self.server_setting("fsync", "on").await;
        self.server_setting("full_page_writes", "on").await;
        self.database_setting("synchronous_commit", "on").await;
    }

    fn write(&self, name: &str, text: &str, mode: u32) -> PathBuf {
        let path = self.dir.path().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        path
    }

    fn file(&self, name: &str) -> String {
        self.dir.path().join(name).to_str().unwrap().to_owned()
    }

    /// Runs doctor with the settings of a gateway that has what it needs. Later arguments replace earlier ones.
    fn examine(&self, more: &[&str]) -> Report {
        let mut settings = BTreeMap::from([
            ("--namespaces", self.place.namespace.clone()),
            ("--kubeconfig", self.place.kubeconfig.to_str().unwrap().to_owned()),
            ("--database-url", self.place.database.clone()),
            ("--encryption-key-file", self.file("keys")),
            ("--spark-defaults", self.file("defaults.conf")),
        ]);
        let mut flags = Vec::new();
        for one in more {
            match one.split_once('=') {
                Some((name, value)) => drop(settings.insert(name, value.to_owned())),
                None => flags.push(*one),
            }
        }
        let mut command = sparkgate();
        command.args(["doctor", "--json"]).args(flags).env_remove("SPARKGATE_DATABASE_URL");
        command.args(settings.iter().map(|(name, value)| format!("{name}={value}")));
        Report::of(&mut command)
    }

    async fn sql(&self, statement: &str) {
        let mut connection = PgConnection::connect(&self.place.database).await.unwrap();
        // A database that is read-only by default has to accept the repair.
        for statement in ["SET default_transaction_read_only = off", statement] {
            sqlx::raw_sql(AssertSqlSafe(statement.to_owned())).execute(&mut connection).await.unwrap();
        }
        connection.close().await.unwrap();
    }

    async fn database_setting(&self, name: &str, value: &str) {
        self.sql(&format!("ALTER DATABASE \"{}\" SET {name} = '{value}'", self.place.namespace)).await;
    }

    /// Changes a setting of the whole server, which new connections see a moment later.
    async fn server_setting(&self, name: &str, value: &str) {
        self.sql(&format!("ALTER SYSTEM SET {name} = '{value}'")).await;
        self.sql("SELECT pg_reload_conf()").await;
        loop {
            let mut connection = PgConnection::connect(&self.place.database).await.unwrap();
            let show = sqlx::query_scalar(AssertSqlSafe(format!("SHOW {name}")));
            let now: String = show.fetch_one(&mut connection).await.unwrap();
            if now == value {
                return;
            }
        }
    }

    async fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.server.admin().await, &self.place.namespace)
    }

    async fn create<K>(&self, object: Value)
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>
            + Clone
            + DeserializeOwned
            + serde::Serialize
            + std::fmt::Debug,
    {
        self.api::<K>().await.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
    }

    /// Creates a pod with our labels and our finalizer.
    async fn held_pod(&self, name: &str, installation: &str, submission: &str) {
        let labels = json!({"sparkgate.dev/submission-id": submission, "sparkgate.dev/instance": installation});
        let metadata = json!({"name": name, "labels": labels, "finalizers": ["sparkgate.dev/outcome"]});
        let pod = json!({"metadata": metadata, "spec": {"containers": [{"name": "c", "image": "i"}]}});
        self.create::<Pod>(pod).await;
    }

    async fn remove_pod(&self, name: &str) {
        let pods = self.api::<Pod>().await;
        let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        pods.patch(name, &PatchParams::default(), &free).await.unwrap();
        pods.delete(name, &DeleteParams::default().grace_period(0)).await.unwrap();
    }

    /// Returns the id of the installation.
    async fn installation(&self) -> String {
        let mut connection = PgConnection::connect(&self.place.database).await.unwrap();
        let id: Uuid = sqlx::query_scalar("SELECT id FROM installation").fetch_one(&mut connection).await.unwrap();
        id.to_string()
    }

    /// Writes a certificate that is valid until so many days from now.
    fn certificate(&self, days: i64) -> [String; 2] {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let end = chrono::Utc::now() + chrono::TimeDelta::days(days);
        let date = end.date_naive();
        use chrono::Datelike;
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after =
            rcgen::date_time_ymd(date.year(), u8::try_from(date.month()).unwrap(), u8::try_from(date.day()).unwrap());
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let files = [("c.pem", certificate.pem(), 0o644), ("k.pem", key.serialize_pem(), 0o600)];
        files.map(|(name, text, mode)| self.write(name, &text, mode).to_str().unwrap().to_owned())
    }
}

impl Report {
    fn of(command: &mut Command) -> Self {
        let output = command.output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        let document: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}{stderr}"));
        let worse = ["ok", "skipped", "warning", "failure"];
        let rank = |level: &str| worse.iter().position(|one| *one == level).unwrap();
        let mut levels = BTreeMap::<String, String>::new();
        for finding in document["findings"].as_array().unwrap() {
            let word = |key: &str| finding[key].as_str().unwrap().to_owned();
            let level = levels.entry(word("check")).or_insert_with(|| "ok".to_owned());
            if rank(&word("level")) > rank(level) {
                *level = word("level");
            }
            assert!(
                PAGE.contains(&format!("`{}`", word("check"))),
                "docs/operate/operations.md lacks {}",
                word("check")
            );
            let needs_remedy = ["warning", "failure"].contains(&finding["level"].as_str().unwrap());
            assert_eq!(finding.get("remedy").is_some(), needs_remedy, "{finding}");
        }
        assert_eq!(output.status.code() == Some(1), document["failures"] != 0, "{text}");
        assert!(!text.contains("SEKRETPW"), "{text}");
        Self { code: output.status.code(), levels, text }
    }

    fn level(&self, check: &str) -> &str {
        self.levels.get(check).map_or("none", String::as_str)
    }

    #[track_caller]
    fn assert(&self, check: &str, level: &str) {
        assert_eq!(self.level(check), level, "{check}\n{}", self.text);
    }
}

#[tokio::test]
async fn a_gateway_that_has_what_it_needs_has_no_failure() {
    let patient = Patient::new().await;
    let report = patient.examine(&[]);
    assert_eq!(report.code, Some(0), "{}", report.text);
    // With the Role of the deployment, these two can't be read.
    for (check, level) in &report.levels {
        // The database of this test is its role's own.
        let is_expected = match check.as_str() {
            "database.audit" => level == "warning",
            "kubernetes.quota" => level == "skipped",
            _ => false,
        };
        assert!(level == "ok" || is_expected, "{check}\n{}", report.text);
    }
    for check in [
        "settings.http",
        "files.spark",
        "files.access",
        "files.encryption-keys",
        "database.reachable",
        "database.migrations",
        "database.rights",
        "database.fsync",
        "database.full-page-writes",
        "database.synchronous-commit",
        "database.replication",
        "database.tls",
        "database.connections",
        "database.timeouts",
        "database.clock",
        "database.encryption-keys",
        "access.creators",
        "defaults.image",
        "kubernetes.reachable",
        "kubernetes.version",
        "kubernetes.clock",
        "kubernetes.namespace",
        "kubernetes.rights",
        "kubernetes.admission",
        "kubernetes.home-cluster",
        "pods.finalizers",
        "pods.installation",
        "pods.without-driver",
    ] {
        report.assert(check, "ok");
    }
}

/// A right that doctor lacks is a line, and a missing part doesn't hide the others.
#[tokio::test]
async fn a_part_that_is_missing_is_a_line_and_the_others_are_checked() {
    let patient = Patient::new().await;
    let nowhere = "--database-url=postgres://u:SEKRETPW@127.0.0.1:1/x";
    let report = patient.examine(&[nowhere]);
    report.assert("database.reachable", "failure");
    report.assert("kubernetes.rights", "ok");
    let report = patient.examine(&["--kubeconfig=/nowhere"]);
    report.assert("kubernetes.reachable", "failure");
    report.assert("database.migrations", "ok");
    let report = patient.examine(&["--spark-defaults=/nowhere"]);
    report.assert("files.spark", "failure");
    report.assert("database.migrations", "ok");
    report.assert("kubernetes.rights", "ok");
}

#[tokio::test]
async fn each_fault_of_the_settings_and_files_is_found() {
    let patient = Patient::new().await;
    patient.write("latest.conf", "spark.kubernetes.container.image spark:latest\n", 0o644);
    patient.write("open-keys", &format!("k1:{}=\n", "A".repeat(43)), 0o644);
    patient.write("no-keys", "k1:x\n", 0o600);
    patient.write("access.yaml", "tenants: 3\n", 0o644);
    let arguments = |name: &str, file: &str| format!("{name}={}", patient.file(file));
    for (argument, check, level) in [
        (arguments("--spark-defaults", "latest.conf"), "defaults.image", "warning"),
        (arguments("--encryption-key-file", "open-keys"), "files.encryption-keys", "warning"),
        (arguments("--encryption-key-file", "no-keys"), "files.encryption-keys", "failure"),
        (arguments("--access-file", "access.yaml"), "files.access", "failure"),
        ("--log==,=".to_owned(), "settings.log", "failure"),
        ("--cors-origins=nonsense".to_owned(), "settings.http", "failure"),
        ("--database-url=nonsense".to_owned(), "settings.database", "failure"),
        ("--database-connections=600".to_owned(), "database.connections", "failure"),
        ("--database-connections=300".to_owned(), "database.connections", "warning"),
        ("--namespaces=nowhere".to_owned(), "kubernetes.rights", "failure"),
    ] {
        patient.examine(&[&argument]).assert(check, level);
    }
    let report = patient.examine(&["--listen=0.0.0.0:6066", "--trusted-network"]);
    report.assert("files.access", "warning");
    for (days, level) in [(-1, "failure"), (3, "warning"), (90, "ok")] {
        let [certificate, key] = patient.certificate(days);
        let report = patient.examine(&[&format!("--tls-certificate={certificate}"), &format!("--tls-key={key}")]);
        report.assert("files.tls", level);
        report.assert("files.tls-key", "none");
    }
    let [certificate, key] = patient.certificate(90);
    fs::set_permissions(Path::new(&key), Permissions::from_mode(0o644)).unwrap();
    let report = patient.examine(&[&format!("--tls-certificate={certificate}"), &format!("--tls-key={key}")]);
    report.assert("files.tls-key", "warning");
    let store = patient.file("store");
    let base = "--files-base-url=http://gateway:6066";
    patient.examine(&[&format!("--files-url={store}"), base]).assert("files.store", "ok");
    assert!(fs::read_dir(&store).unwrap().all(|entry| fs::read_dir(entry.unwrap().path()).unwrap().next().is_none()));
    let taken = patient.write("taken", "no directory", 0o644);
    patient.examine(&[&format!("--files-url={}", taken.display()), base]).assert("files.store", "failure");
    patient.write("ok.yaml", "authentication:\n  apiKeys: {enabled: true}\ntenants: {}\n", 0o644);
    for (log, level) in [("/nowhere/audit.log", "failure"), ("-", "ok")] {
        let report = patient.examine(&[&arguments("--access-file", "ok.yaml"), &format!("--audit-log={log}")]);
        report.assert("files.audit-log", level);
    }
}

#[tokio::test]
async fn each_fault_of_the_database_is_found() {
    let patient = Patient::new().await;
    for (name, bad, good, check, level) in [
        ("synchronous_commit", "off", "on", "database.synchronous-commit", "failure"),
        ("idle_session_timeout", "5s", "0", "database.timeouts", "warning"),
        ("default_transaction_read_only", "on", "off", "database.primary", "failure"),
    ] {
        patient.database_setting(name, bad).await;
        patient.examine(&[]).assert(check, level);
        patient.database_setting(name, good).await;
    }
    for (name, check) in [("fsync", "database.fsync"), ("full_page_writes", "database.full-page-writes")] {
        patient.server_setting(name, "off").await;
        patient.examine(&[]).assert(check, "failure");
        patient.server_setting(name, "on").await;
    }
    let newest = "(SELECT max(version) FROM _sqlx_migrations WHERE version < 9000)";
    for (bad, good, check, level) in [
        (
            format!(
                "INSERT INTO _sqlx_migrations SELECT 9000, 'later', now(), true, checksum, 1 FROM _sqlx_migrations WHERE version = {newest}"
            ),
            "DELETE FROM _sqlx_migrations WHERE version = 9000".to_owned(),
            "database.migrations",
            "warning",
        ),
        (
            format!("UPDATE _sqlx_migrations SET success = false WHERE version = {newest}"),
            "UPDATE _sqlx_migrations SET success = true".to_owned(),
            "database.migrations",
            "failure",
        ),
        (
            "UPDATE _sqlx_migrations SET version = -version WHERE version = 14".to_owned(),
            "UPDATE _sqlx_migrations SET version = -version WHERE version = -14".to_owned(),
            "database.migrations",
            "failure",
        ),
        (
            "UPDATE cluster_namespaces SET uid = 'x' || uid".to_owned(),
            "UPDATE cluster_namespaces SET uid = substr(uid, 2)".to_owned(),
            "kubernetes.home-cluster",
            "failure",
        ),
    ] {
        patient.sql(&bad).await;
        patient.examine(&[]).assert(check, level);
        patient.sql(&good).await;
    }
    patient.sql("CREATE ROLE doctor_reader LOGIN PASSWORD 'SEKRETPW'; GRANT SELECT ON ALL TABLES IN SCHEMA public TO doctor_reader").await;
    let (_, rest) = patient.place.database.split_once('@').unwrap();
    let report = patient.examine(&[&format!("--database-url=postgres://doctor_reader:SEKRETPW@{rest}")]);
    report.assert("database.rights", "failure");
    patient.sql("DROP OWNED BY doctor_reader; DROP ROLE doctor_reader").await;
    assert_eq!(patient.examine(&[]).code, Some(0));
}

#[tokio::test]
async fn each_fault_of_the_cluster_is_found() {
    let patient = Patient::new().await;
    let admin = format!("--kubeconfig={}", patient.server.file(ADMIN).display());
    patient.examine(&[&admin]).assert("kubernetes.quota", "ok");
    patient.examine(&["--namespaces=nowhere", &admin]).assert("kubernetes.namespace", "failure");

    // The service account of the defaults.
    let account = "spark.kubernetes.authenticate.driver.serviceAccountName";
    patient.write("account.conf", &format!("spark.kubernetes.container.image spark:1\n{account} spark\n"), 0o644);
    let defaults = format!("--spark-defaults={}", patient.file("account.conf"));
    patient.examine(&[&defaults]).assert("kubernetes.service-account", "skipped");
    patient.examine(&[&defaults, &admin]).assert("kubernetes.service-account", "failure");
    patient.create::<ServiceAccount>(json!({"metadata": {"name": "spark"}})).await;
    patient.examine(&[&defaults, &admin]).assert("kubernetes.service-account", "ok");

    // A quota. No controller counts here.
    patient.create::<ResourceQuota>(json!({"metadata": {"name": "q"}, "spec": {"hard": {"pods": "2"}}})).await;
    for (used, level) in [("1", "ok"), ("2", "warning")] {
        let status = Patch::Merge(json!({"status": {"hard": {"pods": "2"}, "used": {"pods": used}}}));
        let quotas = patient.api::<ResourceQuota>().await;
        quotas.patch_status("q", &PatchParams::default(), &status).await.unwrap();
        patient.examine(&[&admin]).assert("kubernetes.quota", level);
    }

    // Tenants whose boundaries the cluster doesn't enforce.
    let access = format!(
        "authentication:\n  apiKeys: {{enabled: true}}\ntenants:\n  red: {{namespaces: [{}]}}\n",
        patient.place.namespace
    );
    let access = patient.write("access.yaml", &access, 0o644);
    patient.examine(&[&format!("--access-file={}", access.display())]).assert("kubernetes.admission", "warning");

    // A right of the Role.
    let roles = patient.api::<Role>().await;
    let mut rules = roles.get("sparkgate").await.unwrap().rules.unwrap();
    let granted = Patch::Merge(json!({"rules": rules}));
    for rule in &mut rules {
        rule.verbs.retain(|verb| verb != "patch");
    }
    roles.patch("sparkgate", &PatchParams::default(), &Patch::Merge(json!({"rules": rules}))).await.unwrap();
    until("a right is missing", || patient.examine(&[]).level("kubernetes.rights") == "failure");
    roles.patch("sparkgate", &PatchParams::default(), &granted).await.unwrap();
    until("all rights are there", || patient.examine(&[]).level("kubernetes.rights") == "ok");
}

#[tokio::test]
async fn pods_that_are_left_over_are_found_and_left_alone() {
    let patient = Patient::new().await;
    let own = patient.installation().await;
    patient.held_pod("unknown", &own, "driver-20260101000000-0001").await;
    let report = patient.examine(&[]);
    report.assert("pods.finalizers", "warning");
    report.assert("pods.installation", "ok");
    patient.remove_pod("unknown").await;
    let other = Uuid::new_v4().to_string();
    patient.held_pod("other", &other, "driver-20260101000000-0001").await;
    let report = patient.examine(&[]);
    report.assert("pods.finalizers", "ok");
    report.assert("pods.installation", "warning");
    assert!(report.text.contains(&other), "{}", report.text);
    assert!(patient.api::<Pod>().await.get("other").await.unwrap().metadata.deletion_timestamp.is_none());
    patient.remove_pod("other").await;

    // The record of a driver that has ended, a moment and an hour ago.
    let id = "driver-20260101000000-0007";
    patient
        .sql(&format!(
            "INSERT INTO submissions (id, number, state, request, spark_version, spark_user, namespace, names, created_at, finished_at)
             VALUES ('{id}', 7, 'FINISHED', '{{}}', '4.3.0', 'tester', '{}', '{{}}', now(), now());
             INSERT INTO manifests (submission_id, attempt, objects, sealed_key, sealed) VALUES ('{id}', 1, '{{}}', 'k9', 'x')",
            patient.place.namespace
        ))
        .await;
    patient.held_pod("ended", &own, id).await;
    let report = patient.examine(&[]);
    report.assert("pods.finalizers", "ok");
    report.assert("database.encryption-keys", "failure");
    patient
        .sql("UPDATE submissions SET finished_at = now() - interval '1 hour'; UPDATE manifests SET sealed_key = 'k1'")
        .await;
    let report = patient.examine(&[]);
    report.assert("pods.finalizers", "warning");
    report.assert("database.encryption-keys", "ok");
    patient.remove_pod("ended").await;
}

#[tokio::test]
async fn an_executor_without_a_driver_is_found_and_left_alone() {
    let patient = Patient::new().await;
    let containers = json!([{"name": "c", "image": "i"}]);
    let metadata = json!({"name": "left", "labels": {"spark-role": "executor"}});
    patient.create::<Pod>(json!({"metadata": metadata, "spec": {"containers": containers}})).await;
    let report = patient.examine(&[]);
    report.assert("pods.without-driver", "warning");
    assert!(report.text.contains(&format!("{}/left", patient.place.namespace)), "{}", report.text);
    patient.remove_pod("left").await;
    patient.examine(&[]).assert("pods.without-driver", "ok");
}

#[tokio::test]
async fn the_lines_say_what_to_do() {
    let patient = Patient::new().await;
    let mut command = sparkgate();
    command.args(["doctor", "--database-url=postgres://u:SEKRETPW@127.0.0.1:1/x", "--kubeconfig=/nowhere"]);
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    for part in
        ["failure  database.reachable", "→ start Postgres, and check host", "failures, ", "ok       settings.http"]
    {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(!text.contains("SEKRETPW"), "{text}");
    drop(patient);
}

#[test]
fn a_database_that_is_not_named_is_a_finding() {
    let mut command = sparkgate();
    command.args(["doctor", "--kubeconfig=/nowhere"]).env_remove("SPARKGATE_DATABASE_URL");
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}{}", String::from_utf8_lossy(&output.stderr));
    for part in ["failure  settings.database", "give --database-url (SPARKGATE_DATABASE_URL)", "kubernetes.reachable"] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

/// A server that answers every request with a status, until the test ends. Returns its URL.
fn lineage_server(status: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/api/v1/lineage", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut lines = BufReader::new(&stream).lines();
            while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            let mut answer = &stream;
            let _ = write!(answer, "HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        }
    });
    url
}

#[tokio::test]
async fn a_lineage_server_has_to_answer_and_to_take_the_token() {
    let patient = Patient::new().await;
    patient.examine(&[]).assert("openlineage", "none");
    let servers = [("405 Method Not Allowed", "ok"), ("401 Unauthorized", "failure"), ("502 Bad Gateway", "warning")];
    for (status, level) in servers {
        let url = format!("--openlineage-url={}", lineage_server(status));
        patient.examine(&[&url]).assert("openlineage", level);
    }
    let nothing = format!("--openlineage-url=http://{}/", sparkgate_testing::process::free_address());
    patient.examine(&[&nothing]).assert("openlineage", "failure");
    let url = format!("--openlineage-url={}", lineage_server("200 OK"));
    let token = patient.write("lineage-token", "SEKRETPW", 0o644);
    let token = format!("--openlineage-token-file={}", token.display());
    let report = patient.examine(&[&url, &token]);
    report.assert("openlineage", "ok");
    report.assert("files.openlineage-token", "warning");
}
