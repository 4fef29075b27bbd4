//! Several Spark lines in one gateway.

use std::{collections::BTreeMap, fmt::Debug, io::Write, sync::Arc};

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::{
    core::v1::{ConfigMap, Pod, Service as KubeService},
    networking::v1::NetworkPolicy,
};
use kube::{
    ResourceExt,
    api::{ListParams, Patch, PatchParams},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use sparkgate::{
    access::{Grant, Principal, Provider, Role},
    cluster::Cluster,
    service::{AccessFile, Error, Service, Session, Settings, SparkSettings, SubmissionOptions, Submitter},
    spark::CreateSubmissionRequest,
    store::{Filter, Store},
    submission::{DriverState, SubmissionId},
};
use sqlx::PgPool;
use tempfile::NamedTempFile;

use crate::in_memory::settings;
use crate::world::{World, eventually};

const RELEASES: [&str; 5] = ["3.5.9", "4.0.5", "4.1.4", "4.2.1", "4.3.0"];
const SPARK_VERSION: &str = "spark.sparkgate.sparkVersion";

/// Returns the settings of a gateway of one release.
fn alone(version: &str) -> SparkSettings {
    let defaults = BTreeMap::from([("spark.kubernetes.container.image".to_owned(), format!("spark:{version}"))]);
    SparkSettings::new(version.parse().unwrap(), defaults, Submitter::default(), "tester".to_owned())
}

/// Returns the settings of a gateway of Spark 4.3.0 that serves all lines.
fn all_lines() -> SparkSettings {
    let lines = RELEASES.map(|version| json!({"version": version, "image": format!("spark:{version}")}));
    alone("4.3.0").with_lines(Some(&json!({ "lines": lines }).to_string())).unwrap()
}

async fn dry_run(
    world: &World,
    request: CreateSubmissionRequest,
    options: SubmissionOptions,
) -> Result<String, String> {
    match world.service.submissions.dry_run(&world.service.anonymous(), request, options).await {
        Ok(plan) => Ok(plan.spark_version().to_string()),
        Err(Error::Refused(refusal)) => Err(refusal.to_string()),
        Err(error) => panic!("{error}"),
    }
}

/// Returns the objects of a kind that a pod owns.
async fn owned<K>(world: &World, uid: &str) -> Vec<Value>
where
    K: kube::Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + DeserializeOwned + Serialize + Debug,
{
    let all = world.api::<K>().list(&ListParams::default()).await.unwrap().items;
    let own = all.iter().filter(|object| object.owner_references().iter().any(|owner| owner.uid == uid));
    own.map(|object| serde_json::to_value(object).unwrap()).collect()
}

/// Returns the objects of a submission as the API server has them, without what differs between two equal submissions.
async fn objects(world: &World, id: &SubmissionId) -> Value {
    let names: Value = sqlx::query_scalar("SELECT names FROM submissions WHERE id = $1")
        .bind(id.as_str())
        .fetch_one(&world.pool)
        .await
        .unwrap();
    let pod = world.driver_named(id).await;
    let uid = pod.uid().unwrap();
    let mut objects = vec![serde_json::to_value(&pod).unwrap()];
    objects.extend(owned::<ConfigMap>(world, &uid).await);
    objects.extend(owned::<KubeService>(world, &uid).await);
    objects.extend(owned::<NetworkPolicy>(world, &uid).await);
    assert!(objects.len() >= 3, "pod, ConfigMap and Service at least");
    for object in &mut objects {
        for key in ["uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"] {
            object["metadata"].as_object_mut().unwrap().remove(key);
        }
        object["metadata"]["annotations"] = Value::Null;
        object["status"] = Value::Null;
        if let Some(text) = object["data"]["spark.properties"].as_str() {
            let mut lines: Vec<_> = text.lines().filter(|line| !line.starts_with("spark.app.submitTime=")).collect();
            // The first one is the time of writing.
            lines.retain(|line| !line.starts_with('#'));
            object["data"]["spark.properties"] = json!(lines.join("\n"));
        }
    }
    let mut text = Value::from(objects).to_string();
    let mut words: Vec<(&str, &str)> =
        names.as_object().unwrap().iter().map(|(name, word)| (name.as_str(), word.as_str().unwrap())).collect();
    words.extend([("id", id.as_str()), ("uid", &uid)]);
    // A name may begin with another one.
    words.sort_by_key(|(_, word)| std::cmp::Reverse(word.len()));
    for (name, word) in words {
        text = text.replace(word, &format!("<{name}>"));
    }
    serde_json::from_str(&text).unwrap()
}

#[sqlx::test]
async fn each_line_of_one_gateway_has_the_objects_of_a_gateway_of_its_own(pool: PgPool) {
    let world = World::new(pool).await;
    let together = world.of_spark(all_lines()).await;
    let properties = |version| {
        let placeholder = ("spark.kubernetes.executor.container.image", "spark:{{SPARK_VERSION}}");
        [(SPARK_VERSION, version), placeholder, ("spark.app.name", "lines"), ("spark.driver.memory", "2g")]
    };
    let mut pairs = Vec::new();
    for version in RELEASES {
        let id = together.submit(&properties(version)).await;
        let own = world.of_spark(alone(version)).await.submit(&properties(version)[1..]).await;
        pairs.push((version, id, own));
    }
    // The replica that launches them serves one line only.
    while world.service.launcher.work().await.unwrap() > 0 {}
    for (version, id, own) in pairs {
        let submission = together.service.submissions.submission(&together.service.anonymous(), &id).await;
        assert_eq!(submission.unwrap().unwrap().spark_version, version);
        let (found, expected) = (objects(&world, &id).await, objects(&world, &own).await);
        assert_eq!(found, expected, "{version}");
        let pod = &found[0];
        assert_eq!(pod["metadata"]["labels"]["spark-version"], version);
        assert_eq!(pod["spec"]["containers"][0]["image"], format!("spark:{version}"));
    }
    let of = async |text: &str| {
        let filter = Filter { spark_version: Some(text.to_owned()), ..Filter::default() };
        together.service.submissions.count(&together.service.anonymous(), &filter).await.unwrap()
    };
    assert_eq!((of("4.1").await, of("4.1.4").await, of("4.1.40").await, of("4").await), (2, 2, 0, 8));
}

#[sqlx::test]
async fn a_version_that_is_not_served_is_refused_with_those_that_are(pool: PgPool) {
    let world = World::new(pool).await;
    let refusal = world.refusal(&[(SPARK_VERSION, "3.5.9")]).await;
    assert!(refusal.contains("`3.5.9`") && refusal.contains("serves 4.3.0 only"), "{refusal}");
    let world = world.of_spark(all_lines()).await;
    for version in ["3.5.8", "4.4", "latest"] {
        let refusal = world.refusal(&[(SPARK_VERSION, version)]).await;
        assert!(refusal.contains(SPARK_VERSION) && refusal.contains(&format!("`{version}`")), "{refusal}");
        assert!(refusal.contains("3.5.9, 4.0.5, 4.1.4, 4.2.1 and 4.3.0"), "{refusal}");
    }
    let options = SubmissionOptions { spark_version: Some("4.0".to_owned()), ..SubmissionOptions::default() };
    let both = world.request(&[(SPARK_VERSION, "3.5")]);
    assert_eq!(dry_run(&world, both, options).await.unwrap(), "4.0.5", "the field overrides the property");
    // A value that only later releases can read.
    let request = |version| world.request(&[(SPARK_VERSION, version), ("spark.driver.memory", "2gib")]);
    assert_eq!(dry_run(&world, request("4.3"), SubmissionOptions::default()).await.unwrap(), "4.3.0");
    let refusal = dry_run(&world, request("3.5"), SubmissionOptions::default()).await.unwrap_err();
    assert!(refusal.contains("spark.driver.memory"), "{refusal}");
}

#[sqlx::test]
async fn the_default_of_a_tenant_applies_below_named_defaults(pool: PgPool) {
    let world = World::new(pool).await;
    let namespace = &world.namespace;
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("defaults")).unwrap();
    std::fs::write(dir.path().join("defaults/etl.conf"), format!("{SPARK_VERSION} 4.1\n")).unwrap();
    let spark = SparkSettings { submitter: Submitter::read(dir.path()).unwrap(), ..all_lines() };
    let settings = Settings { kept_log: 0, ..settings(spark) };
    let tenant = json!({"namespaces": [namespace], "sparkVersions": ["3.5", "4.1.4"], "defaultSparkVersion": "3.5"});
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(json!({"authentication": {}, "tenants": {"red": tenant}}).to_string().as_bytes()).unwrap();
    let access = AccessFile::open(file.path().to_owned(), settings).unwrap();
    let cluster = Cluster::new(world.client.clone(), std::slice::from_ref(namespace));
    let service = Service::new(Store::new(world.pool.clone()), cluster, access).await.unwrap();
    let caller = submitter(&service);
    let version = async |properties: &[(&str, &str)]| {
        let planned =
            service.submissions.dry_run(&caller, world.request(properties), SubmissionOptions::default()).await;
        planned.map(|plan| plan.spark_version().to_string()).map_err(|error| error.to_string())
    };
    assert_eq!(version(&[]).await.unwrap(), "3.5.9");
    assert_eq!(version(&[("spark.sparkgate.defaults", "etl")]).await.unwrap(), "4.1.4");
    assert_eq!(version(&[("spark.sparkgate.defaults", "etl"), (SPARK_VERSION, "3.5.9")]).await.unwrap(), "3.5.9");
    let refusal = version(&[(SPARK_VERSION, "4.3")]).await.unwrap_err();
    assert!(refusal.contains("tenant red may not use Spark 4.3.0; it may use 3.5.9 and 4.1.4"), "{refusal}");
}

