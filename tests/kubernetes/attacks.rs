//! Attacks on the boundary of a tenant, on a real kube-apiserver: with the policy of the gateway alone, with the objects of
//! `sparkgate admission` alone, and with both. No pod may exist that is outside the policy, and a pod for each rule must exist.
//!
//! The corpus (`corpus`) has each key of Spark, on each line and in each spelling, and each field of a pod, in templates and in pods
//! that a driver creates itself. `played` creates executors as Spark's driver does. `judge` is the oracle. `explained` compares the
//! policy's answers with those of a dry run and of `sparkgate render`.

mod corpus;
mod explained;
mod judge;
mod played;
mod report;
mod world;

use std::collections::BTreeMap;

use futures::{StreamExt, stream};
use http::Method;
use serde_json::Value;
use sparkgate::spark::parse_properties;
use sqlx::PgPool;

use corpus::{
    Case, Expected,
    direct::{self, Direct},
};
use judge::{Own, Seen};
use report::{Outcome, Report};
use world::{Answer, Caller, Round, World};

/// How many requests are sent at a time.
const AT_A_TIME: usize = 8;

#[sqlx::test]
async fn the_policy_alone_leaves_no_pod_outside(pool: PgPool) {
    attack(pool, Round::Policy).await;
}

#[sqlx::test]
async fn admission_alone_leaves_no_pod_outside(pool: PgPool) {
    attack(pool, Round::Admission).await;
}

#[sqlx::test]
async fn both_together_leave_no_pod_outside_and_refuse_no_good_one(pool: PgPool) {
    attack(pool, Round::Both).await;
}

#[test]
fn the_corpus_has_a_thousand_attacks() {
    let (cases, _) = corpus::corpus();
    let attacks = cases.iter().filter(|case| !matches!(case.expected, Expected::Passes | Expected::Harmless)).count();
    assert!(attacks >= 1000, "{attacks}");
    let names: std::collections::BTreeSet<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    assert_eq!(names.len(), cases.len(), "each case has a name of its own");
}

async fn attack(pool: PgPool, round: Round) {
    let (mut cases, files) = corpus::corpus();
    cases.retain(|case| is_sent(case, round));
    let world = World::new(pool, round, &files).await;
    let mut report = Report::new(round);
    let answers = stream::iter(&cases).map(|case| world.submit(case)).buffered(AT_A_TIME).collect::<Vec<_>>().await;
    if round == Round::Policy {
        for (case, answer) in cases.iter().zip(&answers).filter(|(case, _)| case.is_enough()) {
            report.explained(case, &explained::differences(&world, case, answer).await);
        }
    }
    let refused = world.launch().await;
    let existing = Existing::list(&world).await;
    let played = stream::iter(cases.iter().zip(&answers))
        .map(|(case, answer)| outcome(&world, &existing, &refused, case, answer))
        .buffered(AT_A_TIME)
        .collect::<Vec<_>>()
        .await;
    for (case, (outcome, outside)) in cases.iter().zip(played) {
        report.add(case, &outcome);
        report.outside(&case.name, outside);
    }
    if round == Round::Admission {
        drivers_own(&world, &existing, &mut report).await;
    }
    // What exists after all: also pods that none of the cases accounts for.
    for pod in world.list("/api/v1", "pods").await {
        let name = pod["metadata"]["name"].as_str().unwrap().to_owned();
        report.outside(&name, existing.outside(&world, &pod));
    }
    report.finish();
}

/// Returns whether a case is sent in a round. Only the gateway sees spelling, format and release, so that attacks in all of them concern
/// its policy alone.
fn is_sent(case: &Case, round: Round) -> bool {
    match round {
        Round::Policy => case.expected != Expected::Passes || case.is_enough() || !case.is_plain,
        Round::Admission if case.expected == Expected::Refused => {
            case.is_plain && ["3.5.9", "4.3.0"].contains(&case.release)
        }
        Round::Admission => case.is_enough() && case.expected != Expected::RefusedByPolicyAlone,
        Round::Both => case.is_enough(),
    }
}

/// What exists in the namespace after the launch.
struct Existing {
    /// Drivers by their submissions.
    drivers: BTreeMap<String, Value>,
    /// The objects beside the pod, with their kinds, by the uid of the driver that owns them.
    beside: BTreeMap<String, Vec<(&'static str, Value)>>,
}

impl Existing {
    async fn list(world: &World) -> Self {
        let mut beside: BTreeMap<String, Vec<(&str, Value)>> = BTreeMap::new();
        for (kind, plural) in [
            ("ConfigMap", "configmaps"),
            ("PersistentVolumeClaim", "persistentvolumeclaims"),
            ("Secret", "secrets"),
            ("Service", "services"),
        ] {
            for object in world.list("/api/v1", plural).await {
                let owner = object["metadata"]["ownerReferences"][0]["uid"].as_str().unwrap_or_default().to_owned();
                beside.entry(owner).or_default().push((kind, object));
            }
        }
        let submission =
            |pod: &Value| pod["metadata"]["labels"]["sparkgate.dev/submission-id"].as_str().map(str::to_owned);
        let pods = world.list("/api/v1", "pods").await;
        let drivers = pods.into_iter().filter_map(|pod| Some((submission(&pod)?, pod))).collect();
        Self { drivers, beside }
    }

