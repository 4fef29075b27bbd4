//! What a container gets before it starts, and what prevents its start.

use k8s_openapi::api::core::v1::{ConfigMap, Event, Pod, Secret, Service};
use kube::{Api, api::ListParams};
use serde_json::json;

use crate::sandbox_node::world::{World, end, job, poll, waiting};

#[tokio::test]
async fn a_pod_waits_for_what_it_mounts_and_finds_it_under_rewritten_paths() {
    let mut world = World::new().await;
    world.start_node();
    let mut pod =
        job("driver", "cat $SPARK_CONF_DIR/spark.properties; ls $SPARK_CONF_DIR; echo \"$@\"; echo $SECRET $NAME");
    let container = &mut pod["spec"]["containers"][0];
    let command = container["args"][1].clone();
    container["args"] =
        json!(["driver", "--properties-file", "/opt/spark/conf/spark.properties", "local:///opt/spark/pi.py", command]);
    container["env"] = json!([
        {"name": "SPARK_CONF_DIR", "value": "/opt/spark/conf"},
        {"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
        {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "NAME", "value": "<$(POD)>"},
    ]);
    container["volumeMounts"] = json!([{"name": "conf", "mountPath": "/opt/spark/conf"}]);
    let items = json!([{"key": "spark.properties", "path": "spark.properties"}]);
    pod["spec"]["volumes"] = json!([{"name": "conf", "configMap": {"name": "conf", "items": items}}]);
    world.create::<Pod>(pod).await;

    let secret = "secret \"s\" not found";
    world
        .wait("driver", "waiting for its Secret", |pod| waiting(pod).is_some_and(|(_, message)| message == secret))
        .await;
    poll("an event says so", async || {
        let about = ListParams::default().fields("involvedObject.name=driver,type=Warning");
        let events = Api::<Event>::namespaced(world.client.clone(), "default").list(&about).await.unwrap().items;
        let found: Vec<_> = events.iter().map(|event| (event.reason.as_deref(), event.message.as_deref())).collect();
        found == [(Some("Failed"), Some(secret))]
    })
    .await;
    world.create::<Secret>(json!({"metadata": {"name": "s"}, "stringData": {"k": "hush"}})).await;
    let map = ("ContainerCreating".to_owned(), "configmap \"conf\" not found".to_owned());
    world.wait("driver", "waiting for its ConfigMap", |pod| waiting(pod).as_ref() == Some(&map)).await;
    let properties = "#made by Spark\nspark.jars=local\\:///opt/spark/a.jar\nspark.driver.host=svc.default.svc\n";
    let data = json!({"spark.properties": properties, "not.mounted": ""});
    world.create::<ConfigMap>(json!({"metadata": {"name": "conf"}, "data": data})).await;
    let service = "service \"svc\" not found, which spark.driver.host names";
    world.wait("driver", "waiting for its Service", |pod| waiting(pod).is_some_and(|(_, m)| m == service)).await;
    let spec = json!({"clusterIP": "None", "selector": {"spark-role": "driver"}, "ports": [{"port": 7078}]});
    world.create::<Service>(json!({"metadata": {"name": "svc"}, "spec": spec})).await;

    let pod = world.wait_phase("driver", "Succeeded").await;
    let log = world.log("driver").await;
    let address = pod.status.unwrap().pod_ip.unwrap();
    let home = world.spark.as_ref().unwrap().home.display().to_string();
    for expected in [
        format!("#made by Spark\nspark.jars=local\\:///{}/a.jar\n", home.trim_start_matches('/')),
        "\nspark.properties\n--conf".to_owned(),
        format!("spark.driver.bindAddress={address} "),
        format!("spark.driver.host={address} "),
        format!("spark.kubernetes.driver.master={} ", world.url),
        format!("local://{home}/pi.py"),
        "\nhush <driver>\n".to_owned(),
    ] {
        assert!(log.contains(&expected), "{expected:?} is not in {log}");
    }
}

#[tokio::test]
async fn the_environment_of_the_node_stays_with_the_node() {
    // Cargo sets this variable for tests; it represents any secret of the gateway.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    let mut world = World::new().await;
    world.start_node();
    world.create::<Pod>(job("env", "env")).await;
    world.wait_phase("env", "Succeeded").await;
    let log = world.log("env").await;
    assert!(log.contains("SPARK_HOME="), "{log}");
    assert!(!log.contains("CARGO_MANIFEST_DIR"), "{log}");
}

#[tokio::test]
async fn a_pod_that_is_not_sparks_is_refused_and_delays_no_other() {
    let mut world = World::new().await;
    world.start_node();
    let mut web = job("web", "");
    web["spec"]["containers"] = json!([{"name": "web", "image": "nginx"}]);
    world.create::<Pod>(web).await;
    world.create::<Pod>(job("driver", "exit 0")).await;
    world.wait_phase("driver", "Succeeded").await;
    let pod = world
        .wait("web", "refused", |pod| waiting(pod).is_some_and(|(_, m)| m.contains("only Spark drivers and executors")))
        .await;
    assert_eq!(waiting(&pod).unwrap().0, "CreateContainerError");
    world.pods().delete("web", &Default::default()).await.unwrap();
    world.wait_gone(&pod).await;
}

#[tokio::test]
async fn a_program_that_cannot_start_fails_the_pod() {
    let mut world = World::new().await;
    std::fs::write(world.spark.as_ref().unwrap().home.join("bin/spark-submit"), "#!/no/such/shell\n").unwrap();
    world.start_node();
    world.create::<Pod>(job("driver", "true")).await;
    let end = end(&world.wait_phase("driver", "Failed").await);
    assert_eq!((end.exit_code, end.reason.as_deref()), (128, Some("StartError")));
    assert!(end.message.unwrap().contains("spark-submit"));
}
