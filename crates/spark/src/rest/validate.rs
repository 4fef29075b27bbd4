//! `CreateSubmissionRequest.doValidate` in Spark's order and with its messages, then checks for values on which Spark would
//! fail later.

use std::{collections::BTreeMap, fmt::Display};

use super::{coerce::Texts, error::RequestError};
use crate::{conf::bytes, redaction::shown, refusal::Refusal, request::CreateSubmissionRequest, version::SparkVersion};

mod java;

/// The fields as they were sent, before any of them is required.
#[derive(Debug, Default)]
pub(super) struct Fields {
    pub(super) client_spark_version: Option<String>,
    pub(super) app_resource: Option<String>,
    pub(super) main_class: Option<String>,
    pub(super) app_args: Option<Vec<Option<String>>>,
    pub(super) spark_properties: Option<Texts>,
    pub(super) environment_variables: Option<Texts>,
    pub(super) proxy_user: Option<String>,
    pub(super) driver_pod_template: Option<serde_json::Value>,
    pub(super) executor_pod_template: Option<serde_json::Value>,
}

/// Checks what Spark checks before it uses the request's content: the form as the release of the server does, and values as the
/// release `values`.
pub(super) fn as_spark_does(
    fields: &Fields,
    server: SparkVersion,
    values_of: SparkVersion,
) -> Result<(), RequestError> {
    let before_4_0 = server < SparkVersion::V4_0;
    require("clientSparkVersion", fields.client_spark_version.is_some())?;
    require("appResource", fields.app_resource.is_some())?;
    if before_4_0 {
        require("appArgs", fields.app_args.is_some())?;
        require("environmentVariables", fields.environment_variables.is_some())?;
    }
    let properties = fields.spark_properties.as_ref();
    let properties = properties.ok_or_else(|| RequestError::invalid("No Spark properties set!"))?;
    if before_4_0 {
        require("spark.app.name", properties.get("spark.app.name").is_some_and(Option::is_some))?;
    }
    values(fields, values_of)?;
    if fields.main_class.is_none() {
        return Err(RequestError::NoMainClass);
    }
    Ok(())
}

/// The properties whose values Spark validates, in its order.
const VALIDATED: [&str; 5] =
    ["spark.driver.supervise", "spark.driver.cores", "spark.cores.max", "spark.driver.memory", "spark.executor.memory"];

/// Checks the properties whose values Spark validates, as far as they are set.
pub(super) fn values(fields: &Fields, version: SparkVersion) -> Result<(), RequestError> {
    let Some(properties) = &fields.spark_properties else { return Ok(()) };
    for key in VALIDATED {
        let Some(value) = properties.get(key) else { continue };
        let value = value.as_deref().unwrap_or("null");
        if let Some(kind) = refused(key, value, version) {
            return Err(RequestError::invalid(format!(
                "Property '{key}' expected {kind} value: actual was '{}'.",
                shown(key, value)
            )));
        }
    }
    Ok(())
}

/// Returns the kind of value that Spark expects, if it refuses this one.
fn refused(key: &str, value: &str, version: SparkVersion) -> Option<&'static str> {
    let (kind, is_good) = match key {
        "spark.driver.supervise" => ("boolean", java::is_boolean(value)),
        "spark.driver.cores" | "spark.cores.max" => ("numeric", java::is_double(value)),
        _ => ("memory", bytes(value, version).is_some()),
    };
    (!is_good).then_some(kind)
}

/// Returns all properties whose values can't be used.
pub fn refused_properties(properties: &BTreeMap<String, String>, version: SparkVersion) -> Vec<Refusal> {
    let refused = VALIDATED.iter().filter_map(|key| {
        let value = properties.get(*key)?;
        let kind = refused(key, value, version)?;
        Some(Refusal::property(key, format!("expected {kind} value: actual was '{}'", shown(key, value))))
    });
    let mut refused: Vec<Refusal> = refused.collect();
    if let Err(fractional) = whole_cores(properties)
        && refused.iter().all(|refusal| refusal.field != fractional.field)
    {
        refused.push(fractional);
    }
    refused
}

fn whole_cores(properties: &BTreeMap<String, String>) -> Result<(), Refusal> {
    match properties.get("spark.driver.cores") {
        Some(cores) if cores.parse::<i32>().is_err() => {
            let key = "spark.driver.cores";
            Err(Refusal::property(key, format!("a whole number of cores is needed, not '{}'", shown(key, cores))))
        }
        _ => Ok(()),
    }
}

fn require(name: &str, present: bool) -> Result<(), RequestError> {
    if present {
        return Ok(());
    }
    Err(RequestError::invalid(format!("'{name}' is missing in message CreateSubmissionRequest.")))
}

/// Converts the fields to a request and refuses null values, NUL characters and fractional cores. Spark accepts these and fails
/// on them afterwards (HTTP 500, or a driver that can't be started). The database couldn't store a NUL either.
pub(super) fn finish(fields: Fields) -> Result<CreateSubmissionRequest, RequestError> {
    let mut app_args = Vec::new();
    for (i, value) in fields.app_args.unwrap_or_default().into_iter().enumerate() {
        app_args.push(present(format_args!("appArgs[{i}]"), value)?);
    }
    let request = CreateSubmissionRequest {
        client_spark_version: without_nul("clientSparkVersion", fields.client_spark_version)?.unwrap_or_default(),
        app_resource: without_nul("appResource", fields.app_resource)?.unwrap_or_default(),
        main_class: without_nul("mainClass", fields.main_class)?.unwrap_or_default(),
        app_args,
        spark_properties: all_present("sparkProperties", fields.spark_properties)?,
        environment_variables: all_present("environmentVariables", fields.environment_variables)?,
        proxy_user: without_nul("proxyUser", fields.proxy_user)?,
        driver_pod_template: template("driverPodTemplate", fields.driver_pod_template)?,
        executor_pod_template: template("executorPodTemplate", fields.executor_pod_template)?,
    };
    whole_cores(&request.spark_properties)?;
    Ok(request)
}

fn all_present(field: &str, texts: Option<Texts>) -> Result<BTreeMap<String, String>, RequestError> {
    let mut all = BTreeMap::new();
    for (key, value) in texts.unwrap_or_default() {
        let escaped = key.escape_debug();
        let name = format_args!("{field}[\"{escaped}\"]");
        if key.contains('\0') {
            return Err(Refusal::field(name.to_string(), "the key holds a NUL character").into());
        }
        let value = present(name, value)?;
        all.insert(key, value);
    }
    Ok(all)
}

fn present(name: impl Display, value: Option<String>) -> Result<String, RequestError> {
    without_nul(&name, value)?
        .ok_or_else(|| Refusal::field(name.to_string(), "the value is null; give a string").into())
}

fn without_nul(name: impl Display, value: Option<String>) -> Result<Option<String>, RequestError> {
    match value {
        Some(text) if text.contains('\0') => {
            Err(Refusal::field(name.to_string(), "the text holds a NUL character").into())
        }
        value => Ok(value),
    }
}

fn template(name: &str, value: Option<serde_json::Value>) -> Result<Option<serde_json::Value>, RequestError> {
    // In JSON a NUL is always written as this escape. A string that contains these characters literally has an escaped
    // backslash.
    let holds_nul = |value: &serde_json::Value| value.to_string().replace("\\\\", "").contains("\\u0000");
    match value {
        Some(value) if holds_nul(&value) => Err(Refusal::field(name, "the template holds a NUL character").into()),
        value => Ok(value),
    }
}
