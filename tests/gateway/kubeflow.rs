//! The submitter of Kubeflow's Spark operator: a replay of its contract. The test plays the operator, which waits for the answer,
//! reads the driver pod by its name, and deletes it.

use axum::{
    Router,
    body::Body,
    http::{Request, header},
};
use http_body_util::BodyExt;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, PostParams};
use serde_json::{Value, json};
use sparkgate::{
    api::{HttpSettings, router},
    service::CleanUpSettings,
    submission::{DriverState, SubmissionId},
};
use sqlx::PgPool;
use tokio_util::sync::{CancellationToken, DropGuard};
use tower::ServiceExt;
use uuid::Uuid;

use crate::world::{World, eventually};

const PATH: &str = "/api/v1/spark-submit";
const POD: &str = "spark-pi-driver";
const LABEL: &str = "sparkoperator.k8s.io/submission-id";

/// A gateway whose loops run, and its router.
struct Submitter {
    world: World,
    router: Router,
    _running: DropGuard,
}

impl Submitter {
    async fn new(pool: PgPool) -> Self {
        let mut world = World::new(pool).await;
        world.watch();
        let stop = CancellationToken::new();
        tokio::spawn(world.service.launcher.clone().run(stop.clone()));
        tokio::spawn(world.service.events.clone().run(stop.clone()));
        let router = router(world.service.clone(), HttpSettings::default()).unwrap();
        Self { world, router, _running: stop.drop_guard() }
    }

    async fn send(&self, method: &str, content_type: &str, body: String) -> (u16, Value) {
        let request = Request::builder().method(method).uri(PATH).header(header::HOST, "gateway");
        let request = request.header(header::CONTENT_TYPE, content_type).body(Body::from(body)).unwrap();
        let response = self.router.clone().oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice(&body).unwrap())
    }

    async fn submit(&self, application: &Value) -> (u16, Value) {
        self.send("POST", "application/json", application.to_string()).await
    }

    /// Sends a request as the operator does, which decides by `error_code` whether it tries again.
    async fn refusal(&self, application: &Value) -> (u16, String, String) {
        let (status, error) = self.submit(application).await;
        assert!(error["timestamp"].as_str().unwrap().ends_with('Z') && error["status"] == status, "{error}");
        assert_eq!(error["submission_id"], application["submission_id"]);
        let text = |member: &str| error[member].as_str().unwrap().to_owned();
        (status, text("error_code"), text("message"))
    }

    /// Returns an application as the operator sends it.
    fn application(&self, submission_id: &str) -> Value {
        let conf = |text: String| ["--conf".to_owned(), text];
        let mut args: Vec<String> =
            ["--class", "org.apache.spark.examples.SparkPi", "--master", "k8s://https://10.96.0.1:443"]
                .into_iter()
                .chain(["--deploy-mode", "cluster", "--name", "spark-pi"])
                .map(str::to_owned)
                .collect();
        for property in [
            format!("spark.kubernetes.namespace={}", self.world.namespace),
            "spark.kubernetes.container.image=spark:4.0.0".to_owned(),
            format!("spark.kubernetes.driver.pod.name={POD}"),
            "spark.kubernetes.submission.waitAppCompletion=false".to_owned(),
            format!("spark.kubernetes.driver.label.{LABEL}={submission_id}"),
            "spark.sparkgate.maxRetries.infrastructure=3".to_owned(),
            "spark.sparkgate.runTimeout=1h".to_owned(),
        ] {
            args.extend(conf(property));
        }
        args.extend(["local:///opt/spark/examples/jars/spark-examples.jar", "5000"].map(str::to_owned));
        let owner = json!({"apiVersion": "sparkoperator.k8s.io/v1beta2", "kind": "SparkApplication", "name": "spark-pi",
            "uid": Uuid::nil(), "controller": true});
        json!({
            "submission_id": submission_id,
            "spark_submit_args": args,
            "driver_pod_template": {
                "metadata": {"creationTimestamp": null, "labels": {"version": "4.0.0"}, "ownerReferences": [owner]},
                "spec": {"containers": [
                    {"name": "side-car", "image": "side-car", "resources": {}},
                    {"name": "spark-kubernetes-driver", "env": [{"name": "FROM", "value": "template"}], "resources": {}},
                ]},
            },
            "executor_pod_template": {"metadata": {"creationTimestamp": null}, "spec": {"containers": null}},
        })
    }

    async fn pod(&self) -> Pod {
        self.world.pods().get(POD).await.unwrap()
    }

    /// Deletes the pod as the operator and the kubelet do, and waits until its name is free.
    async fn delete_pod(&self) {
        self.world.pods().delete(POD, &DeleteParams::default().grace_period(0)).await.unwrap();
        eventually(|| async { self.world.pods().get_opt(POD).await.unwrap().is_none().then_some(()).ok_or("there") })
            .await;
    }

    async fn id_of(&self, submission_id: &str) -> SubmissionId {
        let id = sqlx::query_scalar("SELECT id FROM submissions WHERE client_id = $1").bind(submission_id);
        let id: String = id.fetch_one(&self.world.pool).await.unwrap();
        id.parse().unwrap()
    }
}

