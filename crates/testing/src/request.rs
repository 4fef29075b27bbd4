//! The submission that is measured, of a realistic size.

use hyper::body::Bytes;
use serde_json::json;

/// Returns Spark's `CreateSubmissionRequest` for job number `n` in `namespace`: some 2 KB.
pub fn request(n: usize, namespace: &str) -> Bytes {
    let request = json!({
        "action": "CreateSubmissionRequest",
        "clientSparkVersion": "4.3.0",
        "appResource": "local:///opt/spark/examples/jars/spark-examples.jar",
        "mainClass": "org.apache.spark.examples.SparkPi",
        "appArgs": ["1000", "--date", "2026-11-21", "--partition", n.to_string()],
        "environmentVariables": {"SPARK_USER": "etl", "JOB_NUMBER": n.to_string()},
        "sparkProperties": {
            "spark.app.name": format!("nightly-orders-{n}"),
            "spark.submit.deployMode": "cluster",
            "spark.kubernetes.namespace": namespace,
            "spark.kubernetes.container.image": "registry.example.com/data/spark:4.3.0",
            "spark.kubernetes.authenticate.driver.serviceAccountName": "spark",
            "spark.kubernetes.driver.label.team": "orders",
            "spark.kubernetes.driver.annotation.example.com/run": format!("2026-11-21/{n}"),
            "spark.kubernetes.driverEnv.TZ": "UTC",
            "spark.kubernetes.driver.request.cores": "500m",
            "spark.kubernetes.driver.limit.cores": "2",
            "spark.driver.memory": "4g",
            "spark.executor.instances": "10",
            "spark.executor.cores": "4",
            "spark.executor.memory": "16g",
            "spark.dynamicAllocation.enabled": "true",
            "spark.dynamicAllocation.shuffleTracking.enabled": "true",
            "spark.dynamicAllocation.maxExecutors": "40",
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": "s3a://data-platform/spark-events",
            "spark.hadoop.fs.s3a.endpoint": "https://s3.example.com",
            "spark.hadoop.fs.s3a.committer.name": "magic",
            "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
            "spark.sql.adaptive.enabled": "true",
            "spark.sql.shuffle.partitions": "400",
        },
    });
    Bytes::from(request.to_string())
}
