//! POST.

use http::Method;
use serde_json::{Value, json};

use crate::api::world::{World, pod};

pub(crate) async fn fills_in_server_fields(world: &World) {
    let made = world.pod("p").await;
    for field in ["uid", "creationTimestamp", "resourceVersion"] {
        assert!(made["metadata"][field].as_str().is_some_and(|text| !text.is_empty()), "{field} of {made}");
    }
    assert_eq!(made["metadata"]["namespace"], *world.namespace);
    assert_eq!(made["metadata"]["generation"], 1);
    assert_eq!(made["status"]["phase"], "Pending");
    let spec = &made["spec"];
    assert_eq!(spec["restartPolicy"], "Always");
    assert_eq!(spec["terminationGracePeriodSeconds"], 30);
    assert_eq!(spec["tolerations"].as_array().unwrap().len(), 2);
    assert_eq!(spec["containers"][0]["imagePullPolicy"], "IfNotPresent");
    let read = world.get(&world.path("pods/p")).await.expect(200);
    assert_eq!((&read["metadata"]["uid"], &read["spec"]), (&made["metadata"]["uid"], spec));

    let service = json!({ "metadata": { "name": "s" }, "spec": { "clusterIP": "None", "ports": [{ "port": 7078 }] } });
    let service = world.post(&world.path("services"), service).await.expect(201);
    assert_eq!(service["spec"]["clusterIP"], "None");
    assert_eq!(service["spec"]["ports"][0], json!({ "port": 7078, "targetPort": 7078, "protocol": "TCP" }));

    let secret = json!({ "metadata": { "name": "s" }, "stringData": { "a": "b" } });
    let secret = world.post(&world.path("secrets"), secret).await.expect(201);
    assert_eq!((&secret["data"]["a"], &secret["type"]), (&json!("Yg=="), &json!("Opaque")));

    let policies = format!("/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies", world.namespace);
    let policy = json!({ "metadata": { "name": "n" }, "spec": { "podSelector": {} } });
    let policy = world.post(&policies, policy).await.expect(201);
    assert_eq!(policy["apiVersion"], "networking.k8s.io/v1");
}

pub(crate) async fn refuses_invalid_objects(world: &World) {
    let maps = world.path("configmaps");
    world.config_map("taken", "a").await;
    let named = |name: &str| json!({ "metadata": { "name": name } });
    world.post(&maps, named("taken")).await.refused(409, "AlreadyExists", "configmaps \"taken\" already exists");
    world.post(&maps, named("A_b")).await.refused(422, "Invalid", "a lowercase RFC 1123 subdomain must consist of");
    world.post(&maps, named(&"a".repeat(254))).await.refused(422, "Invalid", "must be no more than 253 ");
    world.post(&maps, json!({ "metadata": {} })).await.refused(422, "Invalid", "name or generateName is required");
    let elsewhere = "/api/v1/namespaces/nowhere/configmaps";
    world.post(elsewhere, named("a")).await.refused(404, "NotFound", "namespaces \"nowhere\" not found");
    let other = json!({ "metadata": { "name": "a", "namespace": "other" } });
    world.post(&maps, other).await.refused(400, "BadRequest", "does not match the namespace sent on the request");
    let pod_kind = json!({ "kind": "Pod", "apiVersion": "v1", "metadata": { "name": "a" } });
    world.post(&maps, pod_kind).await.refused(400, "BadRequest", "cannot be handled as a ConfigMap");
    let group = json!({ "kind": "ConfigMap", "apiVersion": "apps/v1", "metadata": { "name": "a" } });
    world.post(&maps, group).await.refused(400, "BadRequest", "is registered for version \"apps/v1\"");
    let wrong_type = json!({ "metadata": { "name": "a" }, "data": { "a": 1 } });
    world.post(&maps, wrong_type).await.refused(400, "BadRequest", "cannot be handled as a ConfigMap");
    let label = json!({ "metadata": { "name": "a", "labels": { "x": "a b" } } });
    world.post(&maps, label).await.refused(
        422,
        "Invalid",
        "metadata.labels: Invalid value: \"a b\": a valid label must",
    );
    let key = json!({ "metadata": { "name": "a" }, "data": { "a b": "" } });
    world.post(&maps, key).await.refused(422, "Invalid", "data[a b]: Invalid value: \"a b\": a valid config key must");
    let finalizer = json!({ "metadata": { "name": "a", "finalizers": ["x"] } });
    world.post(&maps, finalizer).await.refused(422, "Invalid", "neither a standard finalizer name nor is it fully");
    let owner =
        json!({ "metadata": { "name": "a", "ownerReferences": [{ "apiVersion": "v1", "kind": "Pod", "name": "p" }] } });
    world.post(&maps, owner).await.refused(422, "Invalid", "metadata.ownerReferences.uid: Invalid value");
    let large = json!({ "metadata": { "name": "a" }, "data": { "a": "x".repeat(1_048_577) } });
    world.post(&maps, large).await.refused(422, "Invalid", "Too long: may not be more than 1048576 bytes");
    let broken = world.send(Method::POST, &maps, "application/json", "nonsense").await;
    broken.refused(400, "BadRequest", "json parse error");
    let text = world.send(Method::POST, &maps, "text/plain", "{}").await;
    text.refused(415, "UnsupportedMediaType", "the body of the request was in an unknown format");
    let huge = json!({ "metadata": { "name": "a" }, "data": { "a": "x".repeat(4 << 20) } });
    world.post(&maps, huge).await.refused(413, "RequestEntityTooLarge", "limit is 3145728");
    assert_eq!(world.get(&world.path("configmaps/a")).await.code, 404);
}

