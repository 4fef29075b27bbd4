//! A real Prometheus that scrapes one gateway.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    net::SocketAddr,
    process::{Child, Command, Stdio},
    time::Duration,
};

use serde_json::Value;
use sparkgate_testing::{http, process::free_address};
use tempfile::TempDir;
use tokio::{
    task::spawn_blocking,
    time::{Instant, sleep},
};

use crate::monitoring::names::RULES;

/// How long a state may take to be reached.
const PATIENCE: Duration = Duration::from_secs(240);
const POLL: Duration = Duration::from_millis(500);
/// What becomes of the rules' times. The gateway asks its database every ten seconds.
const FOR: &str = "15s";
const RANGE: &str = "[20s]";

pub(crate) struct Prometheus {
    address: SocketAddr,
    server: Child,
    _dir: TempDir,
}

impl Prometheus {
    /// Starts a server that scrapes `target` and evaluates the rules of the deployment, with shorter times.
    pub(crate) fn start(target: SocketAddr) -> Self {
        let dir = TempDir::with_prefix("sparkgate-prometheus-").unwrap();
        fs::write(dir.path().join("rules.yaml"), quick(RULES)).unwrap();
        let settings = format!(
            "global: {{scrape_interval: 2s, scrape_timeout: 2s, evaluation_interval: 1s}}\nrule_files: [rules.yaml]\n\
             scrape_configs: [{{job_name: sparkgate, static_configs: [{{targets: ['{target}']}}]}}]\n"
        );
        fs::write(dir.path().join("prometheus.yaml"), settings).unwrap();
        let address = free_address();
        let log = File::create(dir.path().join("log")).unwrap();
        let mut command = Command::new("prometheus");
        command.current_dir(dir.path()).arg("--config.file=prometheus.yaml").arg("--storage.tsdb.path=data");
        command.arg(format!("--web.listen-address={address}")).stdin(Stdio::null());
        let server = command.stdout(log.try_clone().unwrap()).stderr(log).spawn();
        let server = server.expect("prometheus is missing: run `scripts/setup prometheus`");
        Self { address, server, _dir: dir }
    }

    async fn get(&self, path: &str, query: &[(&str, &str)]) -> Option<Value> {
        let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(query).finish();
        let (address, path) = (self.address, format!("/api/v1/{path}?{query}"));
        // The proxies of the test run meanwhile.
        let reply = spawn_blocking(move || http::get(address, &path)).await.unwrap().ok()?;
        let answer: Value = serde_json::from_str(&reply.body).ok()?;
        (answer["status"] == "success").then(|| answer["data"].clone())
    }

    /// Waits until an expression has a result that isn't empty, and returns its first value.
    pub(crate) async fn value(&self, expression: &str) -> f64 {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let data = self.get("query", &[("query", expression)]).await;
            if let Some(value) = data.as_ref().and_then(|data| data["result"][0]["value"][1].as_str()) {
                return value.parse().unwrap();
            }
            assert!(Instant::now() < deadline, "{expression} has no result");
            sleep(POLL).await;
        }
    }

    /// Returns the alerts that are pending or firing, and those that are firing.
    async fn alerts(&self) -> Option<(BTreeSet<String>, BTreeSet<String>)> {
        let data = self.get("alerts", &[]).await?;
        let names = |is: &dyn Fn(&Value) -> bool| {
            let alerts = data["alerts"].as_array().unwrap().iter().filter(|alert| is(alert));
            alerts.map(|alert| alert["labels"]["alertname"].as_str().unwrap().to_owned()).collect()
        };
        Some((names(&|_| true), names(&|alert| alert["state"] == "firing")))
    }

    /// Waits until exactly these alerts fire; meanwhile, no others may.
    pub(crate) async fn until_firing(&self, expected: &[&str]) {
        let expected: BTreeSet<String> = expected.iter().map(|name| (*name).to_owned()).collect();
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some((_, firing)) = self.alerts().await {
                assert!(firing.is_subset(&expected), "{firing:?} fire instead of {expected:?}");
                if firing == expected {
                    return;
                }
                assert!(Instant::now() < deadline, "{firing:?} fire, and {expected:?} should");
            }
            assert!(Instant::now() < deadline, "Prometheus doesn't answer");
            sleep(POLL).await;
        }
    }

    /// Waits until no alert is pending or firing.
    pub(crate) async fn until_quiet(&self) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let alerts = self.alerts().await;
            if alerts.as_ref().is_some_and(|(active, _)| active.is_empty()) {
                return;
            }
            assert!(Instant::now() < deadline, "{alerts:?} are active");
            sleep(POLL).await;
        }
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// Returns the rules with times that a test can wait for.
fn quick(rules: &str) -> String {
    let mut quick = String::new();
    for line in rules.lines() {
        let line = match line.trim_start().strip_prefix("for: ") {
            Some(time) => line.replace(time, FOR),
            None => ["[5m]", "[10m]", "[15m]", "[30m]"]
                .iter()
                .fold(line.to_owned(), |line, range| line.replace(range, RANGE)),
        };
        quick.push_str(&line);
        quick.push('\n');
    }
    quick
}
