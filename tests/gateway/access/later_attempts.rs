//! What an attempt gets after one that failed, as far as its submission and the policy of its tenant permit.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use kube::{
    Api,
    api::{ListParams, ObjectMeta, PostParams},
};
use serde_json::{Value, json};
use sparkgate::{
    access::Role,
    store::Store,
    submission::{Outcome, Placement, State, StateChange},
};
use sqlx::PgPool;

use crate::access::world::{World, job};

const FILE: &str = "
authentication: {}
tenants:
  red:
    namespaces: [red]
    policy: {images: [spark], limits: {driver: {memory: 3Gi}}}
limits: {writes: 100000/s, reads: 100000/s}
";

struct Repeated {
    world: World,
    key: String,
    id: String,
}

impl Repeated {
    /// Submits a driver of 1408 MiB with these fields.
    async fn new(pool: PgPool, fields: Value) -> Self {
        let world = World::new(pool, FILE).await;
        let key = world.key(Role::Submitter, Some("red")).await;
        let metadata = ObjectMeta { name: Some("red".to_owned()), ..ObjectMeta::default() };
        let namespace = Namespace { metadata, ..Namespace::default() };
        Api::all(world.client.clone()).create(&PostParams::default(), &namespace).await.unwrap();
        let mut body = job("red");
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let submitted = world.send(Some(&key), "POST", "/v1/submissions", Some(&body)).await;
        assert_eq!(submitted.status, 201, "{submitted:?}");
        let id = submitted.json()["id"].as_str().unwrap().to_owned();
        Self { world, key, id }
    }

    /// Launches the attempt, and returns the document.
    async fn launch(&self) -> Value {
        sqlx::query("UPDATE submissions SET not_before = NULL").execute(&self.world.pool).await.unwrap();
        self.world.service.launcher.work().await.unwrap();
        self.world.get(&self.key, &format!("/v1/submissions/{}", self.id)).await.json()
    }

    /// Ends the attempt for want of memory.
    async fn run_out(&self, attempt: i32) {
        self.fail(attempt, "OOMKilled").await;
    }

    async fn fail(&self, attempt: i32, reason: &str) {
        let killed = Outcome { exit_code: Some(137), ..Outcome::new(State::Failed, reason, "killed") };
        let (id, ended) = (self.id.parse().unwrap(), StateChange::Ended(killed));
        let store = Store::new(self.world.pool.clone());
        assert!(store.advance(&id, attempt, None, &ended, &Placement::default()).await.unwrap());
    }

    async fn pod(&self, attempt: &str) -> Pod {
        let params = ListParams::default().labels(&format!("sparkgate.dev/attempt={attempt}"));
        let pods: Api<Pod> = Api::namespaced(self.world.client.clone(), "red");
        pods.list(&params).await.unwrap().items.remove(0)
    }

    /// Returns the memory of the driver of an attempt, and its properties.
    async fn driver(&self, attempt: &str) -> (String, String) {
        let spec = self.pod(attempt).await.spec.unwrap();
        let resources = spec.containers[0].resources.clone().unwrap();
        let memory = resources.requests.unwrap()["memory"].0.clone();
        assert_eq!(memory, resources.limits.unwrap()["memory"].0);
        let volumes = spec.volumes.unwrap_or_default();
        let map = volumes.iter().find_map(|volume| volume.config_map.as_ref()?.name.clone().into()).unwrap();
        let maps: Api<ConfigMap> = Api::namespaced(self.world.client.clone(), "red");
        (memory, maps.get(&map).await.unwrap().data.unwrap()["spark.properties"].clone())
    }
}

#[sqlx::test]
async fn the_next_attempt_has_more_memory_and_says_so(pool: PgPool) {
    let repeated = Repeated::new(pool, json!({"memoryGrowth": {"retries": 3, "max": "2g"}})).await;
    repeated.launch().await;
    assert_eq!(repeated.driver("1").await.0, "1408Mi");
    repeated.run_out(1).await;
    let document = repeated.launch().await;
    assert_eq!((&document["attempt"], &document["state"]), (&json!(2), &json!("PENDING")), "{document}");
    let changes = json!([{"by": "memoryGrowth", "driverResources": {"memory": "2048Mi"},
        "properties": {"spark.driver.memory": "1024m", "spark.driver.memoryOverhead": "1024m"}}]);
    assert_eq!(document["launchChanges"], changes);
    let (memory, properties) = repeated.driver("2").await;
    assert_eq!(memory, "2048Mi");
    assert!(properties.contains("spark.driver.memoryOverhead=1024m\n"), "{properties}");
    assert!(properties.contains("spark.sparkgate.memoryGrowth.max=2048m\n"), "{properties}");
    // It needs more than it may have.
    repeated.run_out(2).await;
    let document = repeated.launch().await;
    let failure = &document["failure"];
    assert_eq!((&document["state"], &failure["code"]), (&json!("ERROR"), &json!("OUT_OF_MEMORY")), "{document}");
    assert_eq!(failure["reason"], "MemoryMax", "{document}");
    assert!(failure["message"].as_str().unwrap().contains("2048 MiB"), "{document}");
}

