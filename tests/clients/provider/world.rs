//! A gateway that trusts a realm, and a user's home with a context of it.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Stdio,
};

use chrono::{TimeDelta, Utc};
use reqwest::{Client, Method, Response, header};
use serde_json::{Value, json};
use sparkgate::sandbox::apiserver::Apiserver;
use sparkgate_testing::{
    database,
    gateway::{Ended, Gateway, sparkgate},
    kubeconfig,
    process::free_address,
};
use sqlx::PgPool;
use tempfile::TempDir;
use tokio::{
    net::TcpListener,
    process::Command,
    time::{Duration, sleep, timeout},
};

use crate::provider::realm::{self, CLIENT, CONSOLE, Realm};

/// The longest time that a test waits for a state, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) struct World {
    pub(crate) realm: Realm,
    pub(crate) gateway: Gateway,
    http: Client,
    dir: TempDir,
}

/// A response of the gateway.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) retry_after: bool,
    pub(crate) body: Value,
}

impl World {
    /// Starts a gateway with the test's database and a cluster without nodes, so that submissions don't end.
    pub(crate) async fn start(pool: &PgPool, realm: Realm) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let cluster = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let file = |name: &str, text: String| {
            let path = dir.path().join(name);
            fs::write(&path, text).unwrap();
            path
        };
        let (mut command, address) = (sparkgate(), free_address());
        let kubeconfig = file("kubeconfig", kubeconfig::without_tls(cluster.local_addr().unwrap()));
        let secret = file("secret", "hunter2\n".to_owned());
        let url = format!("http://{address}");
        realm.add_console(&url, "hunter2").await;
        let access = file("access.yaml", access(&realm.issuer(), &url, &secret));
        tokio::spawn(axum::serve(cluster, Apiserver::default().router()).into_future());
        command.args(["serve", "--listen", &address.to_string()]).arg("--kubeconfig").arg(kubeconfig);
        command.arg("--access-file").arg(access).env("SPARKGATE_DATABASE_URL", database::url(pool));
        let gateway = Gateway::serve(command, address).await;
        let world = Self { realm, gateway, http: realm::http(), dir };
        let url = world.url();
        world.write(
            ".config/sparkgate/config.yaml",
            &format!("current: prod\ncontexts:\n  prod: {{server: '{url}'}}\n"),
        );
        world
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.gateway.address)
    }

    /// Sends a request with a token.
    pub(crate) async fn send(&self, token: &str, method: Method, path: &str, body: Option<&Value>) -> Answer {
        let mut request = self.http.request(method, format!("{}{path}", self.url())).bearer_auth(token);
        if let Some(body) = body {
            request = request.header(header::CONTENT_TYPE, "application/json").body(body.to_string());
        }
        let response = request.send().await.unwrap();
        let (status, retry_after) = (response.status().as_u16(), response.headers().contains_key(header::RETRY_AFTER));
        let body = response.text().await.unwrap();
        Answer { status, retry_after, body: serde_json::from_str(&body).unwrap() }
    }

    pub(crate) async fn get(&self, token: &str, path: &str) -> Answer {
        self.send(token, Method::GET, path, None).await
    }

    /// Submits a job and returns its id.
    pub(crate) async fn submit(&self, token: &str) -> String {
        let answer = self.send(token, Method::POST, "/v1/submissions", Some(&job())).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.body["id"].as_str().unwrap().to_owned()
    }

    /// Opens a stream of events.
    pub(crate) async fn events(&self, token: &str) -> Response {
        let request = self.http.get(format!("{}/v1/events", self.url())).bearer_auth(token);
        let response = request.header(header::ACCEPT, "text/event-stream").send().await.unwrap();
        assert_eq!(response.status(), 200);
        response
    }

    /// Repeats a request until its status is another one.
    pub(crate) async fn until_other(&self, status: u16, token: &str, path: &str) -> Answer {
        let mut answer = self.get(token, path).await;
        let other = async {
            while answer.status == status {
                sleep(Duration::from_millis(200)).await;
                answer = self.get(token, path).await;
            }
        };
        timeout(PATIENCE, other).await.unwrap_or_else(|_| panic!("GET {path} stays {status}"));
        answer
    }

    /// Waits until the gateway has answered a number of requests of a path with 200.
    pub(crate) async fn until_answered(&self, path: &str, count: usize) {
        let line = format!("path=\"{path}\" status=200");
        let answered = async {
            while self.gateway.log().matches(&line).count() < count {
                sleep(Duration::from_millis(100)).await;
            }
        };
        timeout(PATIENCE, answered).await.unwrap_or_else(|_| panic!("no {count} of {path}:\n{}", self.gateway.log()));
    }

    /// Stores a login in the user's home, as `sparkgate login` does.
    pub(crate) async fn log_in(&self, user: &str) {
        let grant = self.realm.grant(user).await;
        let end = Utc::now() + TimeDelta::seconds(grant["expires_in"].as_i64().unwrap());
        let login = json!({"server": self.url(), "issuer": self.realm.issuer(), "clientId": CLIENT,
            "accessToken": grant["access_token"], "refreshToken": grant["refresh_token"], "expiresAt": end.to_rfc3339()});
        // JSON is YAML, too.
        self.write(".config/sparkgate/credentials.yaml", &json!({"logins": {"prod": login}}).to_string());
    }

    /// Writes a file that only the user can read.
    fn write(&self, name: &str, text: &str) {
        let path = self.dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    }

    pub(crate) fn credentials(&self) -> PathBuf {
        self.dir.path().join(".config/sparkgate/credentials.yaml")
    }

    /// Returns a command of the user, with pipes for its output.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sparkgate"));
        command.args(words).env_clear().env("HOME", self.dir.path()).env("USER", "alice").kill_on_drop(true);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs a command of the user to its end.
    pub(crate) async fn run(&self, words: &[&str]) -> Ended {
        timeout(PATIENCE, self.command(words).output()).await.unwrap().unwrap().into()
    }
}

/// Returns an access file without leeway: the clocks of this machine don't differ.
fn access(issuer: &str, url: &str, secret: &Path) -> String {
    let secret = secret.display();
    format!(
        "
authentication:
  oidc:
    - name: corp
      issuer: {issuer}
      audience: sparkgate
      subjectClaim: preferred_username
      groupsClaim: groups
      clientId: {CLIENT}
      leeway: 0s
      console: {{clientId: {CONSOLE}, clientSecretFile: '{secret}', externalUrl: '{url}'}}
tenants:
  red:
    namespaces: [default]
    members: [{{role: submitter, groups: [\"corp:eng\"]}}, {{role: operator, groups: [\"corp:ops\"]}}]
limits: {{reads: 100000/s, failedLogins: 1000/s}}
"
    )
}

/// Returns a request for the resource API.
fn job() -> Value {
    json!({"appResource": "local:///app.jar", "mainClass": "org.example.Main", "sparkProperties": properties()})
}

/// Returns a request for Spark's protocol.
pub(crate) fn spark_job() -> Value {
    json!({"action": "CreateSubmissionRequest", "clientSparkVersion": "4.3.0", "appResource": "local:///app.jar",
        "mainClass": "org.example.Main", "appArgs": [], "environmentVariables": {}, "sparkProperties": properties()})
}

fn properties() -> Value {
    json!({"spark.kubernetes.namespace": "default", "spark.app.name": "job", "spark.kubernetes.container.image": "spark"})
}

/// Returns the lines of a command's output, as they come.
pub(crate) async fn line(lines: &mut tokio::io::Lines<impl tokio::io::AsyncBufRead + Unpin>) -> String {
    timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap().unwrap()
}
