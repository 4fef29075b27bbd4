//! What the operator of the gateway decides for all submissions.

use std::collections::BTreeMap;

use crate::spark::{CreateSubmissionRequest, SparkVersion};

/// The Spark side of the configuration.
#[derive(Debug, Clone)]
pub struct SparkSettings {
    pub version: SparkVersion,
    /// Properties for requests that don't set them, as a `spark-defaults.conf` at the submitter would give.
    pub defaults: BTreeMap<String, String>,
    /// `SPARK_USER` of drivers for which nothing names a user: the account the gateway runs as.
    pub user: String,
}

impl SparkSettings {
    /// The request with the defaults filled in; what the request sets wins.
    pub(super) fn with_defaults(&self, mut request: CreateSubmissionRequest) -> CreateSubmissionRequest {
        for (key, value) in &self.defaults {
            if !request.spark_properties.contains_key(key) {
                request.spark_properties.insert(key.clone(), value.clone());
            }
        }
        request
    }
}
