//! A driver pod as an API server returns it: some 8 KB, half of which are managed fields.

use serde_json::{Value, json};

/// Returns the running driver pod of submission number `n`.
pub(crate) fn driver_pod(n: usize) -> Value {
    let name = format!("nightly-orders-0123456789abcd{n:04}-driver");
    let env = |name: &str, value: &str| json!({"name": name, "value": value});
    let port = |name: &str, port: u16| json!({"name": name, "containerPort": port, "protocol": "TCP"});
    let ports = [port("driver-rpc-port", 7078), port("blockmanager", 7079), port("spark-ui", 4040)];
    let tolerations = ["not-ready", "unreachable"].map(|taint| {
        json!({"key": format!("node.kubernetes.io/{taint}"), "operator": "Exists", "effect": "NoExecute",
            "tolerationSeconds": 300})
    });
    let conditions = ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"];
    let conditions = conditions.map(|condition| {
        json!({"type": condition, "status": "True", "lastProbeTime": null, "lastTransitionTime": "2026-11-21T12:00:02Z"})
    });
    let managed = ["sparkgate", "kube-scheduler", "kubelet"].map(written_by);
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name, "namespace": "data-platform", "uid": format!("7c4a8d09-ca37-62af-61e5-{n:012}"),
            "resourceVersion": (1000 + n).to_string(), "creationTimestamp": "2026-11-21T12:00:00Z",
            "labels": {"spark-role": "driver", "spark-app-selector": format!("spark-0123456789abcdef0123456789ab{n:04}"),
                "spark-app-name": "nightly-orders", "spark-version": "4.3.0", "team": "orders",
                "sparkgate.dev/submission-id": format!("driver-20261121120000-{n:04}"), "sparkgate.dev/attempt": "1",
                "sparkgate.dev/instance": "0b9c1f6e-6c1b-4c55-9f2b-2d6cc1c0a8d5"},
            "annotations": {"sparkgate.dev/driver-container": "spark-kubernetes-driver", "example.com/run": "2026-11-21"},
            "finalizers": ["sparkgate.dev/outcome"],
            "managedFields": managed},
        "spec": {
            "nodeName": "ip-10-0-17-42.eu-central-1.compute.internal", "restartPolicy": "Never", "serviceAccountName": "spark",
            "serviceAccount": "spark", "dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler", "priority": 0,
            "terminationGracePeriodSeconds": 30, "enableServiceLinks": true, "preemptionPolicy": "PreemptLowerPriority",
            "securityContext": {"fsGroup": 185, "runAsUser": 185},
            "tolerations": tolerations,
            "volumes": [{"name": "spark-conf-volume-driver", "configMap": {"name": "spark-drv-conf-map", "defaultMode": 420,
                    "items": [{"key": "spark.properties", "mode": 420, "path": "spark.properties"}]}},
                {"name": "spark-local-dir-1", "emptyDir": {}},
                {"name": "kube-api-access-x7k2p", "projected": {"defaultMode": 420, "sources": [
                    {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                    {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}}]}}],
            "containers": [{"name": "spark-kubernetes-driver", "image": "registry.example.com/data/spark:4.3.0",
                "imagePullPolicy": "IfNotPresent", "args": ["driver", "--properties-file", "/opt/spark/conf/spark.properties",
                    "--class", "org.apache.spark.examples.SparkPi",
                    "local:///opt/spark/examples/jars/spark-examples.jar", "1000", "--date", "2026-11-21"],
                "env": [env("SPARK_USER", "etl"), env("TZ", "UTC"), env("SPARK_APPLICATION_ID", "spark-0123456789abcdef"),
                    {"name": "SPARK_DRIVER_BIND_ADDRESS", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
                    env("PYSPARK_PYTHON", "/usr/bin/python3"), env("SPARK_LOCAL_DIRS", "/var/data/spark-0123456789"),
                    env("SPARK_CONF_DIR", "/opt/spark/conf")],
                "ports": ports,
                "resources": {"limits": {"cpu": "2", "memory": "4505Mi"}, "requests": {"cpu": "500m", "memory": "4505Mi"}},
                "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
                "volumeMounts": [{"name": "spark-local-dir-1", "mountPath": "/var/data/spark-0123456789"},
                    {"name": "spark-conf-volume-driver", "mountPath": "/opt/spark/conf"},
                    {"name": "kube-api-access-x7k2p", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}]}]},
        "status": {
            "phase": "Running", "hostIP": "10.0.17.42", "podIP": "10.0.93.7", "podIPs": [{"ip": "10.0.93.7"}],
            "startTime": "2026-11-21T12:00:01Z", "qosClass": "Burstable",
            "conditions": conditions,
            "containerStatuses": [{"name": "spark-kubernetes-driver", "ready": true, "restartCount": 0, "started": true,
                "image": "registry.example.com/data/spark:4.3.0", "imageID": "registry.example.com/data/spark@sha256:0123456789",
                "containerID": "containerd://0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
                "state": {"running": {"startedAt": "2026-11-21T12:00:03Z"}}, "lastState": {}}]}
    })
}

fn written_by(manager: &str) -> Value {
    let field = |names: &[&str]| -> Value { names.iter().map(|name| (format!("f:{name}"), json!({}))).collect() };
    let fields = json!({
        "f:metadata": {"f:labels": field(&["spark-role", "spark-app-selector", "spark-app-name", "spark-version"]),
            "f:annotations": field(&["sparkgate.dev/driver-container", "example.com/run"])},
        "f:spec": {"f:containers": {"k:{\"name\":\"spark-kubernetes-driver\"}": field(&["args", "env", "image",
            "imagePullPolicy", "name", "ports", "resources", "securityContext", "terminationMessagePath",
            "terminationMessagePolicy", "volumeMounts"])},
            "f:pod": field(&["dnsPolicy", "enableServiceLinks", "restartPolicy", "schedulerName", "securityContext",
                "serviceAccount", "serviceAccountName", "terminationGracePeriodSeconds", "tolerations", "volumes"])},
        "f:status": field(&["conditions", "containerStatuses", "hostIP", "hostIPs", "phase", "podIP", "podIPs", "startTime",
            "qosClass", "observedGeneration"])});
    json!({"manager": manager, "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
        "time": "2026-11-21T12:00:00Z", "fieldsV1": fields})
}

#[test]
fn the_driver_pod_has_the_size_of_a_real_one() {
    let size = driver_pod(1).to_string().len();
    assert!((7_000..9_000).contains(&size), "{size}");
}
