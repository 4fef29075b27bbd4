//! The Spark settings for drivers that the harness renders itself.

use sparkgate::{service::SparkSettings, spark::SparkVersion};

/// Returns the gateway's default settings.
pub(super) fn settings() -> SparkSettings {
    SparkSettings::new(SparkVersion::V4_3, Default::default(), Default::default(), "spark".to_owned())
}
