//! The generated objects on a real kube-apiserver: that it accepts them, and what it then refuses to whom.

mod claims;
mod deletions;
mod secrets;
mod world;

use serde_json::{Value, json};
use sparkgate_admission::missing;

use self::world::{Caller, Change, EARLIER_POD, World, path, world};

const PODS: &str = "/api/v1/namespaces/analytics/pods";

/// Returns a pod that meets the level `restricted`.
fn pod(name: &str, role: &str, account: &str, image: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": name, "labels": { "spark-role": role, "spark-app-selector": "spark-1" } },
        "spec": {
            "serviceAccountName": account,
            "restartPolicy": "Never",
            "containers": [{
                "name": "spark",
                "image": image,
                "resources": { "requests": { "cpu": "1m", "memory": "1Mi" } },
                "securityContext": {
                    "allowPrivilegeEscalation": false,
                    "runAsNonRoot": true,
                    "capabilities": { "drop": ["ALL"] },
                    "seccompProfile": { "type": "RuntimeDefault" }
                }
            }]
        }
    })
}

/// Returns a driver as the gateway marks it.
fn driver(name: &str) -> Value {
    let mut driver = pod(name, "driver", "spark", "spark");
    put_labels(&mut driver);
    driver["metadata"]["annotations"] =
        json!({ "sparkgate.dev/identity": "x", "sparkgate.dev/driver-container": "spark" });
    driver["metadata"]["finalizers"] = json!(["sparkgate.dev/outcome"]);
    driver
}

/// Returns an executor with the labels of its driver.
fn executor(name: &str, owner: &Value) -> Value {
    let mut executor = pod(name, "executor", "spark", "spark");
    put_labels(&mut executor);
    executor["metadata"]["ownerReferences"] = json!([reference(owner)]);
    executor
}

fn put_labels(pod: &mut Value) {
    for (key, value) in [("submission-id", "driver-20260101000000-0001"), ("attempt", "1"), ("instance", "i")] {
        pod["metadata"]["labels"][format!("sparkgate.dev/{key}")] = json!(value);
    }
}

fn reference(owner: &Value) -> Value {
    let metadata = &owner["metadata"];
    json!({ "apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"], "controller": true })
}

fn with(mut pod: Value, pointer: &str, value: Value) -> Value {
    let (parent, member) = pointer.rsplit_once('/').unwrap();
    pod.pointer_mut(parent).unwrap()[member.replace("~1", "/")] = value;
    pod
}

/// A driver, and what acts with its token.
struct Running {
    pod: Value,
    caller: Caller,
}

async fn running(world: &World, name: &str) -> Running {
    let gateway = world.gateway().await;
    let pod = world.call(&gateway, &Change::post(PODS.to_owned(), driver(name))).await.unwrap();
    let caller = world.account("analytics", "spark", Some(&pod)).await;
    Running { pod, caller }
}

