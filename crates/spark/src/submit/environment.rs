//! The meaning of the request's `environmentVariables` on Kubernetes. A standalone master would pass them to the driver's
//! process; the closest equivalent here is `spark.kubernetes.driverEnv.*`.

use std::collections::BTreeMap;

use crate::{conf::SparkConf, request::CreateSubmissionRequest};

/// Variables about the client's host, which Spark's REST server drops too (`RestSubmissionServer`).
const DROPPED: [&str; 2] = ["SPARK_LOCAL_IP", "SPARK_LOCAL_HOSTNAME"];

/// The variables of the submitter that feature steps read. Each has its own effect on the driver, so it is not also passed as a
/// plain variable of the container.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SubmitterEnv {
    pub(crate) spark_user: Option<String>,
    pub(crate) pyspark_python: Option<String>,
    pub(crate) pyspark_driver_python: Option<String>,
    pub(crate) spark_local_dirs: Option<String>,
}

/// Splits the request's variables into those of the submitter and those of the driver container. A property
/// `spark.kubernetes.driverEnv.<name>` overrides a variable of the same name.
pub(super) fn split(request: &CreateSubmissionRequest, conf: &SparkConf) -> (SubmitterEnv, BTreeMap<String, String>) {
    let mut submitter = SubmitterEnv::default();
    let mut driver = BTreeMap::new();
    for (name, value) in &request.environment_variables {
        let slot = match name.as_str() {
            "SPARK_USER" => &mut submitter.spark_user,
            "PYSPARK_PYTHON" => &mut submitter.pyspark_python,
            "PYSPARK_DRIVER_PYTHON" => &mut submitter.pyspark_driver_python,
            "SPARK_LOCAL_DIRS" => &mut submitter.spark_local_dirs,
            dropped if DROPPED.contains(&dropped) => continue,
            _ => {
                driver.insert(name.clone(), value.clone());
                continue;
            }
        };
        *slot = Some(value.clone());
    }
    driver.extend(conf.with_prefix("spark.kubernetes.driverEnv."));
    (submitter, driver)
}
