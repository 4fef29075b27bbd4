//! Sparkgate's answer to a case.

use chrono::{DateTime, Utc};
use k8s_openapi::ByteString;
use sparkgate::spark::{
    DriverNames, NameEntropy, NamedRequest, Refusal, SubmitContext, SubmitterFiles, build_driver, parse_properties,
};
use uuid::Uuid;

use crate::{
    answer::Answer,
    case::{Case, bytes},
};

/// Friday, 2026-01-02 03:04:05.678 UTC.
pub(crate) const SUBMITTED_AT_MS: i64 = 1_767_323_045_678;
pub(crate) const ENTROPY: NameEntropy = NameEntropy {
    app_id: Uuid::from_u128(0xaaaa_aaaa_aaaa_4aaa_8aaa_aaaa_aaaa_aaaa),
    local_dir: Uuid::from_u128(0xdddd_dddd_dddd_4ddd_8ddd_dddd_dddd_dddd),
    resource_prefix: [0x1a, 0x2b, 0x3c],
    config_map: [0x4d, 0x5e, 0x6f],
    driver_service: [0x70, 0x81, 0x92],
};
pub(crate) const USER: &str = "submitter";

/// Returns the answer for one release.
pub(crate) fn answer(case: &Case, version: &str) -> Answer {
    match objects(case, version) {
        Ok(objects) => Answer::objects(objects, case),
        Err(refusal) => Answer::Refused(refusal.reason),
    }
}

fn objects(case: &Case, version: &str) -> Result<Vec<serde_json::Value>, Refusal> {
    let mut request = case.request.clone();
    for (key, value) in parse_properties(&case.defaults_file()) {
        request.spark_properties.entry(key).or_insert(value);
    }
    let version = version.parse().unwrap();
    let request = NamedRequest::new(request, version)?;
    let names = &DriverNames::for_request(&request, SUBMITTED_AT_MS, &ENTROPY);
    let submitted_at: DateTime<Utc> = DateTime::from_timestamp_millis(SUBMITTED_AT_MS).unwrap();
    let files = |files: &std::collections::BTreeMap<String, String>| {
        files.iter().map(|(name, text)| (name.clone(), ByteString(bytes(text)))).collect()
    };
    let submitter = &SubmitterFiles {
        spark_conf_dir: files(&case.submitter.conf_dir),
        hadoop_conf_dir: case.submitter.hadoop_conf.as_ref().map(files),
        named: files(&case.submitter.files),
    };
    let context = SubmitContext { version, names, submitted_at, user: USER, submitter, properties: &[] };
    let mut list = build_driver(&request, &context)?.to_list().unwrap();
    Ok(list["items"].as_array_mut().unwrap().drain(..).collect())
}
