//! The inputs of a submission besides its request.

use chrono::{DateTime, Utc};

use super::{names::DriverNames, submitter::SubmitterFiles, version::SparkVersion};

/// The inputs of a submission besides the request itself.
#[derive(Debug, Clone, Copy)]
pub struct SubmitContext<'a> {
    pub version: SparkVersion,
    pub names: &'a DriverNames,
    /// The time at which the submission was accepted: `spark.app.submitTime` and the date in the properties' header.
    pub submitted_at: DateTime<Utc>,
    /// `SPARK_USER` of the pod where neither the request nor a proxy user names one.
    pub user: &'a str,
    /// The submitter's files, as far as this submission can name them.
    pub submitter: &'a SubmitterFiles,
    /// Properties that override those of the request.
    pub properties: &'a [(String, String)],
}
