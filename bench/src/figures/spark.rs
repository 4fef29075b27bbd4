//! The Spark settings for drivers that the harness renders itself.

use sparkgate::{service::SparkSettings, spark::SparkVersion};

/// Returns the gateway's default settings.
pub(super) fn settings() -> SparkSettings {
    SparkSettings {
        version: SparkVersion::V4_3,
        defaults: Default::default(),
        submitter: Default::default(),
        user: "spark".to_owned(),
    }
}