#[sqlx::test]
async fn memory_that_the_policy_refuses_starts_no_driver(pool: PgPool) {
    let repeated = Repeated::new(pool, json!({"memoryGrowth": {"retries": 3, "factor": 4}})).await;
    repeated.launch().await;
    repeated.run_out(1).await;
    let document = repeated.launch().await;
    assert_eq!((&document["state"], &document["attempt"]), (&json!("ERROR"), &json!(2)), "{document}");
    assert_eq!(document["failure"]["reason"], "PolicyViolation", "{document}");
    assert!(document["failure"]["message"].as_str().unwrap().contains("5632Mi"), "{document}");
    let pods: Api<Pod> = Api::all(repeated.world.client.clone());
    assert_eq!(pods.list(&ListParams::default()).await.unwrap().items.len(), 1);
}

#[sqlx::test]
async fn the_attempts_after_a_lost_node_run_elsewhere(pool: PgPool) {
    let selector = json!({"capacity": "on-demand", "spot": null});
    let spot = json!({"spark.kubernetes.node.selector.spot": "true", "spark.kubernetes.node.selector.disk": "ssd"});
    let mut properties = job("red")["sparkProperties"].clone();
    properties.as_object_mut().unwrap().extend(spot.as_object().unwrap().clone());
    let fields = json!({"afterNodeLoss": {"nodeSelector": selector}, "sparkProperties": properties,
        "maxRetries": {"infrastructure": 2, "application": 1}});
    let repeated = Repeated::new(pool, fields).await;
    let nodes = async |attempt| json!(repeated.pod(attempt).await.spec.unwrap().node_selector);
    repeated.launch().await;
    repeated.fail(1, "Error").await;
    let document = repeated.launch().await;
    assert_eq!((&document["attempt"], document.get("launchChanges")), (&json!(2), None), "{document}");
    repeated.fail(2, "Evicted").await;
    let document = repeated.launch().await;
    assert_eq!(document["launchChanges"], json!([{"by": "afterNodeLoss", "nodeSelector": selector}]), "{document}");
    assert_eq!(nodes("1").await, json!({"spot": "true", "disk": "ssd"}));
    assert_eq!(nodes("3").await, json!({"capacity": "on-demand", "disk": "ssd"}));
    let (_, properties) = repeated.driver("3").await;
    assert!(properties.contains("spark.kubernetes.node.selector.capacity=on-demand\n"), "{properties}");
    assert!(!properties.contains("node.selector.spot=true"), "{properties}");
}

#[sqlx::test]
async fn growth_that_gives_nothing_is_refused(pool: PgPool) {
    let world = World::new(pool, FILE).await;
    let key = world.key(Role::Submitter, Some("red")).await;
    for (growth, memory, field) in [
        (json!({"retries": 1, "factor": 1}), "1g", "#/memoryGrowth/factor"),
        (json!({"retries": 1, "factor": 11}), "1g", "#/memoryGrowth/factor"),
        (json!({"factor": 2}), "1g", "#/memoryGrowth/retries"),
        (json!({"retries": 1000}), "1g", "#/memoryGrowth/retries"),
        (json!({"retries": 1, "max": "1g"}), "2g", "#/memoryGrowth/max"),
        (json!({"retries": 1, "max": "some"}), "1g", "#/memoryGrowth/max"),
    ] {
        let mut body = job("red");
        body["memoryGrowth"] = growth.clone();
        body["sparkProperties"]["spark.driver.memory"] = memory.into();
        let refused = world.send(Some(&key), "POST", "/v1/submissions", Some(&body)).await;
        assert_eq!((refused.status, &refused.json()["errors"][0]["pointer"]), (400, &json!(field)), "{growth}");
    }
    let mut body = job("red");
    body["restart"] = "always".into();
    body["sparkProperties"]["spark.kubernetes.driver.pod.name"] = "mine".into();
    let refused = world.send(Some(&key), "POST", "/v1/submissions", Some(&body)).await;
    assert_eq!(refused.status, 400, "each attempt needs a pod of its own: {refused:?}");
}
