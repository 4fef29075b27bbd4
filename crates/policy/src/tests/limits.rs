//! Sizes and counts.

use serde_json::{Value, json};

use super::Driver;

fn limits(limits: Value) -> Value {
    json!({ "limits": limits })
}

#[test]
fn the_drivers_size_is_that_of_its_pod() {
    let document = limits(json!({ "driver": { "cores": 2, "memory": "4Gi" } }));
    Driver::new(&[("spark.driver.cores", "2"), ("spark.driver.memory", "3g")]).passes(document.clone());
    for property in [
        ("spark.driver.cores", "3"),
        ("spark.driver.memory", "4g"),
        ("spark.driver.memoryOverhead", "4g"),
        ("spark.kubernetes.driver.limit.cores", "2001m"),
        ("spark.kubernetes.driver.request.cores", "2.1"),
    ] {
        Driver::new(&[property]).breaks(document.clone(), "limits");
    }
}

#[test]
fn other_containers_count() {
    let document = limits(json!({ "driver": { "memory": "4Gi", "cores": 4 } }));
    let side = |resources: Value| json!({ "name": "side", "image": "a", "resources": resources });
    let with = |list: &str, container: Value| {
        let mut spec = json!({ "containers": [{ "name": "main" }] });
        match spec.get_mut(list) {
            Some(list) => list.as_array_mut().unwrap().push(container),
            None => spec[list] = json!([container]),
        }
        Driver::with_spec(spec)
    };
    let requests = |memory: &str| json!({ "requests": { "memory": memory, "cpu": "1" } });
    with("containers", side(requests("2Gi"))).passes(document.clone());
    with("containers", side(requests("3Gi"))).breaks(document.clone(), "limits");
    with("containers", side(json!({ "limits": { "memory": "3Gi", "cpu": "1" } }))).breaks(document.clone(), "limits");
    with("containers", side(json!({}))).breaks(document.clone(), "limits");
    with("containers", side(requests("much"))).breaks(document.clone(), "limits");
    with("containers", side(requests("-2Gi"))).breaks(document.clone(), "limits");
    with("initContainers", side(requests("4Gi"))).passes(document.clone());
    with("initContainers", side(requests("5Gi"))).breaks(document.clone(), "limits");
    let mut sidecar = side(requests("3Gi"));
    sidecar["restartPolicy"] = json!("Always");
    with("initContainers", sidecar).breaks(document, "limits");
    with("containers", side(requests("2Gi"))).breaks(limits(json!({ "containers": 1 })), "limits");
}

#[test]
fn a_pods_own_resources_count() {
    let spec =
        |memory: &str| json!({ "containers": [{ "name": "main" }], "resources": { "limits": { "memory": memory } } });
    let document = limits(json!({ "driver": { "memory": "4Gi" } }));
    Driver::with_spec(spec("4Gi")).passes(document.clone());
    Driver::with_spec(spec("5Gi")).breaks(document, "limits");
}

#[test]
fn devices_are_permitted_by_name_and_amount() {
    let gpus = |amount: &'static str| {
        Driver::new(&[("spark.driver.resource.gpu.amount", amount), ("spark.driver.resource.gpu.vendor", "nvidia.com")])
    };
    gpus("2").passes(limits(json!({ "resources": { "nvidia.com/gpu": 2 } })));
    gpus("3").breaks(limits(json!({ "resources": { "nvidia.com/gpu": 2 } })), "limits");
    gpus("1").breaks(limits(json!({ "resources": {} })), "limits");
    let executor = Driver::new(&[
        ("spark.executor.resource.gpu.amount", "1"),
        ("spark.executor.resource.gpu.vendor", "nvidia.com"),
    ]);
    executor.breaks(limits(json!({ "resources": { "amd.com/gpu": 1 } })), "limits");
    executor.passes(limits(json!({ "resources": { "nvidia.com/gpu": 1 } })));
}