/// Sends each change as a dry run, and compares the verdict: part of the refusal's message, or `None` if it must be permitted.
async fn judge(world: &World, caller: &Caller, cases: Vec<(&str, Change<'_>, Option<&str>)>) {
    let mut wrong = Vec::new();
    for (what, mut change, expected) in cases {
        change.path += if change.path.contains('?') { "&dryRun=All" } else { "?dryRun=All" };
        match (world.call(caller, &change).await, expected) {
            (Ok(_), None) => {}
            (Err(message), Some(part)) if message.contains(part) => {}
            (Ok(_), Some(part)) => wrong.push(format!("{what}: permitted, expected `{part}`")),
            (Err(message), _) => wrong.push(format!("{what}: {message}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn create(pod: Value) -> Change<'static> {
    Change::post(PODS.to_owned(), pod)
}

fn change(pod: &str, patch: Value) -> Change<'static> {
    Change::patch(format!("{PODS}/{pod}"), patch)
}

fn labels(key: &str, value: Value) -> Value {
    json!({ "metadata": { "labels": { key: value } } })
}

fn container_image(image: &str) -> Value {
    json!({ "spec": { "containers": [{ "name": "spark", "image": image }] } })
}

const OWN: Option<&str> =
    Some("only pods with the label spark-role=executor and the requesting pod as their only owner");
const OTHERS: Option<&str> = Some("only the requesting pod and the executors that it owns");
/// Both policies refuse it, and the API server gives the message of either.
const BOTH: Option<&str> = Some("denied request");
const MARK: Option<&str> = Some("only the gateway sets these labels");
const IMAGE: Option<&str> = Some("doesn't permit these images");
const ONCE: Option<&str> = Some("a driver runs once");

/// Returns another container with these fields.
fn beside(fields: Value) -> Value {
    let mut container = driver("d")["spec"]["containers"][0].clone();
    container["name"] = json!("beside");
    container.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    json!([container])
}

fn restarts_all() -> Value {
    let codes = json!({ "operator": "In", "values": [1] });
    let rules = json!([{ "action": "RestartAllContainers", "exitCodes": codes }]);
    json!({ "restartPolicy": "Always", "restartPolicyRules": rules })
}

#[tokio::test]
async fn the_api_server_accepts_all_objects_and_finds_no_fault_in_their_types() {
    let world = world().await;
    let find = |kind: &str, namespace: Option<&str>, name: &str| {
        let is = |object: &&Value| {
            object["kind"] == kind
                && object["metadata"]["name"] == name
                && object["metadata"]["namespace"].as_str() == namespace
        };
        world.applied.iter().find(is).cloned()
    };
    assert_eq!(missing(&world.objects, find), Vec::<String>::new());
    for object in world.objects.iter().filter(|object| object.manifest["kind"] == "ValidatingAdmissionPolicy") {
        let checked = world
            .until("the types are checked", async |world| {
                let policy = world.get(&Caller::Admin, &path(&object.manifest)).await?;
                match policy["status"]["typeChecking"].is_object() {
                    true => Ok(policy),
                    false => Err("not yet".to_owned()),
                }
            })
            .await;
        assert_eq!(checked["status"]["typeChecking"], json!({}));
    }
}

#[tokio::test]
async fn a_driver_creates_only_executors_of_its_own() {
    let world = world().await;
    let (own, other) = (running(world, "creates-1").await, running(world, "creates-2").await);
    let fine = || executor("e", &own.pod);
    // Without the gateway's labels, so that the rule for owners alone refuses it.
    let plain = |owners: Value| with(pod("e", "executor", "spark", "spark"), "/metadata/ownerReferences", owners);
    let second = with(reference(&other.pod), "/controller", json!(false));
    judge(
        world,
        &own.caller,
        vec![
            ("an executor", create(fine()), None),
            ("an executor without labels of the gateway", create(plain(json!([reference(&own.pod)]))), None),
            ("a driver", create(driver("d")), BOTH),
            ("of another driver", create(plain(json!([reference(&other.pod)]))), OWN),
            ("of two drivers", create(plain(json!([reference(&own.pod), second]))), OWN),
            ("of none", create(plain(json!([]))), OWN),
            ("of another driver, with labels", create(executor("e", &other.pod)), BOTH),
            ("without a role", create(with(plain(json!([reference(&own.pod)])), "/metadata/labels", json!({}))), OWN),
            ("another mark", create(with(fine(), "/metadata/labels/sparkgate.dev~1x", json!(""))), MARK),
            (
                "an identity",
                create(with(fine(), "/metadata/annotations", json!({ "sparkgate.dev/identity": "x" }))),
                Some("only the gateway sets these annotations: sparkgate.dev/identity"),
            ),
            (
                "the gateway's finalizer",
                create(with(fine(), "/metadata/finalizers", json!(["sparkgate.dev/outcome"]))),
                BOTH,
            ),
            (
                "another finalizer",
                create(with(fine(), "/metadata/finalizers", json!(["example.org/x"]))),
                Some("no nodeName and no finalizers"),
            ),
            ("a node", create(with(fine(), "/spec/nodeName", json!("n"))), Some("no nodeName and no finalizers")),
            (
                "another account",
                create(with(fine(), "/spec/serviceAccountName", json!("x"))),
                Some("spark, spark-batch"),
            ),
            ("the second account", create(with(fine(), "/spec/serviceAccountName", json!("spark-batch"))), None),
            (
                "a volume of another type",
                create(with(fine(), "/spec/volumes", json!([{ "name": "v", "downwardAPI": {} }]))),
                Some("doesn't permit the type of a volume"),
            ),
        ],
    )
    .await;
    let unbound = world.account("analytics", "spark", None).await;
    let cases = vec![("a token of no pod", create(plain(json!([reference(&own.pod)]))), OWN)];
    judge(world, &unbound, cases).await;
}

#[tokio::test]
async fn a_driver_changes_and_deletes_only_itself_and_its_executors() {
    let world = world().await;
    let (own, other) = (running(world, "changes-1").await, running(world, "changes-2").await);
    world.call(&own.caller, &create(executor("changes-e", &own.pod))).await.unwrap();
    let app = |name: &str| format!("{PODS}?labelSelector=spark-role%3Dexecutor%2Cspark-app-selector%3D{name}");
    judge(
        world,
        &own.caller,
        vec![
            ("its instance", change("changes-1", labels("sparkgate.dev/instance", Value::Null)), MARK),
            ("its submission", change("changes-1", labels("sparkgate.dev/submission-id", json!("x"))), MARK),
            (
                "its role",
                change("changes-1", labels("spark-role", json!("executor"))),
                Some("changes the labels spark-role"),
            ),
            (
                "its application",
                change("changes-1", labels("spark-app-selector", json!("x"))),
                Some("spark-app-selector"),
            ),
            (
                "its identity",
                change("changes-1", json!({ "metadata": { "annotations": { "sparkgate.dev/identity": "y" } } })),
                Some("only the gateway sets these annotations"),
            ),
            ("its finalizer", change("changes-1", json!({ "metadata": { "finalizers": null } })), BOTH),
            // Spark 4.1 reports its end so.
            (
                "another annotation",
                change("changes-1", json!({ "metadata": { "annotations": { "spark.x": "y" } } })),
                None,
            ),
            ("a label of its executor", change("changes-e", labels("decommission", json!("1"))), None),
            (
                "its executor to a driver",
                change("changes-e", labels("spark-role", json!("driver"))),
                Some("spark-role"),
            ),
            (
                "the owner of its executor",
                change("changes-e", json!({ "metadata": { "ownerReferences": null } })),
                Some("changes no owners and finalizers"),
            ),
            ("another driver", change("changes-2", labels("x", json!("y"))), OTHERS),
            ("deletes another driver", Change::delete(format!("{PODS}/changes-2")), OTHERS),
            ("deletes its executor", Change::delete(format!("{PODS}/changes-e")), None),
            ("deletes nothing", Change::delete(app("none")), None),
        ],
    )
    .await;
    let cases = vec![
        ("another's executor", change("changes-e", labels("x", json!("y"))), OTHERS),
        ("deletes another's executor", Change::delete(format!("{PODS}/changes-e")), OTHERS),
        ("deletes all executors", Change::delete(app("spark-1")), OTHERS),
    ];
    judge(world, &other.caller, cases).await;
}

#[tokio::test]
async fn a_stricter_policy_lets_a_driver_change_itself_but_not_tolerate_more() {
    let world = world().await;
    let pod = world.get(&Caller::Admin, &format!("{PODS}/{EARLIER_POD}")).await.unwrap();
    let caller = world.account("analytics", "spark", Some(&pod)).await;
    let tolerations = |more: Value| {
        let mut tolerations = pod["spec"]["tolerations"].clone();
        tolerations.as_array_mut().unwrap().push(more);
        change(EARLIER_POD, json!({ "spec": { "tolerations": tolerations } }))
    };
    let refused = Some("doesn't permit a toleration");
    let cases = vec![
        ("its annotation", change(EARLIER_POD, json!({ "metadata": { "annotations": { "spark.x": "y" } } })), None),
        ("one more toleration", tolerations(json!({ "operator": "Exists", "effect": "NoExecute" })), refused),
    ];
    judge(world, &caller, cases).await;
}

#[tokio::test]
async fn images_are_judged_in_their_full_form() {
    let world = world().await;
    let own = running(world, "images-1").await;
    let corpus: Value = serde_json::from_str(include_str!("../../crates/policy/src/tests/images.json")).unwrap();
    let list = |name: &str, expected| {
        let images = corpus[name].as_array().unwrap().iter();
        images.map(move |image| (image.as_str().unwrap().to_owned(), expected)).collect::<Vec<_>>()
    };
    let images = [list("permitted", None), list("refused", IMAGE)].concat();
    let with_image = |image: &str| with(executor("e", &own.pod), "/spec/containers/0/image", json!(image));
    let mut cases: Vec<_> =
        images.iter().map(|(image, expected)| (image.as_str(), create(with_image(image)), *expected)).collect();
    let init = with(executor("e", &own.pod), "/spec/initContainers", {
        let mut container = executor("e", &own.pod)["spec"]["containers"][0].clone();
        container["name"] = json!("init");
        container["image"] = json!("evil");
        json!([container])
    });
    cases.push(("an init container", create(init), IMAGE));
    let strategic = |image: &str| Change {
        content_type: "application/strategic-merge-patch+json",
        ..change("images-1", container_image(image))
    };
    cases.push(("a foreign image for itself", strategic("evil"), IMAGE));
    cases.push(("a permitted image for itself", strategic("spark:4"), None));
    judge(world, &own.caller, cases).await;
}

#[tokio::test]
async fn only_the_gateway_creates_drivers_and_changes_its_marks() {
    let world = world().await;
    running(world, "marks-1").await;
    let finalizer = || {
        let without = json!({ "metadata": { "$deleteFromPrimitiveList/finalizers": ["sparkgate.dev/outcome"] } });
        Change { content_type: "application/strategic-merge-patch+json", ..change("marks-1", without) }
    };
    let relabelled = || change("marks-1", labels("sparkgate.dev/attempt", json!("2")));
    let foreign = |pointer: &str, value: Value| create(with(driver("d"), pointer, value));
    let cases = vec![
        ("a driver", create(driver("d")), None),
        ("with a foreign image", foreign("/spec/containers/0/image", json!("evil")), IMAGE),
        ("with a foreign account", foreign("/spec/serviceAccountName", json!("x")), Some("spark, spark-batch")),
        ("that restarts", foreign("/spec/restartPolicy", json!("OnFailure")), ONCE),
        ("whose container restarts", foreign("/spec/containers/0/restartPolicy", json!("Always")), ONCE),
        ("whose container doesn't", foreign("/spec/containers/0/restartPolicy", json!("Never")), None),
        ("with a sidecar", foreign("/spec/initContainers", beside(json!({ "restartPolicy": "Always" }))), None),
        ("with a sidecar that restarts all", foreign("/spec/initContainers", beside(restarts_all())), ONCE),
        ("restores labels", relabelled(), None),
        ("removes the finalizer", finalizer(), None),
        ("deletes a driver", Change::delete(format!("{PODS}/marks-1")), None),
        (
            "creates a Secret",
            Change::post("/api/v1/namespaces/analytics/secrets".to_owned(), json!({ "metadata": { "name": "x" } })),
            None,
        ),
    ];
    judge(world, &world.gateway().await, cases).await;
    let plain = |image: &str| with(pod("p", "", "spark", image), "/metadata/labels", json!({}));
    let status = Change::patch(format!("{PODS}/marks-1/status"), json!({ "status": { "phase": "Running" } }));
    let binding = json!({ "metadata": { "name": "marks-1" }, "target": { "kind": "Node", "name": "n" } });
    let cases = vec![
        ("a driver", create(pod("d", "driver", "spark", "spark")), Some("only the gateway creates pods")),
        ("a pod with marks", create(with(plain("spark"), "/metadata/labels/sparkgate.dev~1x", json!("y"))), MARK),
        ("a plain pod with any image", create(plain("any")), None),
        ("changes a mark", relabelled(), MARK),
        ("removes the finalizer", finalizer(), Some("only the gateway sets and removes these finalizers")),
        ("another label of a driver", change("marks-1", labels("team", json!("x"))), None),
        ("writes the status", status, None),
        ("binds a driver", Change::post(format!("{PODS}/marks-1/binding"), binding), None),
    ];
    judge(world, &Caller::Admin, cases).await;
}

#[tokio::test]
async fn privileges_are_refused_even_if_the_namespace_has_lost_its_level() {
    let world = world().await;
    let pods = "/api/v1/namespaces/reports/pods".to_owned();
    let case = |what, pointer: &str, value: Value, expected| {
        (what, Change::post(pods.clone(), with(pod("p", "driver", "any", "any"), pointer, value)), expected)
    };
    let cases = vec![
        case("a driver", "/spec/hostNetwork", json!(false), None),
        case("the node's network", "/spec/hostNetwork", json!(true), Some("uses no namespace of its node")),
        case("the node's processes", "/spec/hostPID", json!(true), Some("uses no namespace of its node")),
        case(
            "a directory of the node",
            "/spec/volumes",
            json!([{ "name": "v", "hostPath": { "path": "/" } }]),
            Some("doesn't permit the type of a volume"),
        ),
    ];
    judge(world, &world.gateway().await, cases).await;
}
