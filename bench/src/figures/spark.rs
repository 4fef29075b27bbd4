//! The Spark that drivers are rendered for where the harness renders them itself.

use sparkgate::{service::SparkSettings, spark::SparkVersion};

/// The gateway's defaults.
pub(super) fn settings() -> SparkSettings {
    SparkSettings {
        version: SparkVersion::V4_3,
        defaults: Default::default(),
        submitter: Default::default(),
        user: "spark".to_owned(),
    }
}
