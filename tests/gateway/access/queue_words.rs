//! The words by which each API names a queue, and their refusals.

use axum::Router;
use k8s_openapi::{api::core::v1::Namespace, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::{Api, api::PostParams};
use serde_json::{Value, json};
use sparkgate::{
    access::Role,
    api::{HttpSettings, livy_listener},
    submission::SubmissionId,
};
use sparkgate_testing::wait::eventually;
use sqlx::PgPool;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::access::world::{World, job, spark_job};
use crate::in_memory::Answer;

/// A job takes three cores: one for its driver, and one for each of two executors.
const ACCESS: &str = "
authentication: {}
tenants:
  red: {namespaces: [red], defaultQueue: day}
  blue: {namespaces: [blue]}
queues:
  day: {tenants: [red], caps: {cores: 4}, maxQueued: 1}
  night: {tenants: [red]}
limits: {writes: 100000/s, reads: 100000/s, failedLogins: 100000/s}
";
const LABEL: &str = "spark.kubernetes.driver.label.kueue.x-k8s.io/queue-name";
const SPARK: &str = "/v1/submissions/create";
const KUBEFLOW: &str = "/api/v1/spark-submit";

struct Gateway {
    world: World,
    livy: Router,
    key: String,
}

impl Gateway {
    async fn new(pool: PgPool) -> Self {
        let world = World::new(pool, ACCESS).await;
        let livy = livy_listener(world.service.clone(), HttpSettings::default()).unwrap();
        let key = world.key(Role::Submitter, None).await;
        Self { world, livy, key }
    }

    async fn post(&mut self, path: &str, body: &Value) -> Answer {
        let is_livys = path == "/batches";
        if is_livys {
            std::mem::swap(&mut self.world.router, &mut self.livy);
        }
        let answer = self.world.send(Some(&self.key), "POST", path, Some(body)).await;
        if is_livys {
            std::mem::swap(&mut self.world.router, &mut self.livy);
        }
        answer
    }

    /// Returns status and text of an answer.
    async fn refusal(&mut self, path: &str, body: &Value) -> (u16, String) {
        let answer = self.post(path, body).await;
        (answer.status, answer.json().to_string().replace('\\', ""))
    }

    /// Returns the queue and the objects of the newest submission.
    async fn newest(&self) -> (Option<String>, String) {
        let newest = sqlx::query_as("SELECT queue, id FROM submissions ORDER BY number DESC LIMIT 1");
        let (queue, id): (_, String) = newest.fetch_one(&self.world.pool).await.unwrap();
        let objects = self.world.get(&self.key, &format!("/v1/submissions/{id}/manifest")).await;
        assert_eq!(objects.status, 200, "{objects:?}");
        (queue, objects.json().to_string())
    }

    async fn count(&self) -> i64 {
        sqlx::query_scalar("SELECT count(*) FROM submissions").fetch_one(&self.world.pool).await.unwrap()
    }

    /// Launches what is admitted, and publishes events.
    async fn launch(&self) -> DropGuard {
        let namespaces = Api::<Namespace>::all(self.world.client.clone());
        let red = Namespace {
            metadata: ObjectMeta { name: Some("red".to_owned()), ..ObjectMeta::default() },
            ..Namespace::default()
        };
        namespaces.create(&PostParams::default(), &red).await.unwrap();
        let (stop, service) = (CancellationToken::new(), &self.world.service);
        tokio::spawn(service.launcher.clone().run(stop.clone()));
        tokio::spawn(service.events.clone().run(stop.clone()));
        stop.drop_guard()
    }

    /// Admits what has room, until the guard is dropped.
    fn admit(&self) -> DropGuard {
        let (stop, service) = (CancellationToken::new(), &self.world.service);
        tokio::spawn(service.leadership.clone().run_renewal(stop.clone()));
        tokio::spawn(service.queues.clone().run(stop.clone()));
        stop.drop_guard()
    }
}

/// Returns a request for the resource API with properties.
fn with(namespace: &str, properties: &[(&str, &str)]) -> Value {
    let mut job = job(namespace);
    for (key, value) in properties {
        job["sparkProperties"][key] = json!(value);
    }
    job
}

/// Returns a request for Spark's protocol with a command line.
fn line(namespace: &str, args: &[&str]) -> Value {
    let mut job = spark_job(namespace);
    job["mainClass"] = json!("org.apache.spark.deploy.SparkSubmit");
    job["appResource"] = json!("");
    let args = args.iter().copied().chain(["--class", "A", "local:///a.jar"]);
    job["appArgs"] = args.map(|arg| json!(arg)).collect();
    job
}

fn batch(namespace: &str, queue: &str, properties: &[(&str, &str)]) -> Value {
    let mut conf = json!({"spark.kubernetes.namespace": namespace});
    for (key, value) in properties {
        conf[key] = json!(value);
    }
    json!({"file": "local:///app.jar", "className": "A", "conf": conf, "queue": queue})
}

fn application(id: &str, args: &[&str]) -> Value {
    let own = ["--conf", "spark.kubernetes.namespace=red", "--class", "A", "local:///a.jar"];
    let args: Vec<&str> = args.iter().copied().chain(own).collect();
    json!({"submission_id": id, "spark_submit_args": args, "driver_pod_template": {"spec": {"containers": null}}})
}

#[sqlx::test]
async fn each_word_of_each_api_names_the_queue(pool: PgPool) {
    let mut gateway = Gateway::new(pool).await;
    for (path, body, queue) in [
        ("/v1/submissions", with("red", &[]), "day"),
        ("/v1/submissions", with("red", &[("spark.sparkgate.queue", "night")]), "night"),
        ("/v1/submissions", with("red", &[(LABEL, "night")]), "night"),
        (SPARK, line("red", &["--queue", "night"]), "night"),
        (SPARK, line("red", &["--conf", "spark.yarn.queue=night"]), "night"),
        (SPARK, line("red", &["--queue", "night", "--conf", "spark.sparkgate.queue=night"]), "night"),
        ("/batches", batch("red", "night", &[]), "night"),
    ] {
        let answer = gateway.post(path, &body).await;
        assert!(
            (200..300).contains(&answer.status) && !answer.json().to_string().contains("no effect"),
            "{body} {answer:?}"
        );
        let (found, objects) = gateway.newest().await;
        assert_eq!(found.as_deref(), Some(queue), "{body}");
        assert!(!objects.contains("kueue.x-k8s.io"), "Kueue would queue the pod a second time: {objects}");
    }
}

#[sqlx::test]
async fn refusals_name_the_word_and_the_queues_of_the_tenant(pool: PgPool) {
    let mut gateway = Gateway::new(pool).await;
    let own = "spark.sparkgate.queue";
    let large = ["--conf", "spark.executor.instances=5"];
    let unknown = r#""noon" is not a queue of tenant red: it may use day, night"#;
    let sum = "driver and executors need 6 cores together, more than the cap of queue day, 4";
    let five = ("spark.executor.instances", "5");
    for (path, body, status, says) in [
        ("/v1/submissions", with("red", &[(own, "noon")]), 422, [unknown, "#/sparkProperties/spark.sparkgate.queue"]),
        ("/v1/submissions", with("red", &[five]), 422, [sum, "queue-refused"]),
        ("/v1/submissions", with("red", &[(own, "day"), (LABEL, "night")]), 400, ["queue \"night\"", "queue \"day\""]),
        (SPARK, line("red", &["--queue", "noon"]), 422, [unknown, "appArgs[--queue]"]),
        (SPARK, line("red", &large), 422, [sum, "ErrorResponse"]),
        (
            SPARK,
            line("red", &["--queue", "day", "--conf", "spark.yarn.queue=night"]),
            400,
            ["appArgs[--queue]", "night"],
        ),
        ("/batches", batch("red", "noon", &[]), 400, [unknown, "Rejected, Reason: queue: "]),
        ("/batches", batch("red", "", &[five]), 400, [sum, "Rejected, Reason: queue: "]),
        (
            "/batches",
            batch("red", "day", &[(own, "night")]),
            400,
            ["conf/spark.sparkgate.queue: ", "queue names queue \"day\""],
        ),
        (KUBEFLOW, application("a", &["--queue", "noon"]), 400, [unknown, "INVALID_SPARK_SUBMIT_ARGS"]),
        (KUBEFLOW, application("a", &large), 400, [sum, "INVALID_SPARK_SUBMIT_ARGS"]),
    ] {
        let (found, text) = gateway.refusal(path, &body).await;
        assert_eq!(found, status, "{body} {text}");
        assert!(says.iter().all(|says| text.contains(says)), "{body} {text}");
    }
    assert_eq!(gateway.count().await, 0);
    // The backlog of the queue.
    assert_eq!(gateway.post("/v1/submissions", &with("red", &[])).await.status, 201);
    for (path, body, status, says) in [
        ("/v1/submissions", with("red", &[]), 429, "too-many-requests"),
        (SPARK, line("red", &[]), 429, "maxQueued"),
        ("/batches", batch("red", "day", &[]), 400, "Rejected, too many sessions are being created!"),
        (KUBEFLOW, application("a", &[]), 503, "SUBMITTER_OVERLOADED"),
    ] {
        let answer = gateway.post(path, &body).await;
        assert_eq!(answer.headers.contains_key("retry-after"), path != KUBEFLOW, "{answer:?}");
        let text = answer.json().to_string();
        assert!(answer.status == status && text.contains(says), "{text}");
    }
}

#[sqlx::test]
async fn a_tenant_without_queues_gets_warnings_about_words_for_yarn(pool: PgPool) {
    let mut gateway = Gateway::new(pool).await;
    let answer = gateway.post("/batches", &batch("blue", "default", &[("spark.yarn.queue", "root")])).await;
    let log = answer.json()["log"].to_string();
    for word in ["queue: ", "spark.yarn.queue: "] {
        assert!(log.contains(&format!("warning: {word}")) && log.contains("the tenant has no queues"), "{log}");
    }
    assert_eq!(gateway.post(SPARK, &line("blue", &["--queue", "default"])).await.status, 200);
    assert_eq!(gateway.post("/v1/submissions", &with("blue", &[(LABEL, "batch")])).await.status, 201);
    let (queue, objects) = gateway.newest().await;
    assert!(queue.is_none() && objects.contains("kueue.x-k8s.io/queue-name"), "it is Kueue's: {objects}");
    let (status, text) = gateway.refusal("/v1/submissions", &with("blue", &[("spark.sparkgate.queue", "day")])).await;
    assert!(status == 422 && text.contains("it may use none"), "{text}");
}

#[sqlx::test]
async fn kubeflows_operator_gets_a_pod_or_an_overload(pool: PgPool) {
    let mut gateway = Gateway::new(pool).await;
    let _running = (gateway.launch().await, gateway.admit());
    let answer = gateway.post(KUBEFLOW, &application("a", &[])).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    let (status, text) = gateway.refusal(KUBEFLOW, &application("b", &[])).await;
    let says = "the cap of queue day on cores has no room for 3: 3 of 4 are used";
    assert!(status == 503 && text.contains("SUBMITTER_OVERLOADED") && text.contains(says), "{text}");
    assert_eq!(gateway.count().await, 1, "nothing is left that would be launched later");
    let again = gateway.post(KUBEFLOW, &application("a", &[])).await;
    assert_eq!((again.status, &again.json()["duplicate_submission"]), (200, &json!(true)), "{again:?}");
    assert_eq!(gateway.post(KUBEFLOW, &application("c", &["--queue", "night"])).await.status, 201);
}

/// Another submission took the room between acceptance and admission.
#[sqlx::test]
async fn an_application_that_its_queue_does_not_admit_in_time_ends(pool: PgPool) {
    let mut gateway = Gateway::new(pool).await;
    let _running = gateway.launch().await;
    let (pool, store) = (gateway.world.pool.clone(), gateway.world.parts.0.clone());
    let end = async {
        let due = "UPDATE submissions SET queue_deadline = now() - interval '1 s' WHERE client_id = 'a' RETURNING id";
        let id: String = eventually(|| async {
            sqlx::query_scalar(due).fetch_optional(&pool).await.unwrap().ok_or("it isn't accepted")
        })
        .await;
        assert_eq!(store.end_overdue_waits(10, None).await.unwrap(), 1);
        id.parse::<SubmissionId>().unwrap()
    };
    let body = application("a", &[]);
    let ((status, text), id) = tokio::join!(gateway.refusal(KUBEFLOW, &body), end);
    assert!(status == 503 && text.contains("SUBMITTER_OVERLOADED"), "{text}");
    assert!(text.contains(id.as_str()) && text.contains("not admitted by queue day within"), "{text}");
}