pub(crate) async fn refuses_broken_pods(world: &World) {
    let pods = world.path("pods");
    let with = |change: fn(&mut Value)| {
        let mut pod = pod("p");
        change(&mut pod["spec"]);
        world.post(&pods, pod)
    };
    let name = with(|spec| spec["containers"][0]["name"] = "A".into()).await;
    name.refused(422, "Invalid", "Pod \"p\" is invalid: spec.containers[0].name: Invalid value: \"A\"");
    with(|spec| spec["containers"] = json!([])).await.refused(422, "Invalid", "spec.containers: Required value");
    let two = with(|spec| {
        spec["restartPolicy"] = "Perhaps".into();
        spec["containers"][0]["volumeMounts"] = json!([{ "name": "v", "mountPath": "/v" }]);
    })
    .await;
    assert_eq!(two.body["details"]["causes"].as_array().map(Vec::len), Some(2), "{}", two.body);
    two.refused(
        422,
        "Invalid",
        "[spec.containers[0].volumeMounts[0].name: Not found: \"v\", spec.restartPolicy: Unsupported",
    );
    let quantity = with(|spec| spec["containers"][0]["resources"] = json!({ "requests": { "cpu": "lots" } })).await;
    quantity.refused(400, "BadRequest", "quantities must match the regular expression");
    let limit = json!({ "requests": { "memory": "2Gi" }, "limits": { "memory": "1Gi" } });
    let mut above = pod("p");
    above["spec"]["containers"][0]["resources"] = limit;
    world.post(&pods, above).await.refused(422, "Invalid", "must be less than or equal to memory limit of 1Gi");
    with(|spec| spec["hostname"] = "A".into()).await.refused(422, "Invalid", "spec.hostname: Invalid value: \"A\"");
}

pub(crate) async fn generates_names(world: &World) {
    let body = json!({ "metadata": { "generateName": "some-" } });
    let mut made = Vec::new();
    for _ in 0..2 {
        let object = world.post(&world.path("configmaps"), body.clone()).await.expect(201);
        made.push(object["metadata"]["name"].as_str().unwrap().to_owned());
    }
    assert!(made.iter().all(|name| name.starts_with("some-") && name.len() == 10), "{made:?}");
    assert_ne!(made[0], made[1]);
}

pub(crate) async fn unknown_paths(world: &World) {
    let missing = "the server could not find the requested resource";
    world.get(&world.path("gadgets")).await.refused(404, "NotFound", missing);
    world.get(&world.path("pods/none")).await.refused(404, "NotFound", "pods \"none\" not found");
    let policy = format!("/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies/none", world.namespace);
    world.get(&policy).await.refused(404, "NotFound", "networkpolicies.networking.k8s.io \"none\" not found");
    let method = "the server does not allow this method on the requested resource";
    world.put(&world.path("configmaps"), json!({})).await.refused(405, "MethodNotAllowed", method);
    world.post(&world.path("configmaps/a"), json!({})).await.refused(405, "MethodNotAllowed", method);
    assert_eq!(world.get("/api/v1/namespaces/nowhere/pods").await.expect(200)["items"], json!([]));
    assert_eq!(world.get("/nothing").await.code, 404);
    assert_eq!(world.get("/api").await.expect(200)["versions"], json!(["v1"]));
    let served = world.get("/api/v1").await.expect(200);
    assert!(served["resources"].as_array().unwrap().iter().any(|resource| resource["name"] == "pods/binding"));
}
