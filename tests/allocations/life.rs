//! The whole life of one submission, step by step: the statements and the calls of the Kubernetes API that each step
//! takes. Work that depends on time and not on submissions is left out: leases, and the numbering of events.

use futures::{Stream, StreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client,
    api::{ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};
use sparkgate::{
    cluster::{Cluster, WatchItem, WatchReport},
    service::{Service, SubmissionOptions},
    spark::rest::parse_create,
};
use sparkgate_testing::{database, kube_apiserver::KubeApiserver, request::request, rights};
use sqlx::PgPool;

use crate::{
    expected::{Costs, compare},
    statements::{Statements, is_of_a_lease, list},
    world,
};

/// On a busy machine a step may take so long that a lease has to be renewed in it.
const TRIES: usize = 5;

#[sqlx::test]
async fn cost_of_a_whole_life_is_as_expected(pool: PgPool) {
    let server = KubeApiserver::start().await;
    let namespace = format!("test-{}", uuid::Uuid::new_v4().simple());
    server.create_namespace(&namespace).await;
    let cluster = Cluster::new(server.gateway().await, std::slice::from_ref(&namespace));
    let service = world::service(&database::url(&pool), cluster).await;
    let mut observed = service.pods.watch_pods(Some(&namespace), None);
    while !matches!(observed.next().await.unwrap().report, Some(WatchReport::Listed { .. })) {}
    let statements = Statements::listen();

    // The first submission opens connections and prepares statements.
    let mut life =
        Life { service: &service, client: server.admin().await, namespace, statements: &statements, steps: Vec::new() };
    life.live(0, &mut observed).await;
    for n in 1..=TRIES {
        life.steps.clear();
        let calls_before = calls(server, &life.namespace);
        life.live(n, &mut observed).await;
        if life.steps.iter().flat_map(|(_, sent)| sent).any(|sent| is_of_a_lease(sent)) {
            continue;
        }
        let mut costs = calls(server, &life.namespace);
        for (call, before) in calls_before {
            costs.entry(call).and_modify(|count| *count -= before);
        }
        costs.retain(|_, count| *count > 0);
        let mut details = String::new();
        for (step, sent) in &life.steps {
            costs.insert(format!("statements: {step}"), sent.len() as u64);
            details += &format!("  statements to {step}:\n{}", list(sent));
        }
        let all = life.steps.iter().map(|(_, sent)| sent.len() as u64).sum();
        costs.insert("statements".to_owned(), all);
        return compare("whole life", costs, &details);
    }
    panic!("each step takes seconds");
}

struct Life<'a> {
    service: &'a Service,
    client: Client,
    namespace: String,
    statements: &'a Statements,
    /// The statements of each step.
    steps: Vec<(&'static str, Vec<String>)>,
}

impl Life<'_> {
    async fn live(&mut self, n: usize, observed: &mut (impl Stream<Item = WatchItem> + Unpin)) {
        self.service.leadership.renew().await.unwrap();
        self.statements.take();
        let (request, _) =
            parse_create(&request(n, &self.namespace), self.service.submissions.spark_version()).unwrap();
        self.service
            .submissions
            .submit(&self.service.anonymous(), request, SubmissionOptions::default(), ())
            .await
            .unwrap();
        self.step("accept");
        assert_eq!(self.service.launcher.work().await.unwrap(), 1);
        self.step("launch");
        self.process_reports(observed).await;
        self.step("see the pod");
        self.play("Running", json!({"running": {"startedAt": "2026-01-01T00:00:00Z"}})).await;
        self.process_reports(observed).await;
        self.step("see it run");
        self.play("Succeeded", json!({"terminated": {"exitCode": 0, "reason": "Completed"}})).await;
        self.process_reports(observed).await;
        // The finalizer is removed after the outcome is committed.
        let let_go = self.next(observed).await;
        self.step("see its end and let it go");
        self.service.pods.process_reports(Some(&self.namespace), [let_go]).await;
        self.step("see that it is let go");
    }

    fn step(&mut self, name: &'static str) {
        self.steps.push((name, self.statements.take()));
    }

    async fn process_reports(&self, observed: &mut (impl Stream<Item = WatchItem> + Unpin)) {
        let seen = self.next(observed).await;
        self.service.pods.process_reports(Some(&self.namespace), [seen]).await;
    }

    async fn next(&self, observed: &mut (impl Stream<Item = WatchItem> + Unpin)) -> WatchReport {
        loop {
            match observed.next().await.unwrap().report {
                Some(seen @ WatchReport::Driver(_)) => return seen,
                Some(WatchReport::Broken { reason }) => panic!("{reason}"),
                _ => {}
            }
        }
    }

    /// Reports as a kubelet the state of the newest driver's container.
    async fn play(&self, phase: &str, container: Value) {
        let pods = Api::<Pod>::namespaced(self.client.clone(), &self.namespace);
        let all = pods.list(&ListParams::default().labels("spark-role=driver")).await.unwrap().items;
        let live = all.into_iter().find(|pod| pod.metadata.finalizers.is_some()).unwrap();
        let status = json!({"status": {"phase": phase, "podIP": "10.1.2.3", "containerStatuses": [{
            "name": "spark-kubernetes-driver", "image": "spark", "imageID": "", "ready": true, "restartCount": 0,
            "state": container}]}});
        pods.patch_status(&live.metadata.name.unwrap(), &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    }
}

/// Returns the gateway's calls in a namespace, by verb and resource, without its watch.
fn calls(server: &KubeApiserver, namespace: &str) -> Costs {
    let mut calls = Costs::new();
    for line in std::fs::read_to_string(server.file("audit.log")).unwrap().lines() {
        let call: Value = serde_json::from_str(line).unwrap();
        let (object, text) = (&call["objectRef"], |value: &Value| value.as_str().unwrap_or_default().to_owned());
        let (resource, sub) = (text(&object["resource"]), text(&object["subresource"]));
        let (verb, user) = (text(&call["verb"]), text(&call["user"]["username"]));
        let followed = resource == "pods" && matches!(verb.as_str(), "list" | "watch");
        if object["namespace"] == namespace && user == rights::USER && !followed {
            let sub = if sub.is_empty() { sub } else { format!("/{sub}") };
            *calls.entry(format!("calls: {verb} {resource}{sub}")).or_default() += 1;
        }
    }
    calls
}