    fn beside(&self, driver: &str) -> &[(&'static str, Value)] {
        self.beside.get(driver).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns the names of a driver's objects.
    fn own(&self, driver: &str) -> Own {
        let name = |(kind, object): &(&str, Value)| format!("{kind}/{}", object["metadata"]["name"].as_str().unwrap());
        self.beside(driver).iter().map(name).collect()
    }

    /// Judges a pod of the namespace by its role.
    fn outside(&self, world: &World, pod: &Value) -> Vec<String> {
        let metadata = &pod["metadata"];
        let role = if metadata["labels"]["spark-role"] == "executor" { "executor" } else { "driver" };
        let owner = (role == "executor").then(|| metadata["ownerReferences"][0]["uid"].as_str().unwrap_or_default());
        let own = self.own(owner.or_else(|| metadata["uid"].as_str()).unwrap_or_default());
        judge::outside(&Seen { pod, role, namespace: world.namespace, owner, own: &own })
    }
}

/// Returns what became of a case, and what is outside the policy among what exists of it.
async fn outcome(
    world: &World,
    existing: &Existing,
    refused: &BTreeMap<String, String>,
    case: &Case,
    answer: &Answer,
) -> (Outcome, Vec<String>) {
    if answer.status >= 400 {
        return (Outcome::of_gateway(answer), Vec::new());
    }
    let id = answer.body["id"].as_str().or_else(|| answer.body["submissionId"].as_str()).unwrap();
    let Some(driver) = existing.drivers.get(id) else {
        let message = refused.get(id).map_or("it is not there, and no one refused it", String::as_str);
        return (Outcome::RefusedByCluster(message.to_owned()), Vec::new());
    };
    let uid = driver["metadata"]["uid"].as_str().unwrap();
    let mut outside = existing.outside(world, driver);
    let map = |key: &str| {
        let maps = existing.beside(uid).iter().filter(|(kind, _)| *kind == "ConfigMap");
        maps.filter_map(|(_, map)| map["data"][key].as_str()).next_back().map(str::to_owned)
    };
    let properties = parse_properties(&map("spark.properties").unwrap_or_default());
    // The cluster sees only pods, and an operator may set more.
    if world.has_policy() && case.expected != Expected::Harmless {
        outside.extend(judge::outside_in_properties(&properties));
        let beside = existing.beside(uid).iter();
        outside.extend(beside.flat_map(|(kind, object)| judge::outside_beside(kind, object)));
    }
    let template = map("podspec-configmap-key").and_then(|text| serde_saphyr::from_str::<Value>(&text).ok());
    let executor = played::executor(driver, &properties, template.as_ref());
    let pods = format!("/api/v1/namespaces/{}/pods?dryRun=All", world.namespace);
    let caller = Caller::Driver(driver);
    match world.call(caller, Method::POST, &pods, "application/json", executor.to_string()).await {
        Ok(executor) => {
            outside.extend(existing.outside(world, &executor).into_iter().map(|what| format!("executor: {what}")));
            (Outcome::Exists, outside)
        }
        Err((_, message)) => (Outcome::ExecutorRefused(message), outside),
    }
}

/// Sends what a driver could send with its own token.
async fn drivers_own(world: &World, existing: &Existing, report: &mut Report) {
    let driver = existing.drivers.values().next().unwrap();
    let pods = format!("/api/v1/namespaces/{}/pods", world.namespace);
    let executor = direct::executor(driver, world.namespace, "existing");
    let created = world.call(Caller::Driver(driver), Method::POST, &pods, "application/json", executor.to_string());
    created.await.unwrap();
    let requests = direct::requests(driver, world.namespace, "existing");
    let replies = stream::iter(&requests)
        .map(|Direct { method, path, content_type, body, .. }| {
            let separator = if path.contains('?') { '&' } else { '?' };
            let (path, method) = (format!("{path}{separator}dryRun=All"), method.parse().unwrap());
            async move { world.call(Caller::Driver(driver), method, &path, content_type, body.clone()).await }
        })
        .buffered(AT_A_TIME)
        .collect::<Vec<_>>()
        .await;
    for (request, reply) in requests.iter().zip(replies) {
        if let Ok(object) = &reply
            && object["kind"] == "Pod"
        {
            report.outside(&request.name, existing.outside(world, object));
        }
        report.add_direct(request, reply);
    }
}
