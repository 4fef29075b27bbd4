//! Traces over OTLP: with a real collector, with one that is away, and with one that never answers.

use std::{
    collections::BTreeSet,
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use sparkgate_testing::{
    gateway::{Gateway, sparkgate, until},
    http,
    kube_apiserver::{ADMIN, KubeApiserver},
    process::free_address,
};

use crate::{
    collector::{Collector, Span},
    crash::{Node, Place},
};

/// A driver that writes its trace to the file in its last argument.
const TRACED_SPARK: &str = "#!/bin/sh
for file; do :; done
echo \"$TRACEPARENT $TRACESTATE\" > \"$file\"
";
/// In each place of a request that no span may show.
const SECRET: &str = "CANARYoftheSECRETS";
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CALLER: &str = "b7ad6b7169203331";

/// Starts a gateway that exports its spans soon.
fn serve(place: &Place, endpoint: &str, kubeconfig: Option<&Path>) -> Gateway {
    let (mut command, address) = place.command_at(kubeconfig.unwrap_or(&place.kubeconfig));
    command.env("SPARKGATE_OTLP_ENDPOINT", endpoint).env("OTEL_BSP_SCHEDULE_DELAY", "50");
    Gateway::start(command, address, false)
}

/// Returns a kubeconfig of an API server that doesn't answer.
fn unreachable_cluster(dir: &Path) -> PathBuf {
    let path = dir.join("unreachable");
    let config = json!({"apiVersion": "v1", "kind": "Config", "current-context": "a",
        "clusters": [{"name": "a", "cluster": {"server": format!("http://{}", free_address())}}],
        "users": [{"name": "a", "user": {}}], "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}]});
    fs::write(&path, config.to_string()).unwrap();
    path
}

fn job(namespace: &str, file: &Path) -> Value {
    json!({
        "appResource": "local:///opt/app.py",
        "appArgs": [file],
        "sparkProperties": {
            "spark.kubernetes.namespace": namespace,
            "spark.kubernetes.container.image": "spark",
            "spark.hadoop.fs.s3a.secret.key": SECRET,
        },
        "environmentVariables": {"DB_PASSWORD": SECRET},
    })
}

fn submit(gateway: &Gateway, headers: &[&str], job: &Value) -> String {
    let secret = format!("Authorization: Bearer {SECRET}");
    let cookie = format!("Cookie: session={SECRET}");
    let headers: Vec<_> = headers.iter().copied().chain([secret.as_str(), cookie.as_str()]).collect();
    let path = format!("/v1/submissions?token={SECRET}");
    // The query is refused, and its span must not show it either.
    assert_eq!(http::post_with(gateway.address, &path, &headers, &job.to_string()).unwrap().status, 400);
    let reply = http::post_with(gateway.address, "/v1/submissions", &headers, &job.to_string()).unwrap();
    assert_eq!(reply.status, 201, "{}", reply.body);
    reply.json()["id"].as_str().unwrap().to_owned()
}

/// Returns the spans below one as an indented text.
fn as_text(spans: &[Span], parent: &str, depth: usize) -> String {
    let mut below: Vec<_> = spans.iter().filter(|span| span.parent == parent).collect();
    below.sort_by_key(|span| span.from);
    let text = below.into_iter().map(|span| {
        let name = format!("{}{}", "  ".repeat(depth), span.name);
        let milliseconds = (span.to - span.from) as f64 / 1e6;
        let (replica, state) = (span.instance.get(..4).unwrap_or_default(), span.get("sparkgate.state"));
        let line = format!("{name:50} {replica} {milliseconds:8.1} ms {state} {}", span.events.join(", "));
        format!("{}\n{}", line.trim_end(), as_text(spans, &span.id, depth + 1))
    });
    text.collect()
}

fn named<'a>(spans: &'a [Span], name: &str) -> Vec<&'a Span> {
    spans.iter().filter(|span| span.name == name).collect()
}

#[tokio::test]
async fn a_submission_is_one_trace_across_a_replica_that_dies_and_the_one_that_launches_it() {
    let dir = tempfile::tempdir().unwrap();
    let server = KubeApiserver::start().await;
    let (place, collector) = (Place::new(server).await, Collector::start());
    let _node = Node::with_spark(&server.file(ADMIN), dir.path(), TRACED_SPARK);
    let of_trace = || {
        let mut spans = collector.spans();
        spans.retain(|span| span.trace == TRACE);
        spans
    };

    // The first replica reaches no cluster, so that another one has to launch what it accepts.
    let cluster = unreachable_cluster(dir.path());
    let accepting = serve(&place, &collector.url(), Some(&cluster));
    let headers = [format!("traceparent: 00-{TRACE}-{CALLER}-01"), "tracestate: vendor=a1".to_owned()];
    let file = dir.path().join("trace-of-driver");
    let id = submit(&accepting, &headers.each_ref().map(String::as_str), &job(&place.namespace, &file));
    until("the collector has the request", || named(&of_trace(), "POST /v1/submissions").len() == 2);
    accepting.kill_dash_nine();

    let launching = serve(&place, &collector.url(), None);
    launching.follow(&id, "FINISHED");
    until("the collector has the submission", || {
        let spans = of_trace();
        ["launch", "archive log", "attempt", "submission"].iter().all(|name| !named(&spans, name).is_empty())
    });
    assert!(launching.terminate(), "a graceful end");

    let spans = of_trace();
    println!("{}", as_text(&spans, CALLER, 0));
    let ids: BTreeSet<_> = spans.iter().map(|span| span.id.as_str()).chain([CALLER]).collect();
    for span in &spans {
        assert!(ids.contains(span.parent.as_str()), "the parent of {span:?} is missing");
        assert!(
            span.from <= span.to && (span.name.contains("v1") || !span.is_error || span.name == "submit"),
            "{span:?}"
        );
    }
    let requests = named(&spans, "POST /v1/submissions");
    let request = requests.iter().find(|span| span.get("http.response.status_code") == "201").unwrap();
    assert_eq!((request.parent.as_str(), request.get("http.route")), (CALLER, "/v1/submissions"));
    let submit = *named(&spans, "submit").iter().find(|span| span.parent == request.id).unwrap();
    assert_eq!((submit.get("sparkgate.submission.id"), submit.get("sparkgate.tenant")), (id.as_str(), "default"));
    let statement = *named(&spans, "accepting a submission").first().unwrap();
    assert_eq!((&statement.parent, statement.get("db.system.name")), (&submit.id, "postgresql"));

    let launch = *named(&spans, "launch").last().unwrap();
    assert_eq!(launch.parent, submit.id);
    assert_ne!(launch.instance, submit.instance, "another process launched it");
    let created = *named(&spans, "creating the driver pod").last().unwrap();
    assert_eq!((&created.parent, created.get("peer.service")), (&launch.id, "kubernetes"));
    assert_eq!(named(&spans, "creating the ConfigMap").len(), 1);

    let follow = named(&spans, "follow");
    assert!(follow.iter().any(|span| span.get("sparkgate.state") == "FINISHED"), "{follow:#?}");
    let archived = named(&spans, "archive log")[0];
    assert!(follow.iter().any(|span| span.id == archived.parent), "{archived:?}");

    let whole = named(&spans, "submission");
    let [whole] = whole[..] else { panic!("{whole:?}") };
    assert_eq!((whole.parent.as_str(), whole.get("sparkgate.state")), (submit.id.as_str(), "FINISHED"));
    assert!(whole.from <= launch.from && whole.to >= launch.to, "{whole:?}");
    let attempt = named(&spans, "attempt")[0];
    assert_eq!((&attempt.parent, attempt.events.first().map(String::as_str)), (&whole.id, Some("QUEUED")));
    assert_eq!(attempt.events.last().map(String::as_str), Some("FINISHED"));

    // The driver continues it.
    let driver = fs::read_to_string(&file).unwrap();
    assert_eq!(driver.trim(), format!("00-{TRACE}-{}-01 vendor=a1", submit.id));
    let text = collector.text();
    assert!(!text.contains(SECRET), "{text}");
}

#[tokio::test]
async fn a_kill_is_linked_to_the_trace_of_its_submission() {
    let dir = tempfile::tempdir().unwrap();
    let (place, collector) = (Place::without_rights(KubeApiserver::start().await).await, Collector::start());
    let cluster = unreachable_cluster(dir.path());
    let gateway = serve(&place, &collector.url(), Some(&cluster));
    let id = submit(&gateway, &[], &job(&place.namespace, Path::new("x")));
    assert_eq!(gateway.kill(&id)["success"], true);
    until("the collector has the kill and the end", || {
        let spans = collector.spans();
        !named(&spans, "kill").is_empty() && !named(&spans, "submission").is_empty()
    });
    let spans = collector.spans();
    let (kill, whole) = (named(&spans, "kill")[0], named(&spans, "submission")[0]);
    let submit = *named(&spans, "submit").iter().find(|span| span.get("sparkgate.submission.id") == id).unwrap();
    assert_eq!((kill.links, kill.trace == submit.trace), (1, false), "the request for the kill is a trace of its own");
    assert_eq!((&whole.trace, whole.get("sparkgate.failure.code")), (&submit.trace, "KILLED_ON_REQUEST"));
    assert!(!whole.is_error, "a kill is no error");
    assert!(!collector.text().contains(SECRET));
}

#[tokio::test]
async fn a_collector_that_is_away_or_never_answers_delays_and_fails_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoints = [free_address(), silent.local_addr().unwrap()];
    for (endpoint, is_refused) in endpoints.into_iter().zip([true, false]) {
        let place = Place::without_rights(KubeApiserver::start().await).await;
        let cluster = unreachable_cluster(dir.path());
        let gateway = serve(&place, &format!("http://{endpoint}"), Some(&cluster));
        for _ in 0..20 {
            submit(&gateway, &[], &job(&place.namespace, Path::new("x")));
        }
        if is_refused {
            until("the log has the failure", || gateway.log().contains("traces can't be exported"));
            submit(&gateway, &[], &job(&place.namespace, Path::new("x")));
        }
        let log = gateway.log();
        assert!(log.matches("traces can't be exported").count() <= 1, "once: {log}");
        let began = Instant::now();
        assert!(gateway.terminate(), "a graceful end");
        assert!(began.elapsed() < Duration::from_secs(60), "within the time of a shutdown");
    }
}

