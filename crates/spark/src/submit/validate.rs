//! The checks of `SparkSubmitArguments` and `SparkSubmit`, with their messages.

use std::fmt::Arguments;

use crate::{
    conf::{SparkConf, bytes},
    refusal::Refusal,
    request::CreateSubmissionRequest,
    version::SparkVersion,
    yaml,
};

/// Refuses NUL characters. To the kernel a NUL ends a string; Kubernetes and Postgres both refuse it, each with its own
/// message.
pub(super) fn no_nul(request: &CreateSubmissionRequest) -> Result<(), Refusal> {
    let check = |field: Arguments<'_>, text: &str| match text.contains('\0') {
        true => {
            let field = field.to_string().replace('\0', "\\0");
            Err(Refusal::field(field, "A NUL character (\\u0000) is not allowed here."))
        }
        false => Ok(()),
    };
    check(format_args!("appResource"), &request.app_resource)?;
    check(format_args!("mainClass"), &request.main_class)?;
    check(format_args!("proxyUser"), request.proxy_user.as_deref().unwrap_or_default())?;
    for (index, arg) in request.app_args.iter().enumerate() {
        check(format_args!("appArgs[{index}]"), arg)?;
    }
    for (name, map) in
        [("sparkProperties", &request.spark_properties), ("environmentVariables", &request.environment_variables)]
    {
        for (key, value) in map {
            check(format_args!("{name}[\"{key}\"]"), key)?;
            check(format_args!("{name}[\"{key}\"]"), value)?;
        }
    }
    Ok(())
}

pub(super) const TOTAL_EXECUTOR_CORES: &str = "Total executor cores must be a positive number";

/// Checks that memory, cores and instances are positive numbers.
pub(super) fn sizes(conf: &SparkConf, version: SparkVersion) -> Result<(), Refusal> {
    let memory = |text: &str| bytes(text, version).is_some_and(|bytes| bytes > 0);
    positive(conf, "spark.driver.memory", memory, "Driver memory must be a positive number")?;
    positive(conf, "spark.executor.memory", memory, "Executor memory must be a positive number")?;
    positive(conf, "spark.driver.cores", is_count, "Driver cores must be a positive number")?;
    positive(conf, "spark.executor.cores", is_count, "Executor cores must be a positive number")?;
    // For standalone clusters, but Spark checks it here, too.
    positive(conf, "spark.cores.max", is_count, TOTAL_EXECUTOR_CORES)?;
    // Read leniently here: the driver refuses any value that is not a boolean.
    let dynamic = conf.get("spark.dynamicAllocation.enabled").is_some_and(|word| word.eq_ignore_ascii_case("true"));
    if !dynamic {
        positive(conf, "spark.executor.instances", is_count, "Number of executors must be a positive number")?;
    }
    Ok(())
}

pub(super) fn is_count(text: &str) -> bool {
    text.parse::<i32>().is_ok_and(|count| count > 0)
}

fn positive(conf: &SparkConf, key: &str, passes: impl Fn(&str) -> bool, otherwise: &str) -> Result<(), Refusal> {
    match conf.get(key) {
        Some(text) if !passes(text) => {
            let hint =
                if key.ends_with("memory") { "; a size is a whole number with a unit, such as 1536m" } else { "" };
            Err(Refusal::property(key, format!("{otherwise}. It is `{}`{hint}.", yaml::shortened(text))))
        }
        _ => Ok(()),
    }
}

/// Refuses Maven coordinates that can't be resolved anywhere (`MavenUtils.extractMavenCoordinates`). Spark resolves them at the
/// submitter, too; here only the driver does.
pub(super) fn packages(conf: &SparkConf) -> Result<(), Refusal> {
    let key = "spark.jars.packages";
    let Some(packages) = conf.get(key).filter(|packages| !packages.trim().is_empty()) else { return Ok(()) };
    for package in packages.split(',') {
        let parts: Vec<&str> = package.trim_end_matches([':', '/']).split([':', '/']).collect();
        if parts.len() != 3 {
            let form = "Provided Maven Coordinates must be in the form 'groupId:artifactId:version'.";
            return Err(Refusal::property(key, format!("{form} The coordinate provided is: {package}")));
        }
        for (name, part) in ["groupId", "artifactId", "version"].into_iter().zip(parts) {
            if part.trim().is_empty() {
                let reason = format!("The {name} cannot be null or be whitespace. The {name} provided is: {part}");
                return Err(Refusal::property(key, reason));
            }
        }
    }
    Ok(())
}

