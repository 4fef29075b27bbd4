//! The checks of `SparkSubmitArguments` and `SparkSubmit`, with their texts.

use crate::spark::{
    CreateSubmissionRequest, Refusal, SparkVersion,
    conf::{SparkConf, bytes},
};

/// NUL ends a string for the kernel and is refused by Kubernetes and Postgres alike, each in words of its own.
pub(super) fn no_nul(request: &CreateSubmissionRequest) -> Result<(), Refusal> {
    let check = |field: String, text: &str| match text.contains('\0') {
        true => Err(Refusal::field(field.replace('\0', "\\0"), "A NUL character (\\u0000) is not possible here.")),
        false => Ok(()),
    };
    check("appResource".to_owned(), &request.app_resource)?;
    check("mainClass".to_owned(), &request.main_class)?;
    check("proxyUser".to_owned(), request.proxy_user.as_deref().unwrap_or_default())?;
    for (index, arg) in request.app_args.iter().enumerate() {
        check(format!("appArgs[{index}]"), arg)?;
    }
    for (name, map) in
        [("sparkProperties", &request.spark_properties), ("environmentVariables", &request.environment_variables)]
    {
        for (key, value) in map {
            check(format!("{name}[\"{key}\"]"), key)?;
            check(format!("{name}[\"{key}\"]"), value)?;
        }
    }
    Ok(())
}

/// Memory, cores and instances must be positive numbers.
pub(super) fn sizes(conf: &SparkConf) -> Result<(), Refusal> {
    let memory = |text: &str| bytes(text).is_some_and(|bytes| bytes > 0);
    let count = |text: &str| text.parse::<i32>().is_ok_and(|count| count > 0);
    positive(conf, "spark.driver.memory", memory, "Driver memory must be a positive number")?;
    positive(conf, "spark.executor.memory", memory, "Executor memory must be a positive number")?;
    positive(conf, "spark.driver.cores", count, "Driver cores must be a positive number")?;
    positive(conf, "spark.executor.cores", count, "Executor cores must be a positive number")?;
    // Read leniently here: any other word than `true` is for the driver to refuse.
    let dynamic = conf.get("spark.dynamicAllocation.enabled").is_some_and(|word| word.eq_ignore_ascii_case("true"));
    if !dynamic {
        positive(conf, "spark.executor.instances", count, "Number of executors must be a positive number")?;
    }
    Ok(())
}

fn positive(conf: &SparkConf, key: &str, passes: impl Fn(&str) -> bool, otherwise: &str) -> Result<(), Refusal> {
    match conf.get(key) {
        Some(text) if !passes(text) => Err(Refusal::property(key, otherwise)),
        _ => Ok(()),
    }
}

/// Classes that spark-submit doesn't run in cluster mode, and the one whose arguments would be a command line.
pub(super) fn runs_in_cluster(main_class: &str, version: SparkVersion) -> Result<(), Refusal> {
    let reason = match main_class {
        "org.apache.spark.repl.Main" => "Cluster deploy mode is not applicable to Spark shells.",
        "org.apache.spark.sql.hive.thriftserver.SparkSQLCLIDriver" => {
            "Cluster deploy mode is not applicable to Spark SQL shell."
        }
        "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2" => {
            "Cluster deploy mode is not applicable to Spark Thrift server."
        }
        "org.apache.spark.sql.connect.service.SparkConnectServer" if version >= SparkVersion::V4_2 => {
            "Launching Spark Connect server in cluster deploy mode is supported only for YARN"
        }
        "org.apache.spark.sql.connect.service.SparkConnectServer" => {
            "Cluster deploy mode is not applicable to Spark Connect server."
        }
        "org.apache.spark.deploy.SparkSubmit" => {
            "A spark-submit command line in appArgs is not understood yet. Post the application itself: the .py, .R or \
             jar as appResource, its arguments as appArgs, and options as sparkProperties."
        }
        _ => return Ok(()),
    };
    Err(Refusal::field("mainClass", reason))
}

/// An empty namespace names none; Spark's Kubernetes client then refuses to send anything.
pub(super) fn namespace(conf: &SparkConf) -> Result<(), Refusal> {
    match conf.get("spark.kubernetes.namespace") {
        Some("") => Err(Refusal::property(
            "spark.kubernetes.namespace",
            "namespace not specified for an operation requiring one.",
        )),
        _ => Ok(()),
    }
}

pub(super) fn identity(conf: &SparkConf, proxy_user: Option<&str>) -> Result<(), Refusal> {
    if proxy_user.is_some() && conf.contains("spark.kerberos.principal") {
        return Err(Refusal::field("proxyUser", "Only one of --proxy-user or --principal can be provided."));
    }
    Ok(())
}