/// Returns a caller with the role submitter in the tenant.
fn submitter(service: &Service) -> Session {
    let grant = Grant::in_tenant(Role::Submitter, "red").unwrap();
    let principal = Principal::new(Provider::ApiKey, "x").unwrap().with_grants(vec![grant]);
    Session::new(Arc::new(principal), service.access.current(), None, "test")
}

#[sqlx::test]
async fn another_attempt_keeps_the_version_after_the_default_has_changed(pool: PgPool) {
    let world = World::new(pool).await;
    let before = world.of_spark(alone("3.5.9")).await;
    let id = before.submit(&[("spark.sparkgate.maxRetries.infrastructure", "1")]).await;
    drop(before);
    let mut now = world.of_spark(all_lines()).await;
    now.watch();
    assert_eq!(now.service.launcher.work().await.unwrap(), 1);
    now.play_running().await;
    now.until(&id, DriverState::Running).await;
    let first: Pod = now.driver().await;
    let status = json!({"status": {"phase": "Failed", "reason": "Evicted", "message": "low on memory"}});
    now.pods().patch_status(&first.name_any(), &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    eventually(|| async {
        let attempts = now.service.submissions.attempts(&now.service.anonymous(), &id).await.unwrap();
        (attempts.len() == 2).then_some(()).ok_or(attempts)
    })
    .await;
    now.set(&id, "not_before = NULL").await;
    assert_eq!(now.service.launcher.work().await.unwrap(), 1);
    let second = now.driver_of(2).await;
    assert_eq!(second.labels()["spark-version"], "3.5.9");
    assert_eq!(second.spec.unwrap().containers[0].image.as_deref(), Some("spark:3.5.9"));
    let submission = now.service.submissions.submission(&now.service.anonymous(), &id).await.unwrap().unwrap();
    assert_eq!((submission.spark_version.as_str(), submission.attempt), ("3.5.9", 2));
}
