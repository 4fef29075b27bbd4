//! The objects beside the pod.

use serde_json::{Value, json};

use super::Driver;

#[test]
fn a_driver_has_exactly_one_pod_and_known_kinds() {
    let mut two = Driver::new(&[]);
    let pod = two.object("Pod").clone();
    two.objects.push(pod);
    two.breaks(json!({}), "structure");
    let mut none = Driver::new(&[]);
    none.objects.retain(|object| object["kind"] != "Pod");
    none.breaks(json!({}), "structure");
    for kind in ["Role", "RoleBinding", "Job", "", "pod"] {
        let mut driver = Driver::new(&[]);
        driver.objects.push(json!({ "apiVersion": "v1", "kind": kind, "metadata": { "name": "a" } }));
        driver.breaks(json!({}), "structure");
    }
}

#[test]
fn the_service_is_headless_and_within_the_cluster() {
    for (field, value) in [
        ("type", json!("LoadBalancer")),
        ("type", json!("NodePort")),
        ("type", json!("ExternalName")),
        ("externalName", json!("evil.example")),
        ("externalIPs", json!(["1.2.3.4"])),
        ("loadBalancerIP", json!("1.2.3.4")),
        ("clusterIP", json!("10.0.0.1")),
        ("clusterIP", Value::Null),
        ("clusterIPs", json!(["10.0.0.1"])),
        ("selector", json!({ "app": "frontend" })),
        ("selector", json!({})),
        ("ports", json!([{ "port": 1, "nodePort": 30000 }])),
    ] {
        let mut driver = Driver::new(&[]);
        driver.object("Service")["spec"][field] = value;
        driver.breaks(json!({}), "services");
    }
}

#[test]
fn a_claim_copies_only_permitted_claims() {
    let prefix = "spark.kubernetes.driver.volumes.persistentVolumeClaim.v";
    let keys = ["mount.path", "options.claimName", "options.storageClass", "options.sizeLimit"]
        .map(|option| format!("{prefix}.{option}"));
    let values = ["/v", "OnDemand", "fast", "10Gi"];
    let properties: Vec<(&str, &str)> = keys.iter().map(String::as_str).zip(values).collect();
    let with = |field: &str, value: Value| {
        let mut driver = Driver::new(&properties);
        driver.object("PersistentVolumeClaim")["spec"][field] = value;
        driver
    };
    let document = json!({ "claims": ["team-*"] });
    let claim = |name: &str| json!({ "kind": "PersistentVolumeClaim", "name": name });
    with("volumeMode", json!("Filesystem")).passes(document.clone());
    with("dataSource", claim("team-a")).passes(document.clone());
    with("dataSource", claim("other")).breaks(document.clone(), "claims");
    with("dataSource", json!({ "kind": "VolumeSnapshot", "name": "team-a" })).breaks(document, "claims");
    let mut foreign = claim("team-a");
    foreign["namespace"] = json!("other");
    with("dataSourceRef", foreign).breaks(json!({}), "claims");
    with("volumeName", json!("pv-1")).breaks(json!({}), "claims");
    with("selector", json!({ "matchLabels": { "a": "b" } })).breaks(json!({}), "claims");
    with("storageClassName", Value::Null).breaks(json!({ "storageClasses": ["fast"] }), "storageClasses");
    let mut label = Driver::new(&properties);
    label.object("PersistentVolumeClaim")["metadata"]["annotations"] = json!({ "volume.beta.kubernetes.io/x": "a" });
    label.breaks(json!({}), "annotations");
}

#[test]
fn an_ephemeral_volume_is_judged_as_a_claim() {
    let spec = json!({ "volumes": [{ "name": "v", "ephemeral": { "volumeClaimTemplate": {
        "metadata": { "labels": { "a": "b" } },
        "spec": { "storageClassName": "slow", "resources": { "requests": { "storage": "10Gi" } } }
    } } }] });
    Driver::with_spec(spec.clone()).passes(json!({ "limits": { "storage": "10Gi" } }));
    Driver::with_spec(spec.clone()).breaks(json!({ "limits": { "storage": "9Gi" } }), "limits");
    Driver::with_spec(spec.clone()).breaks(json!({ "storageClasses": ["fast"] }), "storageClasses");
    Driver::with_executor_spec(spec.clone()).passes(json!({ "limits": { "storage": "20Gi" } }));
    Driver::with_executor_spec(spec).breaks(json!({ "limits": { "storage": "19Gi" } }), "limits");
}

#[test]
fn a_pod_group_is_judged() {
    let group = |spec: Value| {
        let text = json!({ "spec": spec }).to_string();
        let step = "org.apache.spark.deploy.k8s.features.VolcanoFeatureStep";
        Driver::new(&[
            ("spark.kubernetes.driver.pod.featureSteps", step),
            ("spark.kubernetes.scheduler.volcano.podGroupTemplateJson", &text),
        ])
    };
    let document = json!({ "queues": ["team-*"], "priorityClasses": ["batch"] });
    group(json!({ "queue": "team-a", "priorityClassName": "batch", "minMember": 1 })).passes(document.clone());
    group(json!({ "queue": "other" })).breaks(document.clone(), "queues");
    group(json!({ "priorityClassName": "urgent" })).breaks(document, "priorityClasses");
    let mut driver = group(json!({}));
    driver.object("PodGroup")["spec"]["newField"] = json!(1);
    driver.breaks(json!({}), "unclassifiedField");
}

#[test]
fn other_objects_select_only_their_application() {
    let mut driver = Driver::new(&[]);
    driver.object("NetworkPolicy")["spec"]["podSelector"] = json!({});
    driver.breaks(json!({}), "structure");
    let mut driver = Driver::new(&[]);
    let kind = "kubernetes.io/service-account-token";
    driver.objects.push(json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "a" }, "type": kind }));
    driver.breaks(json!({}), "structure");
}