fn uuid() -> String {
    Uuid::new_v4().to_string()
}

#[sqlx::test]
async fn the_answer_comes_when_the_pod_exists_and_names_it(pool: PgPool) {
    let submitter = Submitter::new(pool).await;
    let id = uuid();
    let (status, answer) = submitter.submit(&submitter.application(&id)).await;
    assert_eq!(status, 201, "{answer}");
    let pod = submitter.pod().await;
    let metadata = pod.metadata.clone();
    let expected = json!({
        "submission_id": id,
        "app_name": "spark-pi",
        "message": answer["message"],
        "submitted_at": answer["submitted_at"],
        "spark_app_id": metadata.labels.as_ref().unwrap()["spark-app-selector"],
        "driver_pod_name": POD,
        "driver_pod_uid": metadata.uid,
        "namespace": submitter.world.namespace,
        "duplicate_submission": false,
    });
    assert_eq!(answer, expected);
    let labels = metadata.labels.unwrap();
    assert_eq!((labels[LABEL].as_str(), labels["version"].as_str()), (id.as_str(), "4.0.0"));
    assert_eq!(metadata.owner_references.unwrap()[0].kind, "SparkApplication");
    assert!(metadata.finalizers.unwrap_or_default().is_empty(), "the operator deletes the pod when it wants");
    let containers = pod.spec.unwrap().containers;
    let of_spark = containers.iter().find(|container| container.name == "spark-kubernetes-driver").unwrap();
    assert!(of_spark.env.as_ref().unwrap().iter().any(|variable| variable.name == "FROM"), "{of_spark:?}");
    assert_eq!(containers.len(), 2);

    // The operator retries by itself, whatever the arguments say. A time limit is there only if it asks for one.
    let limits =
        "SELECT max_retries_infrastructure + max_retries_application, start_timeout, run_timeout FROM submissions";
    let limits: (i32, Option<i32>, Option<i32>) =
        sqlx::query_as(limits).fetch_one(&submitter.world.pool).await.unwrap();
    assert_eq!(limits, (0, None, Some(3600)));

    let (status, again) = submitter.submit(&submitter.application(&id)).await;
    assert_eq!((status, &again["duplicate_submission"]), (200, &json!(true)), "{again}");
    assert_eq!(
        (&again["driver_pod_uid"], &again["spark_app_id"]),
        (&answer["driver_pod_uid"], &answer["spark_app_id"])
    );
    assert_eq!(submitter.world.driver_count().await, 1);
}

#[sqlx::test]
async fn a_pod_of_another_attempt_is_not_taken_for_a_duplicate(pool: PgPool) {
    let submitter = Submitter::new(pool).await;
    let foreign: Pod = serde_json::from_value(json!({
        "metadata": {"name": POD, "labels": {LABEL: uuid()}},
        "spec": {"containers": [{"name": "other", "image": "other"}]},
    }))
    .unwrap();
    submitter.world.pods().create(&PostParams::default(), &foreign).await.unwrap();
    let application = submitter.application(&uuid());
    let (status, code, message) = submitter.refusal(&application).await;
    assert_eq!((status, code.as_str()), (409, "DRIVER_POD_ALREADY_EXISTS"), "{message}");
    assert!(message.contains(POD), "{message}");
    let again = submitter.refusal(&application).await;
    assert_eq!((again.0, again.1), (status, code), "and again");
    assert_eq!(submitter.pod().await.metadata.labels, foreign.metadata.labels);
}

#[sqlx::test]
async fn a_deleted_pod_makes_room_for_one_of_the_same_name(pool: PgPool) {
    let submitter = Submitter::new(pool).await;
    let (first, second) = (uuid(), uuid());
    let (_, before) = submitter.submit(&submitter.application(&first)).await;
    submitter.world.play_running().await;
    let first_id = submitter.id_of(&first).await;
    submitter.world.until(&first_id, DriverState::Running).await;
    submitter.delete_pod().await;
    let (status, after) = submitter.submit(&submitter.application(&second)).await;
    assert_eq!(status, 201, "{after}");
    assert_ne!(before["driver_pod_uid"], after["driver_pod_uid"]);
    submitter.world.until(&first_id, DriverState::Killed).await;
    submitter.world.play_exit(0).await;
    submitter.world.until(&submitter.id_of(&second).await, DriverState::Finished).await;
}

