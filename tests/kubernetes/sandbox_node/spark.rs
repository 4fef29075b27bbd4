//! A real job: Spark's own Kubernetes backend in the driver, two executors.

use k8s_openapi::api::core::v1::{ConfigMap, Pod, Service};
use serde_json::{Value, json};
use sparkgate::sandbox::node::Spark;

use crate::sandbox_node::world::{World, end, phase};

const PI: &str = "local:///opt/spark/examples/src/main/python/pi.py";

fn driver() -> Value {
    let conf = "/opt/spark/conf";
    json!({
        "metadata": {"name": "pi-driver", "labels": {"spark-role": "driver", "spark-app-selector": "spark-1"}},
        "spec": {
            "restartPolicy": "Never",
            "containers": [{
                "name": "spark-kubernetes-driver",
                "image": "spark",
                "args": ["driver", "--properties-file", "/opt/spark/conf/spark.properties",
                         "--class", "org.apache.spark.deploy.PythonRunner", PI, "4"],
                "env": [
                    {"name": "SPARK_DRIVER_BIND_ADDRESS", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
                    {"name": "SPARK_LOCAL_DIRS", "value": "/var/data/spark"},
                    {"name": "SPARK_CONF_DIR", "value": conf},
                ],
                "volumeMounts": [{"name": "local", "mountPath": "/var/data/spark"}, {"name": "conf", "mountPath": conf}],
            }],
            "volumes": [{"name": "local", "emptyDir": {}}, {"name": "conf", "configMap": {"name": "pi-conf"}}],
        },
    })
}

const PROPERTIES: &str = "\
spark.master=k8s\\://https\\://kubernetes.default.svc
spark.submit.deployMode=cluster
spark.kubernetes.submitInDriver=true
spark.kubernetes.driver.pod.name=pi-driver
spark.kubernetes.namespace=default
spark.kubernetes.container.image=spark
spark.app.id=spark-1
spark.app.name=pi
spark.driver.host=pi-driver-svc.default.svc
spark.driver.port=7078
spark.driver.blockManager.port=7079
spark.driver.memory=512m
spark.executor.memory=512m
spark.executor.instances=2
spark.kubernetes.resource.type=python
";

#[tokio::test]
async fn pi_with_two_executors() {
    if std::env::var_os("SPARK_HOME").is_none() {
        eprintln!("skipped: SPARK_HOME is not set; `make test` sets it");
        return;
    }
    let mut world = World::without_spark().await;
    world.spark = Spark::find(None).await.unwrap();
    world.start_node();
    // Spark's own order: the pod first, the objects that it needs afterwards.
    world.create::<Pod>(driver()).await;
    let ports = json!([{"name": "driver-rpc-port", "port": 7078}, {"name": "blockmanager", "port": 7079}]);
    let spec = json!({"clusterIP": "None", "selector": {"spark-app-selector": "spark-1", "spark-role": "driver"}, "ports": ports});
    world.create::<Service>(json!({"metadata": {"name": "pi-driver-svc"}, "spec": spec})).await;
    let data = json!({"spark.properties": PROPERTIES});
    world.create::<ConfigMap>(json!({"metadata": {"name": "pi-conf"}, "data": data})).await;

    let ended = |pod: &Pod| matches!(phase(pod), "Succeeded" | "Failed");
    let pod = world.wait("pi-driver", "at its end", ended).await;
    let log = world.log("pi-driver").await;
    assert_eq!(end(&pod).exit_code, 0, "{log}");
    assert!(log.contains("Pi is roughly 3."), "{log}");
    for executor in ["executor 1", "executor 2"] {
        assert!(log.contains(executor), "no task ran on {executor}: {log}");
    }
}