#[test]
fn the_number_of_executors_is_bounded() {
    let document = limits(json!({ "executors": 10 }));
    let on = ("spark.dynamicAllocation.enabled", "true");
    Driver::new(&[("spark.executor.instances", "10")]).passes(document.clone());
    Driver::new(&[("spark.executor.instances", "11")]).breaks(document.clone(), "limits");
    Driver::new(&[on]).breaks(document.clone(), "limits");
    Driver::new(&[on, ("spark.dynamicAllocation.maxExecutors", "10")]).passes(document.clone());
    Driver::new(&[on, ("spark.dynamicAllocation.maxExecutors", "2147483647")]).breaks(document.clone(), "limits");
    let mut driver = Driver::new(&[]);
    driver.properties.insert("spark.executor.instances".to_owned(), "99999999999999999999".to_owned());
    driver.breaks(document, "limits");
}

#[test]
fn executors_together_are_bounded() {
    let document = limits(json!({ "totalCores": 10, "totalMemory": "20Gi" }));
    let of = |instances: &'static str, cores: &'static str, memory: &'static str| {
        Driver::new(&[
            ("spark.executor.instances", instances),
            ("spark.executor.cores", cores),
            ("spark.executor.memory", memory),
        ])
    };
    of("5", "2", "3g").passes(document.clone());
    of("6", "2", "1g").breaks(document.clone(), "limits");
    of("5", "1", "4g").breaks(document.clone(), "limits");
    of("2147483647", "2147483647", "8191p").breaks(document.clone(), "limits");
    Driver::new(&[("spark.dynamicAllocation.enabled", "true")]).breaks(document, "limits");
    let document = limits(json!({ "executor": { "cores": 2, "memory": "4Gi" } }));
    of("1000", "2", "3g").passes(document.clone());
    of("1", "3", "3g").breaks(document.clone(), "limits");
    of("1", "1", "4g").breaks(document, "limits");
}

#[test]
fn volumes_in_memory_or_on_the_nodes_disk_are_bounded() {
    let document = limits(json!({ "emptyDir": "1Gi" }));
    let of = |directory: Value| Driver::with_spec(json!({ "volumes": [{ "name": "v", "emptyDir": directory }] }));
    of(json!({ "sizeLimit": "1Gi" })).passes(document.clone());
    of(json!({ "sizeLimit": "2Gi", "medium": "Memory" })).breaks(document.clone(), "limits");
    of(json!({})).breaks(document, "limits");
}

#[test]
fn times_are_bounded() {
    let grace = limits(json!({ "terminationGracePeriodSeconds": 60 }));
    Driver::with_spec(json!({ "terminationGracePeriodSeconds": 60 })).passes(grace.clone());
    Driver::with_spec(json!({ "terminationGracePeriodSeconds": 61 })).breaks(grace.clone(), "limits");
    Driver::new(&[("spark.kubernetes.executor.terminationGracePeriodSeconds", "2m")]).breaks(grace, "limits");
    let deadline = limits(json!({ "activeDeadlineSeconds": 3600 }));
    Driver::with_spec(json!({ "activeDeadlineSeconds": 3600 })).passes(deadline.clone());
    Driver::with_spec(json!({ "activeDeadlineSeconds": 3601 })).breaks(deadline.clone(), "limits");
    Driver::new(&[]).breaks(deadline, "limits");
}

#[test]
fn storage_of_all_executors_is_bounded() {
    let prefix = "spark.kubernetes.executor.volumes.persistentVolumeClaim.v";
    let keys = ["mount.path", "options.claimName", "options.storageClass", "options.sizeLimit"]
        .map(|option| format!("{prefix}.{option}"));
    let values = ["/v", "OnDemand", "fast", "10Gi"];
    let mut properties: Vec<(&str, &str)> = keys.iter().map(String::as_str).zip(values).collect();
    properties.push(("spark.executor.instances", "3"));
    Driver::new(&properties).passes(limits(json!({ "storage": "30Gi" })));
    Driver::new(&properties).breaks(limits(json!({ "storage": "29Gi" })), "limits");
    properties.push(("spark.dynamicAllocation.enabled", "true"));
    Driver::new(&properties).breaks(limits(json!({ "storage": "1Ei" })), "limits");
    let unbounded = Driver::new(&[("spark.dynamicAllocation.enabled", "true")]);
    unbounded.passes(limits(json!({ "storage": "1Gi" })));
}