/// Refuses a heap size in the options of the driver's JVM, as the launcher does. (The launcher in the driver's container would
/// refuse it.)
pub(super) fn no_heap_option(conf: &SparkConf) -> Result<(), Refusal> {
    for key in ["spark.driver.defaultJavaOptions", "spark.driver.extraJavaOptions"] {
        if let Some(options) = conf.get(key).filter(|options| options.contains("Xmx")) {
            let reason = format!(
                "Not allowed to specify max heap(Xmx) memory settings through java options (was {options}). Use the \
                 corresponding --driver-memory or spark.driver.memory configuration instead."
            );
            return Err(Refusal::property(key, reason));
        }
    }
    Ok(())
}

/// Refuses invalid values of properties that only spark-submit itself reads: they have no effect here, but spark-submit would
/// refuse the request.
pub(super) fn submission_client(conf: &SparkConf) -> Result<(), Refusal> {
    conf.boolean("spark.submit.proxyUser.allowCustomClasspathInClusterMode")?;
    conf.int("spark.kubernetes.submission.connectionTimeout")?;
    conf.int("spark.kubernetes.submission.requestTimeout")?;
    conf.boolean("spark.kubernetes.trust.certificates")?;
    let is_boolean = |text: &str| text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false");
    // Read without a typed entry, hence the different message.
    let input = |text: &str| format!("For input string: \"{text}\"");
    for service in ["hadoopfs", "hbase"] {
        let key = format!("spark.security.credentials.{service}.enabled");
        if let Some(text) = conf.get(&key).filter(|text| !is_boolean(text)) {
            return Err(Refusal::property(&key, input(text)));
        }
    }
    let key = "spark.kubernetes.setSubmitTimeInDriver";
    match conf.get(key).filter(|text| !is_boolean(text)) {
        Some(text) => Err(Refusal::property(key, format!("Illegal value for config key {key}: {}", input(text)))),
        None => Ok(()),
    }
}

/// Refuses `spark.remote`: a client of Spark Connect has no cluster of its own.
pub(super) fn not_remote(conf: &SparkConf) -> Result<(), Refusal> {
    match conf.contains("spark.remote") {
        true => Err(Refusal::property("spark.remote", "Remote cannot be specified with master and/or deploy mode.")),
        false => Ok(()),
    }
}

/// The class of `spark-submit`, whose arguments are a command line.
pub(super) const SPARK_SUBMIT: &str = "org.apache.spark.deploy.SparkSubmit";
const SHELLS: &str = "Cluster deploy mode is not applicable to Spark shells.";

/// Refuses classes that spark-submit doesn't run in cluster mode; `field` is the field that names the class.
pub(super) fn runs_in_cluster(field: &str, main_class: &str, version: SparkVersion) -> Result<(), Refusal> {
    let reason = match main_class {
        "org.apache.spark.repl.Main" => SHELLS,
        "org.apache.spark.sql.application.ConnectRepl" if version >= SparkVersion::V4_0 => SHELLS,
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
        SPARK_SUBMIT => {
            "A driver that runs spark-submit again would wait inside the cluster for nothing: name the application's class."
        }
        _ => return Ok(()),
    };
    Err(Refusal::field(field, reason))
}

/// Refuses an empty namespace, for which Spark's Kubernetes client would refuse to send a request.
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
    if proxy_user == Some("") {
        return Err(Refusal::field("proxyUser", "Null user: name one, or leave the field out."));
    }
    Ok(())
}
