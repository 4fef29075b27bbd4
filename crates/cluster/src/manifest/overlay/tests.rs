use serde_json::json;

use super::*;

const CONTAINER: &str = "spark-kubernetes-driver";

/// Returns a driver with these properties, and an executors' template if there is one.
fn manifest(properties: &str, template: Option<&str>) -> Manifest {
    let limits = json!({"requests": {"cpu": "1", "memory": "1408Mi"}, "limits": {"memory": "1408Mi"}});
    let pod = json!({
        "metadata": {"name": "pi-driver", "labels": {"team": "a"}, "annotations": {"sparkgate.dev/driver-container": CONTAINER}},
        "spec": {"containers": [{"name": CONTAINER, "resources": limits}, {"name": "added"}], "nodeSelector": {"disk": "ssd"}}});
    let mut beside = vec![json!({"kind": "Service", "metadata": {"name": "pi-svc"}})];
    if let Some(text) = template {
        beside.push(json!({"kind": "ConfigMap", "metadata": {"name": "pi-driver-podspec-conf-map"},
            "data": {"podspec-configmap-key": text}}));
    }
    beside.push(json!({"kind": "ConfigMap", "metadata": {"name": "pi-conf-map", "namespace": "jobs"},
        "data": {"spark.properties": properties}}));
    serde_json::from_value(json!({"before": [], "pod": pod, "beside": beside, "judged": {"policy": "p"}})).unwrap()
}

fn placement() -> Placement {
    let toleration = json!({"key": "gpu", "operator": "Exists", "effect": "NoSchedule"});
    Placement {
        labels: [("queue".to_owned(), "a".to_owned())].into(),
        annotations: [("note".to_owned(), "b=c".to_owned())].into(),
        node_selector: [("pool".to_owned(), "gpu".to_owned())].into(),
        tolerations: vec![serde_json::from_value(toleration).unwrap()],
    }
}

fn executors() -> Overlay {
    Overlay { executor: placement(), ..Overlay::default() }
}

fn value(object: &serde_json::value::RawValue) -> Value {
    serde_json::from_str(object.get()).unwrap()
}

fn properties(manifest: &Manifest) -> BTreeMap<String, String> {
    parse_properties(value(manifest.beside.last().unwrap())["data"]["spark.properties"].as_str().unwrap())
}

/// Returns the executors' template as the driver reads it.
fn template(manifest: &Manifest) -> Value {
    let objects: Vec<Value> = manifest.beside.iter().map(|object| value(object)).collect();
    executor_template_of(&objects).unwrap()
}

#[test]
fn an_empty_overlay_changes_nothing() {
    let before = manifest("spark.a=1\n", None);
    let after = before.with_overlay(&Overlay::default()).unwrap();
    assert_eq!(before.pod.get(), after.pod.get());
    assert_eq!(before.beside.last().unwrap().get(), after.beside.last().unwrap().get());
}

#[test]
fn a_driver_gets_labels_annotations_node_selectors_and_tolerations() {
    let overlay = Overlay { driver: placement(), ..Overlay::default() };
    let after = manifest("spark.a=1\n", None).with_overlay(&overlay).unwrap();
    let pod = value(&after.pod);
    assert_eq!(pod["metadata"]["labels"], json!({"team": "a", "queue": "a"}));
    assert_eq!(pod["metadata"]["annotations"]["note"], "b=c");
    assert_eq!(pod["spec"]["nodeSelector"], json!({"disk": "ssd", "pool": "gpu"}));
    assert_eq!(pod["spec"]["tolerations"][0]["key"], "gpu");
    assert_eq!(after.beside.len(), 2, "the executors are left as they were");
    assert_eq!(value(after.judged.as_ref().unwrap()), json!({"policy": "p"}));
}

#[test]
fn a_node_selector_is_replaced_or_removed_for_the_driver_and_its_executors() {
    let selector =
        [("disk", Some("nvme")), ("pool", None)].map(|(key, value)| (key.to_owned(), value.map(str::to_owned)));
    let overlay = Overlay { node_selector: selector.into(), ..Overlay::default() };
    let before = "spark.a=1\nspark.kubernetes.node.selector.disk=ssd\nspark.kubernetes.executor.node.selector.disk=hdd\n\
                  spark.kubernetes.executor.node.selector.pool=spot\n";
    let of_executors = r#"{"spec": {"nodeSelector": {"pool": "spot", "zone": "a"}, "containers": [{"name": "e"}]}}"#;
    let after = manifest(before, Some(of_executors)).with_overlay(&overlay).unwrap();
    assert_eq!(value(&after.pod)["spec"]["nodeSelector"], json!({"disk": "nvme"}));
    let expected = [("spark.a", "1"), ("spark.kubernetes.node.selector.disk", "nvme")];
    assert_eq!(properties(&after), expected.map(|(key, value)| (key.to_owned(), value.to_owned())).into());
    assert_eq!(template(&after)["spec"]["nodeSelector"], json!({"disk": "nvme", "zone": "a"}));
    let again = after.with_overlay(&overlay).unwrap();
    assert_eq!((again.pod.get(), properties(&again)), (after.pod.get(), properties(&after)));
}