#[tokio::test]
async fn without_an_endpoint_a_driver_gets_no_trace() {
    let dir = tempfile::tempdir().unwrap();
    let place = Place::without_rights(KubeApiserver::start().await).await;
    let (command, address) = place.command_at(&unreachable_cluster(dir.path()));
    let gateway = Gateway::start(command, address, false);
    let trace = format!("traceparent: 00-{TRACE}-{CALLER}-01");
    let id = submit(&gateway, &[&trace], &job(&place.namespace, Path::new("x")));
    let objects = http::get(gateway.address, &format!("/v1/submissions/{id}/manifest")).unwrap().body;
    assert!(objects.contains("spark.properties") && !objects.contains("TRACEPARENT"), "{objects}");
}

#[test]
fn an_option_of_opentelemetry_that_cannot_be_meant_ends_the_start() {
    let mut command = sparkgate();
    command.args(["serve", "--database-url", "postgres://nobody@127.0.0.1:1/x"]);
    command.env("SPARKGATE_OTLP_ENDPOINT", "http://127.0.0.1:4318").env("OTEL_TRACES_SAMPLER", "sometimes");
    let ended = ended(command);
    assert!(ended.contains("OTEL_TRACES_SAMPLER=sometimes") && ended.contains("parentbased_always_on"), "{ended}");
}

fn ended(mut command: Command) -> String {
    let output = command.args(["--listen", &free_address().to_string()]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    String::from_utf8_lossy(&output.stderr).into_owned()
}
