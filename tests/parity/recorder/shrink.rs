//! Reduces a case that differs, as long as it still differs.

use anyhow::Result;
use serde_json::{Value, json};

use super::Spark;
use crate::{
    case::{Case, MASTER},
    compare::{Report, differences},
    ours,
};

/// Returns the smallest case found, in the format of `tests/parity/cases`, and its differences.
pub(crate) fn shrink(spark: &mut Spark, case: &Case) -> Result<(String, Report)> {
    let mut smallest = case.clone();
    let mut smaller = true;
    while smaller {
        smaller = false;
        for candidate in candidates(&smallest) {
            if differs(spark, &candidate)? {
                smallest = candidate;
                smaller = true;
                break;
            }
        }
    }
    let mut report = Report::default();
    let sparks = spark.answer(&smallest)?;
    report.add(&case.name, spark.version(), differences(&ours::answer(&smallest, spark.version()), &sparks));
    Ok((format!("{:#}", json!({ &case.name: written(&smallest) })), report))
}

fn differs(spark: &mut Spark, case: &Case) -> Result<bool> {
    let sparks = spark.answer(case)?;
    Ok(!differences(&ours::answer(case, spark.version()), &sparks).is_empty())
}

/// Returns the cases with one part removed.
fn candidates(case: &Case) -> Vec<Case> {
    let mut all = Vec::new();
    let mut without = |change: &dyn Fn(&mut Case)| {
        let mut candidate = case.clone();
        change(&mut candidate);
        all.push(candidate);
    };
    for key in case.request.spark_properties.keys() {
        if key != "spark.master" && key != "spark.kubernetes.container.image" {
            without(&|case| drop(case.request.spark_properties.remove(key)));
        }
    }
    for name in case.request.environment_variables.keys() {
        without(&|case| drop(case.request.environment_variables.remove(name)));
    }
    for index in 0..case.request.app_args.len() {
        without(&|case| drop(case.request.app_args.remove(index)));
    }
    for name in case.submitter.conf_dir.keys() {
        without(&|case| drop(case.submitter.conf_dir.remove(name)));
    }
    for name in case.submitter.files.keys() {
        without(&|case| drop(case.submitter.files.remove(name)));
    }
    if case.submitter.hadoop_conf.is_some() {
        without(&|case| case.submitter.hadoop_conf = None);
    }
    if case.request.proxy_user.is_some() {
        without(&|case| case.request.proxy_user = None);
    }
    all
}

fn written(case: &Case) -> Value {
    let mut request = json!(case.request);
    if let Some(fields) = request.as_object_mut() {
        fields.remove("clientSparkVersion");
        fields.retain(|_, value| value.as_object().is_none_or(|value| !value.is_empty()) && *value != json!([]));
        if let Some(properties) = fields.get_mut("sparkProperties").and_then(Value::as_object_mut) {
            properties.retain(|key, value| key != "spark.master" || *value != format!("k8s://http://{MASTER}"));
        }
    }
    json!({ "bare": true, "request": request, "submitter": case.submitter })
}