#[sqlx::test]
async fn clean_up_leaves_the_pods_to_the_operator(pool: PgPool) {
    let submitter = Submitter::new(pool).await;
    let id = uuid();
    submitter.submit(&submitter.application(&id)).await;
    let world = &submitter.world;
    world.play_running().await;
    let own = submitter.id_of(&id).await;
    world.until(&own, DriverState::Running).await;
    world.play_exit(0).await;
    world.until(&own, DriverState::Finished).await;
    world.set(&own, "finished_at = now() - interval '2 days'").await;
    let day = std::time::Duration::from_secs(24 * 3600);
    let ttl = CleanUpSettings { finished_pod_ttl: Some(day), retention: None };
    assert_eq!(world.service.leadership.clean_up(&ttl).await.unwrap().pods, 0);
    submitter.pod().await;
    let retention = CleanUpSettings { finished_pod_ttl: Some(day), retention: Some(day) };
    let cleaned = world.service.leadership.clean_up(&retention).await.unwrap();
    assert_eq!((cleaned.pods, cleaned.submissions), (0, 1), "the record doesn't wait for the operator");
    submitter.pod().await;
}

#[sqlx::test]
async fn every_refusal_has_the_code_that_the_operator_knows(pool: PgPool) {
    let submitter = Submitter::new(pool).await;
    let with = |change: &dyn Fn(&mut Value)| {
        let mut application = submitter.application(&uuid());
        change(&mut application);
        application
    };
    let argument = |at: usize, text: &str| {
        let text = text.to_owned();
        move |application: &mut Value| application["spark_submit_args"][at] = json!(text)
    };
    let no_jar = |application: &mut Value| application["spark_submit_args"] = json!(["--class", "A"]);
    let driver = |application: &mut Value| application["driver_pod_template"]["spec"]["colour"] = json!("green");
    let executor = |application: &mut Value| application["executor_pod_template"] = json!("a file");
    let no_id = |application: &mut Value| application["submission_id"] = json!("");
    let no_list = |application: &mut Value| application["spark_submit_args"] = json!("--class A");
    for (application, status, code, says) in [
        (with(&argument(0, "--klass")), 400, "INVALID_SPARK_SUBMIT_ARGS", "spark_submit_args/0: Unrecognized option"),
        (with(&argument(5, "sideways")), 400, "INVALID_SPARK_SUBMIT_ARGS", "--deploy-mode must be"),
        (with(&no_jar), 400, "INVALID_SPARK_SUBMIT_ARGS", "Missing application resource"),
        (with(&driver), 422, "INVALID_POD_TEMPLATE", "driver_pod_template: "),
        (with(&executor), 422, "INVALID_POD_TEMPLATE", "executor_pod_template"),
        (with(&no_id), 400, "BAD_REQUEST", "submission_id: "),
        (with(&no_list), 400, "INVALID_SPARK_SUBMIT_ARGS", "spark_submit_args: must be an array"),
    ] {
        let (got, error, message) = submitter.refusal(&application).await;
        assert_eq!((got, error.as_str()), (status, code), "{message}");
        assert!(message.contains(says), "{message}");
    }
    let good = submitter.application(&uuid()).to_string();
    for (method, content_type, body, status, code) in [
        ("GET", "application/json", String::new(), 405, "METHOD_NOT_ALLOWED"),
        ("POST", "text/plain", good, 415, "UNSUPPORTED_MEDIA_TYPE"),
        ("POST", "application/json", "{".to_owned(), 400, "BAD_REQUEST"),
        ("POST", "application/json; charset=utf-8", "[]".to_owned(), 400, "BAD_REQUEST"),
    ] {
        let (got, error) = submitter.send(method, content_type, body).await;
        assert_eq!((got, error["error_code"].as_str().unwrap()), (status, code), "{error}");
        assert!(!error["message"].as_str().unwrap().is_empty());
    }
    assert_eq!(submitter.world.driver_count().await, 0);
    // What may pass is the code after which the operator tries again.
    submitter.world.pool.close().await;
    let (status, code, _) = submitter.refusal(&submitter.application(&uuid())).await;
    assert_eq!((status, code.as_str()), (503, "SUBMITTER_OVERLOADED"));
}
