//! Gateways in the states that produce the answers.

use axum::{Router, body::Body, http::Request};
use serde_json::{Value, json};
use sparkgate::{
    api::{HttpSettings, router},
    service::Service,
};
use sqlx::{PgPool, postgres::PgPoolOptions};

use super::ask;
use crate::in_memory::{Answer, BODY_LIMIT, send};
use crate::resources::{
    files::{keeping, settings as file_settings, sha256},
    world::job,
};

pub(super) struct Place {
    pub(super) pool: PgPool,
    pub(super) service: Service,
    pub(super) router: Router,
    /// Its database is unavailable.
    pub(super) cut_off: Router,
    /// It has no slot for another stream or wait.
    pub(super) full: Router,
    _files: tempfile::TempDir,
}

impl Place {
    pub(super) async fn new(pool: PgPool) -> Self {
        let settings = || HttpSettings { max_request_body_bytes: BODY_LIMIT, ..HttpSettings::default() };
        let files = tempfile::tempdir().unwrap();
        let own = keeping(pool.clone(), files.path(), file_settings(None)).await;
        let options = pool.connect_options().as_ref().clone();
        let other = PgPoolOptions::new().max_connections(2).connect_with(options).await.unwrap();
        let other_service = keeping(other.clone(), files.path(), file_settings(None)).await;
        let cut_off = router(other_service, settings()).unwrap();
        other.close().await;
        Self {
            router: router(own.clone(), settings()).unwrap(),
            full: router(own.clone(), HttpSettings { max_subscribers: 0, ..settings() }).unwrap(),
            cut_off,
            service: own,
            pool,
            _files: files,
        }
    }

    /// Returns the id of a new submission.
    pub(super) async fn submitted(&self) -> String {
        let answer = ask(&self.router, "POST", "/v1/submissions", Some(&job(json!({})))).await;
        answer.json()["id"].as_str().unwrap().to_owned()
    }

    /// Returns the id of a submission that finished and whose log was archived.
    pub(super) async fn finished(&self) -> String {
        let id = self.submitted().await;
        let log = zstd::encode_all(&b"2026-01-02T03:04:05.000000000Z done\n"[..], 0).unwrap();
        let keep = "INSERT INTO kept_logs (submission_id, attempt, log, size_bytes) VALUES ($1, 1, $2, 36)";
        sqlx::query(keep).bind(&id).bind(log).execute(&self.pool).await.unwrap();
        let end = "UPDATE submissions SET state = 'FINISHED', exit_code = 0, finished_at = now() WHERE id = $1";
        sqlx::query(end).bind(&id).execute(&self.pool).await.unwrap();
        id
    }

    /// Uploads a file and returns its hash.
    pub(super) async fn uploaded(&self) -> String {
        let hash = sha256(b"content");
        assert!([200, 201].contains(&self.upload(&hash, "content").await.status));
        hash
    }

    pub(super) async fn upload(&self, hash: &str, content: impl Into<Body>) -> Answer {
        send(&self.router, Request::put(format!("/v1/files/{hash}")).body(content.into()).unwrap()).await
    }

    /// Returns the path of a signed URL, and the id of its submission.
    pub(super) async fn signed(&self) -> (String, String) {
        let hash = self.uploaded().await;
        let resource = format!("sparkgate-file:/{hash}/a.jar");
        let answer = ask(&self.router, "POST", "/v1/submissions", Some(&job(json!({"appResource": resource})))).await;
        let id = answer.json()["id"].as_str().unwrap().to_owned();
        let url = self.service.files.url_of(&id.parse().unwrap(), &hash, "a.jar").unwrap();
        (url.strip_prefix("http://gateway:6066").unwrap().to_owned(), id)
    }

    /// Returns the ids of a webhook, and of a delivery that was given up.
    pub(super) async fn webhook(&self) -> (String, String) {
        let webhook = json!({"url": "https://hooks.example.org/x"});
        let webhook = ask(&self.router, "POST", "/v1/webhooks", Some(&webhook)).await.json();
        let webhook = webhook["id"].as_str().unwrap().to_owned();
        let dead = "INSERT INTO webhook_deliveries (webhook_id, submission_id, sequence, event, status, ended_at)
            VALUES ($1, 'driver-20260102030405-0000', 1, '{\"attempt\": 1, \"state\": \"QUEUED\"}', 'dead', now()) RETURNING id";
        let delivery: i64 = sqlx::query_scalar(dead).bind(&webhook).fetch_one(&self.pool).await.unwrap();
        (webhook, delivery.to_string())
    }

    pub(super) async fn killed(&self) -> String {
        let id = self.submitted().await;
        ask(&self.router, "DELETE", &format!("/v1/submissions/{id}"), None).await;
        id
    }

    /// Runs `during` while new submissions with this id of a client are launched at once, with this state and reason.
    pub(super) async fn launching<T>(&self, client_id: &str, state: &str, during: impl Future<Output = T>) -> T {
        let run = async |statement: String| {
            sqlx::raw_sql(sqlx::AssertSqlSafe(statement)).execute(&self.pool).await.unwrap();
        };
        run(format!(
            "CREATE FUNCTION launched() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                 IF NEW.client_id = '{client_id}' THEN
                     NEW.state := '{state}';
                     NEW.pod_uid := CASE WHEN NEW.state = 'PENDING' THEN 'uid' END;
                     NEW.reason := CASE WHEN NEW.state = 'ERROR' THEN 'AlreadyExists' END;
                     NEW.finished_at := CASE WHEN NEW.state = 'ERROR' THEN now() END;
                 END IF;
                 RETURN NEW;
             END $$;
             CREATE TRIGGER launched BEFORE INSERT ON submissions FOR EACH ROW EXECUTE FUNCTION launched();"
        ))
        .await;
        let answer = during.await;
        run("DROP FUNCTION launched CASCADE".to_owned()).await;
        answer
    }

    /// Runs `during` while the table lacks a column.
    pub(super) async fn broken<T>(&self, during: impl Future<Output = T>) -> T {
        let rename = async |from: &str, to: &str| {
            let rename = format!("ALTER TABLE submissions RENAME COLUMN {from} TO {to}");
            sqlx::raw_sql(sqlx::AssertSqlSafe(rename)).execute(&self.pool).await.unwrap();
        };
        rename("state", "lost").await;
        let answer = during.await;
        rename("lost", "state").await;
        answer
    }
}

/// Returns a request of Kubeflow's operator.
pub(super) fn application(submission_id: &str) -> Value {
    json!({"submission_id": submission_id, "spark_submit_args": ["--class", "A", "local:///a.jar"]})
}

/// Returns a request of Spark's protocol.
pub(super) fn spark(properties: Value) -> Value {
    json!({"action": "CreateSubmissionRequest", "clientSparkVersion": "4.3.0", "appResource": "local:///a.jar",
        "mainClass": "A", "appArgs": [], "environmentVariables": {}, "sparkProperties": properties})
}