#[test]
fn an_amount_replaces_the_request_of_the_drivers_container_and_its_limit() {
    let amounts = [("memory", "4Gi"), ("cpu", "2")].map(|(name, amount)| (name.to_owned(), amount.to_owned()));
    let overlay = Overlay { driver_resources: amounts.into(), ..Overlay::default() };
    let pod = value(&manifest("", None).with_overlay(&overlay).unwrap().pod);
    let resources = json!({"requests": {"cpu": "2", "memory": "4Gi"}, "limits": {"memory": "4Gi"}});
    assert_eq!(pod["spec"]["containers"][0]["resources"], resources);
    assert_eq!(pod["spec"]["containers"][1], json!({"name": "added"}));
}

#[test]
fn executors_are_placed_by_properties_and_other_lines_stay() {
    let before = "#a comment\nspark.executor.instances=4\nspark.b=x\\=y\n";
    let set = [("spark.executor.instances".to_owned(), "3".to_owned())].into();
    let mut overlay = Overlay { properties: set, ..executors() };
    overlay.executor.tolerations.clear();
    let after = manifest(before, None).with_overlay(&overlay).unwrap();
    let text = value(after.beside.last().unwrap())["data"]["spark.properties"].as_str().unwrap().to_owned();
    assert!(text.starts_with("#a comment\nspark.b=x\\=y\n"), "{text}");
    let expected = [
        ("spark.b", "x=y"),
        ("spark.executor.instances", "3"),
        ("spark.kubernetes.executor.annotation.note", "b=c"),
        ("spark.kubernetes.executor.label.queue", "a"),
        ("spark.kubernetes.executor.node.selector.pool", "gpu"),
    ];
    assert_eq!(properties(&after), expected.map(|(key, value)| (key.to_owned(), value.to_owned())).into());
    assert_eq!(after.beside.len(), 2);
}

#[test]
fn tolerations_of_executors_are_added_to_their_template() {
    let yaml = "spec:\n  tolerations: [{key: spot, operator: Exists}]\n  containers: [{name: mine}]\n";
    let after = manifest("spark.a=1\n", Some(yaml)).with_overlay(&executors()).unwrap();
    let spec = &template(&after)["spec"];
    assert_eq!((&spec["tolerations"][0]["key"], &spec["tolerations"][1]["key"]), (&json!("spot"), &json!("gpu")));
    assert_eq!(spec["containers"], json!([{"name": "mine"}]));
    assert_eq!(after.beside.len(), 3);
    assert_eq!(after.with_overlay(&executors()).unwrap().beside[1].get(), after.beside[1].get(), "once is enough");
}

#[test]
fn executors_without_a_template_get_one_before_the_main_config_map() {
    let after = manifest("spark.a=1\n", None).with_overlay(&executors()).unwrap();
    let map = value(&after.beside[1]);
    assert_eq!(map["metadata"], json!({"name": "pi-conf-map-executor-template", "namespace": "jobs"}));
    assert_eq!(template(&after)["spec"]["tolerations"][0]["key"], "gpu");
    assert_eq!(value(&after.beside[2])["metadata"]["name"], "pi-conf-map");
    let pod = value(&after.pod);
    assert_eq!(pod["spec"]["volumes"][0]["configMap"]["name"], "pi-conf-map-executor-template");
    assert_eq!(pod["spec"]["containers"][0]["volumeMounts"][0]["mountPath"], "/opt/spark/pod-template");
    let file = &properties(&after)["spark.kubernetes.executor.podTemplateFile"];
    assert_eq!(file, "/opt/spark/pod-template/pod-spec-template.yml");
}

#[test]
fn another_value_of_a_key_is_a_conflict() {
    let message = |before: Manifest, overlay: &Overlay| before.with_overlay(overlay).unwrap_err().to_string();
    let mut driver = Overlay { driver: placement(), ..Overlay::default() };
    driver.driver.node_selector.insert("disk".to_owned(), "hdd".to_owned());
    let expected = "the driver's node selector disk is ssd, and would have to be hdd";
    assert_eq!(message(manifest("", None), &driver), expected);
    for properties in
        ["spark.kubernetes.node.selector.pool=cpu\n", "spark.kubernetes.executor.node.selector.pool=cpu\n"]
    {
        let expected = "the executor's node selector pool is cpu, and would have to be gpu";
        assert_eq!(message(manifest(properties, None), &executors()), expected);
    }
    let template = Some("metadata: {labels: {queue: b}}\nspec: {containers: [{name: x}]}");
    let expected = "the executor's label queue is b, and would have to be a";
    assert_eq!(message(manifest("", template), &executors()), expected);
    let same = "spark.kubernetes.node.selector.pool=gpu\n";
    assert!(manifest(same, None).with_overlay(&executors()).is_ok());
}

#[test]
fn placements_with_different_values_cannot_be_merged() {
    let mut first = placement();
    first.merge("driver", placement()).unwrap();
    assert_eq!(first, placement(), "the same twice");
    let other = Placement { node_selector: [("pool".to_owned(), "cpu".to_owned())].into(), ..Placement::default() };
    let expected = "the driver's node selector pool is gpu, and would have to be cpu";
    assert_eq!(first.merge("driver", other).unwrap_err().to_string(), expected);
}
